# gaterq score of TriviaQA, NQ-open and CMMLU on small files of every layout: ids, answers, groups, ties, broken files.
. "$(dirname "$0")/lib.sh"

predict() { printf '%s\n' "$@" >"$scratch/p.jsonl"; }
score() { "$GATERQ" score --suite "$1" --data "$scratch/$2" --predictions "$scratch/p.jsonl" "${@:3}"; }
# holds EXPRESSION COMMAND...: a Python expression over the result r of --json.
holds() {
    "${@:2}" --json >"$scratch/out" 2>"$scratch/err" || fail "${*:2}: $(tail -c 300 "$scratch/err")"
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); sys.exit(0 if eval(sys.argv[2]) else 1)' \
        "$scratch/out" "$1" || fail "not so: $1 of ${*:2}: $(head -c 600 "$scratch/out")"
}

# ---- TriviaQA ----

# DPR: a second layer of quotes, and Python's escapes.
{
    printf 'Who is it?\t%s\n' "['Mark Twain', 'Samuel \\\\'Sam\\\\' Clemens']" | sed "s/\\\\\\\\/\\\\/g"
    printf '"""Who sang """"Hey"""" ?"""\t"[""It\x27s a"", \x27Who sang ""Hey"" ?\x27, \x27Beyonc\\xe9 \\u4e2d \\U0001f3c0\x27]"\n'
    printf 'Nothing?\t[]\r\n'
} >"$scratch/dpr.csv"
predict '{"id":0,"output":" Samuel \u0027Sam\u0027 Clemens\nQ: next"}' '{"id":"1","output":"beyoncé 中 🏀"}' '{"id":2,"output":""}'
holds '(r["rule"], r["cut"], r["n"], r["correct"]) == ("triviaqa_official_em", "first_line", 3, 2)' score triviaqa dpr.csv
holds 'abs(r["question_echo"] - 1/3) < 1e-12' score triviaqa dpr.csv --rule exact # the question lost both layers

# The official JSON: its own ids; lines: an id or the row.
cat >"$scratch/official.json" <<'JSON'
{
  "Data": [ { "QuestionId": "tc_33", "Question": "Which musical?", "Answer": { "Aliases": ["Sunset Blvd"],
    "NormalizedAliases": ["sunset boulevard"], "Value": "Sunset Boulevard", "HumanAnswers": ["The Sunset one"] } } ]
}
JSON
for said in 'sunset  BLVD.' 'Sunset_Boulevard' 'a sunset one'; do
    predict "{\"id\":\"tc_33\",\"output\":\"$said\"}"
    expect 0 'rule triviaqa_official_em: 1 of 1 right' score triviaqa official.json
done
predict '{"doc_id":0,"doc":{"question_id":"tc_33"},"resps":[[" Sunset Blvd\nQ"]],"filter":"none"}'
expect 0 'rule lm_eval_triviaqa_em: 1 of 1 right' score triviaqa official.json --rule lm_eval_triviaqa_em
# Rules for aliases are not given the normalised or the human ones.
for said in 'sunset boulevard' 'The Sunset one' 'Sunset Boulevard'; do
    predict "{\"id\":\"tc_33\",\"output\":\"$said\"}"
    expect 0 'rule triviaqa_official_em: 1 of 1 right' score triviaqa official.json
    for rule in lm_eval_triviaqa_em lighteval_triviaqa_em squad_em llm_foundry_prefix; do
        expect 0 "rule $rule: 0 of 1 right" score triviaqa official.json --rule $rule
    done
done
predict '{"id":0,"output":"x"}'
expect 3 '1 predictions are of no item of .*official.json: 0' score triviaqa official.json
printf '{"question":"q","answers":["Helicopter","\\ud83d\\ude81"],"target":"Helicopter"}\n{"id":"qw_1","question":"q","answers":["x"]}\n' \
    >"$scratch/lines.jsonl"
