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
expect 2 'matching rule "fuzzy" is not known; there are: popqa_contains, exact, ' score --rule fuzzy
expect 2 'cut "fuzzy" is not known; there are: whole, first_line, ' score --cut fuzzy
expect 2 'not both' score --rule exact --rules exact
expect 2 'is for choices; suite popqa has none' score --rule exact,cmmlu_extract_choice

# The cut is part of the score: the whole third output holds "chess". The same for several rules, the first one first.
expect 0 'rule popqa_contains: 4 of 5 right, 80.00 % .*; cut whole; 1 empty outputs, 0 refusals' score --cut whole
expect 0 'rule selfrag_match: 2 of 5 right, 40.00 % .*; cut whole' score --rule selfrag_match
score --rules all --json >"$scratch/all" 2>"$scratch/err" || fail "all rules: $(cat "$scratch/err")"
score --rule popqa_contains,squad_f1,exact --out "$scratch/scored.jsonl" --json >"$scratch/three" || fail "three rules"
python3 - "$scratch" <<'PY' || fail "several rules: $(cat "$scratch/all" "$scratch/scored.jsonl")"
import json, sys
r = json.load(open(sys.argv[1] + "/all"))
rules = {x["rule"]: x for x in r["rules"]}
assert len(rules) == len(r["rules"]) > 25 and r["rules"][0]["rule"] == r["rule"] == "popqa_contains", r["rules"][0]
assert not any(name in rules for name in ("squad_v1", "cmmlu_extract_choice")), rules.keys()
assert (r["correct"], rules["olmo_contains"]["correct"], rules["exact"]["correct"]) == (3, 4, 0), rules
assert (rules["squad_em"]["correct"], rules["squad_em"]["cut"]) == (2, "popqa_first_line"), rules["squad_em"]
assert rules["lm_eval_triviaqa_stops"]["cut"] == "lm_eval_until", rules
assert r["spread"]["lowest"] == {"rule": "exact", "accuracy": 0}, r["spread"]
assert r["spread"]["highest"]["accuracy"] == max(x["accuracy"] for x in r["rules"]), r["spread"]
three = json.load(open(sys.argv[1] + "/three"))
assert [x["rule"] for x in three["rules"]] == ["popqa_contains", "squad_f1", "exact"], three
assert abs(three["rules"][1]["mean_score"] - (1 + 1 + 0 + 2/3 + 0)/5) < 1e-12, three["rules"][1]
assert [(g["relation"], g["n"], g["correct"]) for g in three["by_relation"]] == [("sport", 5, 3)], three
lines = [json.loads(line) for line in open(sys.argv[1] + "/scored.jsonl")]
assert [x["id"] for x in lines] == ["7", "8", "2", "x9", "11"], lines
assert [x["correct"] for x in lines] == [True, True, False, True, False], lines
assert lines[0]["output"] == " lawn tennis\nQ: What" and lines[0]["cut_output"] == " lawn tennis", lines[0]
assert lines[3]["verdicts"] == {"popqa_contains": True, "squad_f1": 2/3, "exact": False}, lines[3]
assert lines[3]["cut"] == "popqa_first_line" and lines[3]["relation"] == "sport", lines[3]
assert (lines[4]["popularity"], "quartile" in lines[4], lines[0]["quartile"]) == (None, False, 0), lines
PY
expect 0 '0.00 points' "$GATERQ" compare "$scratch/scored.jsonl" "$scratch/scored.jsonl"

# What a score can be had for nothing, and outputs that refuse to answer.
predict '{"id":7,"output":"I don\u2019t know."}' '{"id":8,"output":"Unknown"}' '{"id":2,"output":"Sorry, but chess"}' \
    '{"id":"x9","output":"I do not go"}' '{"id":11,"output":"\n"}'
expect 0 '2 of 5 right.*; 1 empty outputs, 3 refusals' score
expect 0 'for nothing, by popqa_contains: 0.00 % for the question itself, 0.00 % for' score

predict '{"id":7,"output":"tennis"}' '{"id":8,"output":"golf"}'
expect 3 'p.jsonl: 3 of 5 items of .*facts.tsv have no prediction \(--partial.*: 2, x9, 11' score
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
expect 2 'suite fuzzy is not known; there are: popqa, triviaqa, nq_open, cmmlu' "$GATERQ" score --suite fuzzy --data "$data" --predictions "$scratch/p.jsonl"
expect 3 'missing.tsv' "$GATERQ" score --suite popqa --data "$scratch/missing.tsv" --predictions "$scratch/p.jsonl"
expect 2 '--predictions' "$GATERQ" score --suite popqa --data "$data"

finish
