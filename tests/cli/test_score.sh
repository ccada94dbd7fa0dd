# gaterq score: the contract's keys, rules and ids, and every way a predictions file can fail to fit its data.
. "$(dirname "$0")/lib.sh"

data="$scratch/facts.tsv"
{
    printf 'id\tsubj\tprop\tobj\ts_pop\tquestion\tpossible_answers\n'
    printf '7\tAnn\tsport\ttennis\t10\tWhat does Ann play?\t"[""tennis"", ""Lawn Tennis""]"\n'
    printf '8\tBob\tsport\tgolf\t20\tWhat does Bob play?\t"[""golf""]"\n'
    printf '\tCid\tsport\tchess\t20\tWhat does Cid play?\t"[""chess""]"\n'
    printf 'x9\tDee\tsport\tgo\t100\tWhat does Dee play?\t"[""go""]"\n'
    printf '11\tEve\tsport\tgo\t\tWhat does Eve play?\t"[""go""]"\n'
} >"$data"
score() { "$GATERQ" score --suite popqa --data "$data" --predictions "$scratch/p.jsonl" "$@"; }
predict() { printf '%s\n' "$@" >"$scratch/p.jsonl"; }

# A number and a string are the same id; other keys are allowed; the blank id is its row; "lawn tennis" is lower().
predict '{"suite":"popqa","id":"7","output":" lawn tennis\nQ: What"}' '{"id":8,"output":"Golf","extra":[1]}' \
    '{"id":2,"output":"draughts\nchess"}' '' '{"id":"x9","output":"\n\nGo, surely"}' '{"id":11,"output":""}'
score --json >"$scratch/out" 2>"$scratch/err" || fail "a sound file is refused: $(cat "$scratch/err")"
python3 - "$scratch/out" <<'PY' || fail "the result of --json: $(cat "$scratch/out")"
import json, math, sys
r = json.load(open(sys.argv[1]))
assert (r["n"], r["correct"], r["accuracy"], r["rule"]) == (5, 3, 0.6, "popqa_contains"), r
z, n, p = 1.959963984540054, 5, 0.6  # Wilson's interval by its formula
centre, half = (p + z*z/(2*n))/(1 + z*z/n), z/(1 + z*z/n)*math.sqrt(p*(1 - p)/n + z*z/(4*n*n))
assert abs(r["low"] - (centre - half)) < 1e-12 and abs(r["high"] - (centre + half)) < 1e-12, r
# Known: 10 20 20 100; cut points 17.5, 20, 40. 100 itself is not below 100.
bins = [(b["n"], b["accuracy"]) for b in r["by_popularity"]]
assert bins == [(1, 1), (2, 0.5), (0, None), (1, 1)], bins
assert (r["below_100"]["n"], r["below_100"]["correct"], r["empty"]) == (3, 2, 1), r
PY
expect 0 'rule popqa_contains: 3 of 5 right, 60.00 %' score
expect 0 'rule exact: 0 of 5 right' score --rule exact
expect 2 'matching rule "fuzzy" is not known: popqa_contains or exact' score --rule fuzzy

predict '{"id":7,"output":"tennis"}' '{"id":8,"output":"golf"}'
expect 3 'p.jsonl: 3 of 5 items have no prediction \(--partial.*: 2, x9, 11' score
expect 0 '2 of 2 right' score --partial
score --partial --json | python3 -c 'import json, sys; sys.exit([b["n"] for b in json.load(sys.stdin)["by_popularity"]] != [1, 0, 0, 1])' ||
    fail "items without a prediction are in the quartiles of --partial"
predict '{"id":7,"output":"tennis"}' '{"id":"7","output":"golf"}'
expect 3 '1 repeated ids: 7 \(lines 1 and 2\)' score --partial
predict '{"id":7,"output":"tennis"}' '{"id":70,"output":"golf"}' '{"id":"07","output":"golf"}'
expect 3 '2 predictions are of no item of .*facts.tsv: 07, 70' score --partial
for i in $(seq 100 115); do echo "{\"id\":$i,\"output\":\"\"}"; done >"$scratch/p.jsonl"
expect 3 '16 predictions are of no item .* 109 and 6 more' score --partial

while IFS='|' read -r line pattern; do
    predict '{"id":8,"output":"golf"}' "$line"
    expect 3 "p.jsonl: line 2.*$pattern" score --partial
done <<'LINES'
{"id":7}|has no "output"
{"output":"x"}|there is no "id"
{"id":7,"output":5}|output: must be a string
{"id":7,"output":null}|output: must be a string
{"id":7.5,"output":"x"}|id: must be a whole number
{"id":true,"output":"x"}|id: must be a whole number
{"id":7,"suite":"cmmlu","output":"x"}|is of suite cmmlu, not popqa
{"id":7,"id":8,"output":"x"}|appears twice
{"id":7,"output":"x"|ends too early
{"id":7,"output":"x"} {}|
[7]|not an object
{"id":NaN,"output":"x"}|
LINES

: >"$scratch/p.jsonl"
expect 3 'there is no prediction' score
rm "$scratch/p.jsonl"
expect 3 'p.jsonl' score
predict '{"id":7,"output":"tennis"}'
expect 2 'only popqa' "$GATERQ" score --suite nq_open --data "$data" --predictions "$scratch/p.jsonl"
expect 3 'missing.tsv' "$GATERQ" score --suite popqa --data "$scratch/missing.tsv" --predictions "$scratch/p.jsonl"
expect 2 '--predictions' "$GATERQ" score --suite popqa --data "$data"

finish
