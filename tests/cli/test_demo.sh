# A whole run on a very small world, twice: same bytes (times apart), a verdict for every claim; then an interrupted run
# that continues, and a damaged file that is noticed.
. "$(dirname "$0")/lib.sh"

config="$scratch/tiny.json"
python=$(command -v python3 || true)
sed -e 's/"id": "demo"/"id": "tiny"/' -e 's/"n_entities": [0-9]*/"n_entities": 30/' -e 's/"n_tokens": [0-9]*/"n_tokens": 46080/' \
    -e 's/"warmup_steps": [0-9]*/"warmup_steps": 5/' -e 's/"bootstrap": [0-9]*/"bootstrap": 100/' experiments/configs/demo.json |
    awk '/"counting"/ {c=1} c && /"tokens"/ {sub(/[0-9]+/, "20000"); c=0} {print}' >"$config"

expect 0 'REPRODUCED' "$GATERQ" run "$config" --out "$scratch/one" --quiet --threads 2
expect 0 'REPRODUCED' "$GATERQ" run "$config" --out "$scratch/two" --quiet --threads 1
# What names the folder itself, and the times, may differ; nothing else.
difference=$(diff -rq "$scratch/one" "$scratch/two" | grep -v -e times.tsv -e commands.sh -e '.stamps' -e train.json)
[ -z "$difference" ] || fail "two runs differ: $difference"

verdicts=$(grep -cE '\| (REPRODUCED|NOT REPRODUCED|NOT RUN) \|' "$scratch/one/report.md")
n_claims=$(grep -c '"id"' experiments/claims.json)
[ "$verdicts" = "$n_claims" ] || fail "$verdicts verdicts for $n_claims claims"

# Continue: nothing is repeated; a missing product is made again and everything after it.
expect 0 'done before' "$GATERQ" run "$config" --out "$scratch/one" --quiet
rm "$scratch/one/priced/text.h5"
expect 0 'done before' "$GATERQ" run "$config" --out "$scratch/one" --quiet
cmp -s "$scratch/one/priced/text.h5" "$scratch/two/priced/text.h5" || fail "a trace made again differs"

# Stop in the middle of training, then continue: same model bytes.
timeout -s INT 2 "$GATERQ" run "$config" --out "$scratch/three" --quiet --threads 1 >"$scratch/out" 2>&1
code=$?
[ "$code" = 130 ] || [ "$code" = 124 ] || [ "$code" = 0 ] || fail "an interrupted run exits with $code: $(tail -3 "$scratch/out")"
expect 0 'REPRODUCED' "$GATERQ" run "$config" --out "$scratch/three" --quiet
cmp -s "$scratch/three/priced/model.safetensors" "$scratch/two/priced/model.safetensors" || fail "a resumed training differs"

# Damaged inputs are refused, by name.
head -c 100000 "$scratch/two/priced/text.h5" >"$scratch/cut.h5"
expect 3 'cut.h5' "$GATERQ" premise "$scratch/cut.h5"
head -c 5000 "$scratch/two/priced/model.safetensors" >"$scratch/cut.safetensors"
expect 3 'cut.safetensors' "$GATERQ" eval --model "$scratch/cut.safetensors"
expect 3 'model.safetensors' "$GATERQ" decode "$scratch/two/priced/model.safetensors" --rows 0 --depth 1

finish