predict '{"id":0,"output":"helicopter"}' '{"id":"qw_1","output":"y"}'
expect 0 '1 of 2 right' score triviaqa lines.jsonl
expect 0 'rule opencompass_triviaqa: 1 of 2 right' score triviaqa lines.jsonl --rule opencompass_triviaqa
predict '{"id":0,"output":"nothing"}' '{"id":"qw_1","output":"y"}'
expect 0 'rule opencompass_triviaqa: 0 of 2 right' score triviaqa lines.jsonl --rule opencompass_triviaqa
expect 0 'rule opencompass_triviaqa_literal: 1 of 2 right' score triviaqa lines.jsonl --rule opencompass_triviaqa_literal

# ---- NQ-open: ids are rows, whatever ids the file has ----

printf '%s\n' '{"question":"who","answer":["Beyonc\u00e9"],"id":"a"}' '' \
    '{"question":"how many","answer":["6"],"answer_and_def_correct_predictions":["6","six geese"]}' >"$scratch/nq.jsonl"
predict '{"id":0,"output":" Beyonce\u0301."}' '{"id":1,"output":"six geese, I think"}'
holds '(r["rule"], r["correct"]) == ("nq_open_official_em", 1)' score nq_open nq.jsonl
holds '(r["rule"], r["cut"], r["correct"]) == ("nq_open_official", "lm_eval_until", 2)' \
    score nq_open nq.jsonl --rule nq_open_official --cut lm_eval_until

# ---- CMMLU ----

mkdir -p "$scratch/cmmlu/test"
printf ',Question,A,B,C,D,Answer\n0,"问, 题",甲,乙,"丙 ""x""",丁,B\n1,题,甲,乙,丙,丁,A\n2,题,甲,乙,丙,丁,C\n' >"$scratch/cmmlu/test/anatomy.csv"
printf ',Question,A,B,C,D,Answer\r\n0,题,甲,乙,丙,丁,D\r\n' >"$scratch/cmmlu/test/virology.csv"
predict '{"id":"anatomy/0","loglikelihoods":[-2,-1,-3,-1]}' '{"id":"anatomy/1","loglikelihoods":[-1,-2,-3,-4]}' \
    '{"id":"anatomy/2","loglikelihoods":[-1,null,-0.5,-4]}' '{"id":"virology/0","loglikelihoods":[-4,-3,-2,-1]}'
holds '(r["rule"], r["n"], r["correct"], r["tied"], r["undefined"], r["no_choice"]) == ("cmmlu_loglikelihood", 4, 3, 1, 1, 1)' \
    score cmmlu cmmlu
holds 'r["micro"] == r["accuracy"] == 0.75 and abs(r["macro"] - 5/6) < 1e-12 and r["subjects"] == 2' score cmmlu cmmlu
holds 'abs(r["macro_se"] - (2/9/3)**0.5/2) < 1e-12 and abs(r["micro_se"] - (0.75*0.25/4)**0.5) < 1e-12' score cmmlu cmmlu
holds '[(g["subject"], g["n"], g["correct"]) for g in r["by_subject"]] == [("anatomy", 3, 2), ("virology", 1, 1)]' \
    score cmmlu cmmlu --out "$scratch/scored.jsonl"
python3 - "$scratch/scored.jsonl" <<'PY' || fail "scored lines: $(cat "$scratch/scored.jsonl")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [(x["choice"], x["tied"], x["correct"]) for x in lines] == \
    [("B", True, True), ("A", False, True), (None, False, False), ("D", False, True)], lines
assert lines[2]["loglikelihoods"] == [-1, None, -0.5, -4] and lines[3]["subject"] == "virology", lines
PY
expect 2 'not known' score cmmlu cmmlu --rule squad_em2
expect 3 'line 1, item anatomy/0 has no "output", which rule cmmlu_extract_choice wants' score cmmlu cmmlu --rule cmmlu_extract_choice
predict '{"id":"anatomy/0","output":"答案是：B"}' '{"id":"anatomy/1","output":"B或A"}' '{"id":"anatomy/2","output":"我不知道"}' \
    '{"id":"virology/0","output":"Because D","loglikelihoods":[-4,-3,-2,-1]}'
