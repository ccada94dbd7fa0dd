# gaterq score on the real files, against numbers measured independently of it: what each rule credits for nothing, and the
# most that the stop strings of lm-evaluation-harness allow.
. "$(dirname "$0")/lib.sh"

data=${GATERQ_DATA:-}
[ -n "$data" ] && [ -d "$data/triviaqa" ] || data=../shared/datasets
for file in popqa/popQA.reconstructed.tsv triviaqa/trivia-test.qa.csv nq_open/NQ-open.dev.jsonl cmmlu/test; do
    [ -e "$data/$file" ] && continue
    echo "SKIPPED: $file is neither in \$GATERQ_DATA nor in ../shared/datasets: real files are not scored" >&2
    exit 77
done

python3 - "$data" "$scratch" <<'PY' || fail "no predictions could be made"
import ast, csv, json, os, re, string, sys
data, out = sys.argv[1:]
csv.field_size_limit(1 << 30)

def write(name, outputs):
    with open(f"{out}/{name}.jsonl", "w", encoding="utf-8") as f:
        for i, text in outputs:
            f.write(json.dumps({"id": i, "output": text}, ensure_ascii=False) + "\n")

def bare(text):
    return text.lower().translate(str.maketrans("", "", string.punctuation))

def best(answers, articles, stops):  # the answer that survives the stop strings, if one does
    def clean(text):
        return bare(re.sub(r"\b(?:The |the |An |A |a |an )", "", text) if articles else text)
    golds = {clean(a) for a in answers}
    for a in answers:
        if clean(re.split(stops, a)[0].strip()) in golds:
            return a
    return answers[0]

def unquote(text):
    return next(csv.reader([text], delimiter="\t"))[0] if text[:1] == '"' == text[-1:] and len(text) > 1 else text

with open(f"{data}/popqa/popQA.reconstructed.tsv", encoding="utf-8", newline="") as f:
    rows = list(csv.DictReader(f, delimiter="\t"))
taken = {r["id"] for r in rows if r["id"]}
ids = [r["id"] or (f"row{i}" if str(i) in taken else str(i)) for i, r in enumerate(rows)]
write("popqa-football", ((i, "association football") for i in ids))
with open(f"{data}/triviaqa/trivia-test.qa.csv", encoding="utf-8", newline="") as f:
    rows = [(unquote(q), ast.literal_eval(a)) for q, a in csv.reader(f, delimiter="\t")]
write("triviaqa-best", ((i, best(a, False, "[\n.,]")) for i, (q, a) in enumerate(rows)))
write("triviaqa-none", ((i, "\u02ac\u02ac") for i in range(len(rows))))
with open(f"{data}/nq_open/NQ-open.dev.jsonl", encoding="utf-8") as f:
    rows = [json.loads(line) for line in f]
write("nq_open-best", ((i, best(r["answer"], True, "[\n.,]")) for i, r in enumerate(rows)))
a, c = [], []
for name in sorted(os.listdir(f"{data}/cmmlu/test")):
    with open(f"{data}/cmmlu/test/{name}", encoding="utf-8", newline="") as f:
        for i, row in enumerate(csv.DictReader(f)):
            a.append((f"{name[:-4]}/{i}", "A"))
write("cmmlu-a", a)
with open(f"{out}/cmmlu-c.jsonl", "w") as f:
    for i, _ in a:
        f.write(json.dumps({"id": i, "suite": "cmmlu", "loglikelihoods": [-2.5, -2, -1.25, -1.5]}) + "\n")
PY

score() { # SUITE FILE PREDICTIONS OUT [OPTION...]
    local suite=$1 file=$2 predictions=$3 out=$4
    shift 4
    "$GATERQ" score --suite "$suite" --data "$data/$file" --predictions "$scratch/$predictions.jsonl" --json "$@" \
        >"$scratch/$out.json" 2>"$scratch/err" || fail "$suite $predictions: $(tail -c 400 "$scratch/err")"
}
score popqa popqa/popQA.reconstructed.tsv popqa-football popqa
score triviaqa triviaqa/trivia-test.qa.csv triviaqa-best triviaqa --rule all
score triviaqa triviaqa/trivia-test.qa.csv triviaqa-none triviaqa-none --rule opencompass_triviaqa_literal,opencompass_triviaqa
score nq_open nq_open/NQ-open.dev.jsonl nq_open-best nq_open --rule all
score cmmlu cmmlu cmmlu-a cmmlu-a --rule all
score cmmlu cmmlu cmmlu-c cmmlu-c

python3 - "$scratch" <<'PY' || fail "the scores differ from the measured ones"
import json, sys
def load(name):
    r = json.load(open(f"{sys.argv[1]}/{name}.json"))
    return r, {x["rule"]: x for x in r.get("rules", [])}
def count(x, key="accuracy"):
    return round(x[key] * x["n"])
p, _ = load("popqa")
assert (p["n"], p["correct"], count(p, "question_echo"), count(p, "refusal_sentence")) == (14267, 368, 428, 78), p
assert [b["n"] for b in p["by_popularity"]] == [1115, 1102, 1107, 1108], p["by_popularity"]
assert [b["up_to"] for b in p["by_popularity"]] == [85, 304, 2201.5, None], p["by_popularity"]
assert len(p["by_relation"]) == 16 and sum(g["n"] for g in p["by_relation"]) == 14267
assert {g["relation"]: g["n"] for g in p["by_relation"]}["color"] == 34
t, rules = load("triviaqa")
assert t["n"] == 11313 and t["rule"] == "triviaqa_official_em" and t["correct"] == t["n"], t["correct"]
assert rules["lm_eval_triviaqa_stops"]["correct"] == 11313 - 182, rules["lm_eval_triviaqa_stops"]
assert rules["lm_eval_triviaqa_em"]["correct"] == 11313
assert rules["popqa_contains"]["correct"] == rules["llm_foundry_prefix"]["correct"] == 11313
literal, ours = rules["opencompass_triviaqa_literal"], rules["opencompass_triviaqa"]
assert abs(literal["question_echo"] - 0.129) < 0.0005 and ours["question_echo"] < literal["question_echo"], literal
_, rules = load("triviaqa-none")  # no letter of it is in any answer
assert (rules["opencompass_triviaqa_literal"]["correct"], rules["opencompass_triviaqa"]["correct"]) == (489, 0), rules
n, rules = load("nq_open")
assert n["n"] == 3610 and n["rule"] == "nq_open_official_em" and n["correct"] == 3610, n["correct"]
# 316 questions have only answers with a full stop or comma; of those six survive the cut: four that end in "Jr.", '928,' and
# '"Psychomachia,"'.
assert rules["lm_eval_nq_open_stops"]["correct"] == 3610 - 316 + 6, rules["lm_eval_nq_open_stops"]
for name, micro, macro in ("cmmlu-a", 0.252633, 0.252591), ("cmmlu-c", 0.248403, 0.247356):
    c, rules = load(name)
    assert c["n"] == 11582 and c["subjects"] == len(c["by_subject"]) == 67, c["n"]
    assert abs(c["micro"] - micro) < 5e-7 and abs(c["macro"] - macro) < 5e-7, (c["micro"], c["macro"])
    assert c["micro"] == c["accuracy"] and c["no_choice"] == 0, c
assert rules == {} and c["rule"] == "cmmlu_loglikelihood" and c["tied"] == c["undefined"] == 0, c
a, rules = load("cmmlu-a")
assert a["rule"] == "cmmlu_extract_choice" and rules["opencompass_first_capital"]["correct"] == a["correct"], rules
PY

finish
