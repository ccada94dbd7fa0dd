# gaterq explain: every look-up of a text of a tiny miniature and of a sequence of a trace; what is refused.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tiny_model.sh"
files="$(dirname "$GATERQ")/tests/layer_files"
[ -x "$files" ] || { echo "SKIPPED: $files is not built" >&2; exit 77; }
m="$scratch/m"
tiny_model "$m" || { fail "no tiny model"; finish; }
# Six words of the model's world.
text=$("$GATERQ" world --config "$m/tiny.json" --sample 30 --quiet 2>/dev/null | tail -1 | cut -d ' ' -f 1-6)
explain() { "$GATERQ" explain --model "$m" "$@"; }

# 2 layers x 6 positions x 3 orders x 2 heads; a position is read the same alone and in front of another text.
explain "$text" --json >"$scratch/json" 2>"$scratch/err" || fail "explain: $(cat "$scratch/err")"
explain "$text" "$text" --layer 2 --json >"$scratch/twice" 2>"$scratch/err" || fail "two texts: $(cat "$scratch/err")"
explain "$text" --layer 2 --top 4 --json >"$scratch/top" 2>"$scratch/err" || fail "--top: $(cat "$scratch/err")"
python3 - "$text" "$scratch/json" "$scratch/twice" "$scratch/top" <<'PY' || fail "the result of --json"
import json, sys
words = sys.argv[1].split()
one, twice, top = (json.load(open(f)) for f in sys.argv[2:])
l = one["lookups"]
assert len(l) == 2 * 6 * 3 * 2, len(l)
for x in l:
    want = [words[i] if i >= 0 else "." for i in range(x["position"] - x["order"] + 1, x["position"] + 1)]
    assert x["ngram"] == " ".join(want), (x["ngram"], want)
    energy = sum(g * g for g in x["gates"])
    assert abs(energy - x["gate_energy"]) < 1e-6 * (1 + energy), x
    product = x["gate_energy"] * x["tau"] * x["row_energy"]
    assert abs(product - x["importance"]) <= 1e-5 * product, x
    assert all(0 < g < 1 for g in x["gates"]) and x["count"] >= 0, x
for ordering in l[0]["depth"]:  # 0.412 of each layer's 36 look-ups read stage 2
    for layer in (1, 2):
        deep = sum(x["depth"][ordering] == 2 for x in l if x["layer"] == layer)
        assert abs(deep - 0.412 * 36) <= 1, (ordering, layer, deep)
assert min(x["importance"] for x in l if x["layer"] == 1 and x["depth"]["gate"] == 2) >= \
    max(x["importance"] for x in l if x["layer"] == 1 and x["depth"]["gate"] == 1)
key = lambda x: (x["position"], x["order"], x["head"])
alone = {key(x): (x["row"], x["gates"]) for x in l if x["layer"] == 2}
for x in twice["lookups"]:
    row, gates = alone[key(x)] # BLAS may sum in another order for another number of positions
    assert x["layer"] == 2 and x["row"] == row and max(abs(a - b) for a, b in zip(gates, x["gates"])) < 1e-5, x
assert {c["sequence"] for s in twice["shared"] for c in s["contexts"]} == {0, 1}
best = sorted((x for x in l if x["layer"] == 2), key=lambda x: -x["importance"])[:4]
assert sorted(map(key, best)) == [key(x) for x in top["lookups"]] == sorted(map(key, top["lookups"]))
PY
cmp -s "$scratch/json" <("$GATERQ" explain --memory "$m" --codes "$m/codes" --counts "$m/counts.safetensors" "$text" --json --threads 1 2>/dev/null) ||
    fail "other options for the same give another result"
expect 0 "^Sequence 0: $text" explain "$text" --top 2
ls "${TMPDIR:-/tmp}" | grep -q "gaterq-explain-$$" && fail "a trace was left"

# A trace, whose tokens are numbers; then one whose sequences begin in the middle, and one that lies about it.
"$GATERQ" trace --model "$m/model.safetensors" --codes "$m/codes" --counts "$m/counts.safetensors" --tokens 500 --out "$scratch/t.h5" --quiet >"$scratch/out" 2>&1 ||
    fail "trace: $(cat "$scratch/out")"
trace() { "$GATERQ" explain --trace "$scratch/t.h5" "$@"; }
expect 0 '4-gram head 1 +[0-9]+ [0-9]+ [0-9]+ [0-9]+ ' trace --sequence 3 --layer 1
expect 0 '2-gram head 0 +\. [0-9]+ ' trace
[ "$(trace --sequence 2 --json 2>"$scratch/err" | tr -d ' \n' | grep -o '"sequence":[0-9]*,"position":[0-9]*,"token"' | cut -d , -f 1 | sort -u)" = '"sequence":2' ] ||
    fail "--sequence 2 shows others: $(cat "$scratch/err")"
expect 2 't.h5: --sequence: there is no sequence 9' trace --sequence 9
expect 2 't.h5: --layer: layer 7 has no memory' trace --layer 7
cp "$scratch/t.h5" "$scratch/late.h5" && "$files" shift "$scratch/late.h5" 1000 || fail "shift"
expect 0 '4-gram head 0 +\? \? \? [0-9]+ ' "$GATERQ" explain --trace "$scratch/late.h5"
cp "$scratch/t.h5" "$scratch/liar.h5" && "$files" shift "$scratch/liar.h5" 4294967290 || fail "shift"
expect 0 'gram head 0' "$GATERQ" explain --trace "$scratch/liar.h5" --sequence 1

expect 2 'text 1: the word "Zzz" is not in the vocabulary' explain "Zzz"
expect 2 'text 2 is empty' explain "$text" ""
expect 2 'give a text' explain
expect 2 'either --model or --trace' "$GATERQ" explain "$text"
expect 2 'either --model or --trace' trace --model "$m"
expect 2 "has its own tokens" trace "$text"
expect 2 'layer 5 has no memory' explain "$text" --layer 5
expect 2 'budget' explain "$text" --budget 1.5
expect 2 'top' explain "$text" --top 0
expect 3 'no/such' "$GATERQ" explain --model no/such "$text"
mv "$m/counts.safetensors" "$m/moved"
expect 2 'counts: .*counts.safetensors does not exist; gaterq count makes it' explain "$text"
mv "$m/codes" "$m/away"
expect 2 'codes: .*codes does not exist; gaterq encode makes it' explain "$text"
expect 3 'layer-1.safetensors' explain "$text" --codes "$m/none" --counts "$m/moved"

finish