holds '(r["rule"], r["correct"], r["no_choice"], r["refusals"]) == ("cmmlu_extract_choice", 1, 1, 1)' score cmmlu cmmlu
holds '[x["rule"] for x in r["rules"]] == ["cmmlu_extract_choice", "opencompass_first_capital"]' score cmmlu cmmlu --rule all
expect 3 'item anatomy/0 has 0 "loglikelihoods"; rule loglikelihood wants 4' score cmmlu cmmlu --rule loglikelihood
predict '{"id":"anatomy/0","output":"B"}'
expect 3 '3 of 4 items .*: anatomy/1, anatomy/2, virology/0' score cmmlu cmmlu
mkdir -p "$scratch/samples"
for subject in anatomy virology; do
    for row in 0 1 2; do
        [ $subject = virology ] && [ $row -gt 0 ] && continue
        echo "{\"doc_id\":$row,\"doc\":{\"Question\":\"\",\"A\":\"\",\"B\":\"\",\"C\":\"\",\"D\":\"\"},\"resps\":[[[\"-1.0\",\"False\"]],[[\"-0.5\",\"True\"]],[[\"-2\",\"False\"]],[[\"-3\",\"False\"]]]}"
    done >"$scratch/samples/samples_cmmlu_${subject}_2026-01-01T00-00-00.jsonl"
done
holds '(r["rule"], r["n"], r["correct"]) == ("cmmlu_loglikelihood", 4, 1)' \
    "$GATERQ" score --suite cmmlu --data "$scratch/cmmlu" --predictions "$scratch/samples"

# ---- broken data ----

predict '{"id":0,"output":"x"}'
while IFS='|' read -r suite name text pattern; do
    printf "$text" >"$scratch/$name"
    expect 3 "$pattern" score "$suite" "${name%%/*}"
done <<'CASES'
triviaqa|a.csv|q|line 1: a question and its answers are wanted
triviaqa|a.csv|q\tx\n|line 1: the answers are no list
triviaqa|a.csv|q\t["x\n|line 1: the answers are no list
triviaqa|a.csv|q\t["x", 5]\n|no list
triviaqa|a.csv|q\t['\\q']\n|no list
triviaqa|a.csv|q\t['\\ud800']\n|no list
triviaqa|a.csv|q\t['x'] y\n|no list
triviaqa|a.csv|"q\t['x']\n|a quoted field has no end
triviaqa|a.csv|"q"z\t['x']\n|text follows a closing quote
triviaqa|a.csv|\xff\t['x']\n|not valid UTF-8
triviaqa|a.csv||there is no question
triviaqa|a.json|{"Data":[{"Question":"q"}]}|there is no answer
triviaqa|a.json|{"Data":7}|Data: must be an array
nq_open|a.jsonl|{"question":"q","answer":["x"]}\n{"answer":["x"]}\n|line 2: there is no question
nq_open|a.jsonl|{"question":"q","answer":["x"]}\n{"question":"q","answer":[5]}\n|answers must be texts
nq_open|a.jsonl|{"question":"q","answer":["x"]} x\n|a.jsonl
cmmlu|cmmlu/test/x.csv|Question,A\n|x.csv: the header is not
cmmlu|cmmlu/test/x.csv|,Question,A,B,C,D,Answer\n0,q,a,b,c,d,E\n|line 2: the answer is "E"
cmmlu|cmmlu/test/x.csv|,Question,A,B,C,D,Answer\n0,q,a,b,c,d\n|line 2 has 6 fields
CASES
predict '{"id":"anatomy/0","output":"B"}'
expect 3 'line 2 has 6 fields' score cmmlu cmmlu
expect 3 'nowhere/test: No such file' score cmmlu nowhere

finish
