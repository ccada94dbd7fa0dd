# Every command: --help, unknown and repeated options, missing files; exit codes of DESIGN's contract.
. "$(dirname "$0")/lib.sh"

expect 0 'Usage: gaterq COMMAND' "$GATERQ" --help
expect 0 '^gaterq [0-9]' "$GATERQ" --version
expect 2 'Usage: gaterq COMMAND' "$GATERQ"
expect 2 'unknown command "nonsense"' "$GATERQ" nonsense

commands=$("$GATERQ" --help | awk '/^  [a-z]/ {print $1}')
[ "$(wc -w <<<"$commands")" -ge 17 ] || fail "only $(wc -w <<<"$commands") commands are listed"
for command in $commands; do
    expect 0 "Usage: gaterq $command" "$GATERQ" "$command" --help
    expect 2 'unknown option --nonsense' "$GATERQ" "$command" --nonsense
    expect 2 '--seed is given twice' "$GATERQ" "$command" --seed 1 --seed 2
    expect 2 '--seed: "x" is not a whole number' "$GATERQ" "$command" --seed x
    expect 2 '--threads: 0 is outside' "$GATERQ" "$command" --threads 0
    expect 2 '--json takes no value' "$GATERQ" "$command" --json=yes
done

missing="$scratch/missing"
expect 3 "missing" "$GATERQ" run "$missing.json"
expect 3 "missing" "$GATERQ" train --config "$missing.json" --out "$scratch/m"
expect 3 "missing" "$GATERQ" eval --model "$missing"
expect 3 "missing" "$GATERQ" premise "$missing.h5"
expect 3 "missing" "$GATERQ" ablate "$missing.h5"
expect 3 "missing" "$GATERQ" decode "$missing" --rows 0 --depth 1
expect 3 "missing" "$GATERQ" compare "$missing.a" "$missing.b"
expect 3 "missing" "$GATERQ" report "$missing"
expect 2 'exclude each other' "$GATERQ" eval --model "$missing" --zero --depth 1
expect 2 'not full, zero, depth1' "$GATERQ" eval --model "$missing" --readers full,warmest
expect 2 'listed twice' "$GATERQ" eval --model "$missing" --readers full,full

# The contract of hash: rows of the released geometry (golden start_0_3).
rows=$("$GATERQ" hash --family deepseek-v41 --layer 1 --ids 0,3 --json | tr -d ' \n')
grep -q '"rows":\[\[' <<<"$rows" || fail "hash --json has no rows: ${rows:0:200}"
expect 2 'layer' "$GATERQ" hash --family deepseek-v41 --layer 2 --ids 0
expect 2 'family|engram' "$GATERQ" hash --family nothing --layer 1 --ids 0

# Configs: unknown keys, duplicate keys, trailing text, wrong kinds are named with their place.
config=experiments/configs/demo.json
sed 's/"budget":/"buget":/' $config >"$scratch/unknown.json"
expect 2 'budget|buget' "$GATERQ" run "$scratch/unknown.json" --dry-run
sed 's/"seed": 0,/"seed": 0, "seed": 1,/' $config >"$scratch/duplicate.json"
"$GATERQ" run "$scratch/duplicate.json" --dry-run >"$scratch/out" 2>&1 && fail "a duplicate key was accepted"
grep -q seed "$scratch/out" || fail "a duplicate key is not named: $(cat "$scratch/out")"
{ cat $config; echo '{}'; } >"$scratch/trailing.json"
"$GATERQ" run "$scratch/trailing.json" --dry-run >"$scratch/out" 2>&1 && fail "trailing text was accepted"
sed 's/"stages": 3/"stages": 3.5/' $config >"$scratch/fraction.json"
expect 2 'codes.stages' "$GATERQ" run "$scratch/fraction.json" --dry-run
expect 0 'gaterq train' "$GATERQ" run $config --dry-run
[ -e results/demo/run.json ] && [ results/demo/run.json -nt "$scratch" ] && fail "--dry-run wrote a run"

finish
