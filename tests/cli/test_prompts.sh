# gaterq prompts: lines, seeds, shots of every suite, and score --prompts.
. "$(dirname "$0")/lib.sh"
cd "$scratch" || exit 1

columns='id	subj	prop	obj	subj_id	prop_id	obj_id	s_aliases	o_aliases	s_uri	o_uri	s_wiki_title	o_wiki_title	s_pop	o_pop	question	possible_answers'
{
    echo "$columns"
    for i in 1 2 3 4 5 6 7 8; do
        printf '%d\ts%d\trelation %d\tanswer %d\t\t\t\t\t\t\t\t\t\t%d\t\tQuestion %d?\t"[""answer %d""]"\n' $i $i $((i % 4)) $i $i $i $i
    done
} >popqa.tsv
for i in 1 2 3 4 5 6; do printf '{"question": "nq %d", "answer": ["a%d"]}\n' $i $i; done >nq.jsonl
sed 's/nq/train/' nq.jsonl >train.jsonl
mkdir -p cmmlu/test cmmlu/dev
printf ',Question,A,B,C,D,Answer\n0, q ,1,2,3,4,B\n' >cmmlu/test/agronomy.csv
printf ',Question,A,B,C,D,Answer\n0,d0,1,2,3,4,A\n1,d1,1,2,3,4,C\n' >cmmlu/dev/agronomy.csv

expect 0 '8 prompts of popqa, protocol popqa_paper, 3 shots' "$GATERQ" prompts --suite popqa --data popqa.tsv --shots 3 --out p.jsonl
[ "$(wc -l <p.jsonl)" = 8 ] || fail "not a line for each item"
grep -q '"prompt":"Q: Question [0-9]? A: answer [0-9]\\n\\nQ: Question' p.jsonl || fail "no shots: $(head -1 p.jsonl)"
for key in '"suite":"popqa"' '"id":"1"' '"prompt_sha256":"' '"max_new_tokens":15' '"stop":\[\]' '"shots":\["' '"seed":1'; do
    grep -q -- "$key" p.jsonl || fail "prompts lack $key"
done
"$GATERQ" prompts --suite popqa --data popqa.tsv --shots 3 --out again.jsonl --threads 1 --quiet >/dev/null
cmp -s p.jsonl again.jsonl || fail "prompts differ from run to run"
"$GATERQ" prompts --suite popqa --data popqa.tsv --shots 3 --seed 2 --out other.jsonl --quiet >/dev/null
cmp -s p.jsonl other.jsonl && fail "another seed draws the same shots"
"$GATERQ" prompts --suite popqa --data popqa.tsv --out counted.jsonl --json --quiet >counts.json
python3 - counts.json <<'PY' || fail "counts: $(cat counts.json)"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["n"] == 8 and r["groups"] == [{"group": f"relation {g}", "n": 2} for g in range(4)], r
PY
"$GATERQ" prompts --suite popqa --data popqa.tsv --shots 3 --protocol popqa_olmo_eval --out olmo.jsonl --quiet >/dev/null
grep -q '"stop":\["\\n\\n"\]' olmo.jsonl || fail "$(head -1 olmo.jsonl)"
cmp -s <(sed 's/.*"prompt_sha256":"\([^"]*\).*/\1/' olmo.jsonl) <(sed 's/.*"prompt_sha256":"\([^"]*\).*/\1/' p.jsonl) ||
    fail "olmo-eval asks something else than the paper"
python3 - p.jsonl <<'PY' || fail "digests are not those of the prompts"
import hashlib, json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    r = json.loads(line)
    assert hashlib.sha256(r["prompt"].encode()).hexdigest() == r["prompt_sha256"], r
PY
# A prompt depends on its item alone.
{ head -1 popqa.tsv; sed -n '3,$p' popqa.tsv; sed -n 2p popqa.tsv; } >turned.tsv
"$GATERQ" prompts --suite popqa --data turned.tsv --out turned.jsonl --quiet >/dev/null
"$GATERQ" prompts --suite popqa --data popqa.tsv --out plain.jsonl --quiet >/dev/null
cmp -s <(sort turned.jsonl) <(sort plain.jsonl) || fail "prompts depend on the order of items"
expect 3 'item 1: 4 shots are asked for, but there are 3 other relations' "$GATERQ" prompts --suite popqa --data popqa.tsv --shots 4 --out none
expect 2 'popqa_paper has at most 15' "$GATERQ" prompts --suite popqa --data popqa.tsv --shots 16 --out none
expect 2 'has its own demonstrations' "$GATERQ" prompts --suite popqa --data popqa.tsv --shots 1 --shots-from popqa.tsv --out none

expect 0 '6 prompts' "$GATERQ" prompts --suite nq_open --data nq.jsonl --shots 2 --shots-from train.jsonl --out nq-prompts.jsonl
grep -q 'Answer these questions:\\n\\nQ: train [0-9]?\\nA: a[0-9]\\nQ: train [0-9]?\\nA: a[0-9]\\nQ: nq 1?\\nA:"' nq-prompts.jsonl || fail "$(head -1 nq-prompts.jsonl)"
# DPR's files have a space before , and . : gone from shots, kept in what is asked and under lm_eval.
printf 'who , at .05 ,\t%s\n' "['July 5 , 2018']" >dpr.csv
printf '{"question": "asked , so", "answer": ["a"]}\n' >asked.jsonl
"$GATERQ" prompts --suite nq_open --data asked.jsonl --shots 1 --shots-from dpr.csv --out dpr.jsonl --quiet >/dev/null
grep -q 'Q: who, at .05,?\\nA: July 5, 2018\\nQ: asked , so?' dpr.jsonl || fail "$(cat dpr.jsonl)"
"$GATERQ" prompts --suite nq_open --protocol nq_open_lm_eval --data asked.jsonl --shots 1 --shots-from dpr.csv --out dpr.jsonl --quiet >/dev/null
grep -q 'Q: who , at .05 ,?\\nA: July 5 , 2018\\nQ: asked , so?' dpr.jsonl || fail "$(cat dpr.jsonl)"
# Canonical answers, or first aliases, as the protocol has it; few rows of a large pool that have an answer are found.
printf '{"question": "p", "answers": ["Irlanda"], "target": "Ireland"}\n' >fid.jsonl
printf '{"context": "Question: c?\\nAnswer:", "answer": "x"}\n' | sed 's/\\\\/\\/' >context.jsonl
"$GATERQ" prompts --suite triviaqa --data context.jsonl --shots 1 --shots-from fid.jsonl --out fid.prompts --quiet >/dev/null
grep -q '"prompt":"Question: p\\nAnswer: Ireland\\n\\nQuestion: c?\\nAnswer:"' fid.prompts || fail "$(cat fid.prompts)"
"$GATERQ" prompts --suite triviaqa --protocol triviaqa_lm_eval --data context.jsonl --shots 1 --shots-from fid.jsonl --out fid.prompts --quiet >/dev/null
grep -q '"prompt":"Question: p?\\nAnswer: Irlanda\\n\\nQuestion: c??\\nAnswer:"' fid.prompts || fail "$(cat fid.prompts)"
{ perl -e 'print "{\"question\": \"n$_\", \"answer\": []}\n" for 1 .. 30000'; cat train.jsonl; } >sparse.jsonl
expect 0 '6 prompts' "$GATERQ" prompts --suite nq_open --data nq.jsonl --shots 6 --shots-from sparse.jsonl --out sparse.prompts
expect 2 'needs --shots-from' "$GATERQ" prompts --suite nq_open --data nq.jsonl --shots 2 --out none
expect 2 'is what is asked' "$GATERQ" prompts --suite nq_open --data nq.jsonl --shots 2 --shots-from nq.jsonl --out none
expect 3 '7 shots are asked for, but there are 6 different demonstrations' "$GATERQ" prompts --suite nq_open --data nq.jsonl --shots 7 --shots-from train.jsonl --out none

expect 0 '1 prompts of cmmlu' "$GATERQ" prompts --suite cmmlu --data cmmlu --shots 2 --out cmmlu.jsonl
grep -q '"continuations":\[" A"," B"," C"," D"\]' cmmlu.jsonl || fail "$(cat cmmlu.jsonl)"
grep -q '"shots":\["agronomy/0","agronomy/1"\]' cmmlu.jsonl || fail "$(cat cmmlu.jsonl)"
expect 3 'item agronomy/0: 3 shots are asked for, but there are 2 dev questions' "$GATERQ" prompts --suite cmmlu --data cmmlu --shots 3 --out none
mv cmmlu/test/agronomy.csv cmmlu/test/alchemy.csv
expect 3 "item alchemy/0: its subject is none of CMMLU's 67" "$GATERQ" prompts --suite cmmlu --data cmmlu --out none
expect 0 'cmmlu_opencompass_ppl' "$GATERQ" prompts --list
expect 2 'protocol x is not known for popqa; known: popqa_paper' "$GATERQ" prompts --suite popqa --protocol x --data popqa.tsv --out none
expect 2 'is the data' "$GATERQ" prompts --suite popqa --data popqa.tsv --out popqa.tsv
expect 2 '--data is missing' "$GATERQ" prompts --suite popqa --out none
# What is read is never written over: data, what shots come from, a file of CMMLU's folder.
cp train.jsonl train.copy && cp cmmlu/test/alchemy.csv alchemy.copy && cp cmmlu/dev/agronomy.csv agronomy.copy
expect 2 'or what shots come from' "$GATERQ" prompts --suite nq_open --data nq.jsonl --shots 2 --shots-from train.jsonl --out train.jsonl
expect 2 'is the data' "$GATERQ" prompts --suite cmmlu --data cmmlu --out cmmlu/test/alchemy.csv
expect 2 'is the data' "$GATERQ" prompts --suite cmmlu --data cmmlu --out ./cmmlu/dev/../dev/agronomy.csv
cmp -s train.jsonl train.copy && cmp -s cmmlu/test/alchemy.csv alchemy.copy && cmp -s cmmlu/dev/agronomy.csv agronomy.copy ||
    fail "data was written over"
[ -e none ] && fail "a refused command left a file"

# Predictions carry the digest of what was asked.
sed -E 's/.*"id":"([0-9]+)".*"prompt_sha256":"([0-9a-f]+)".*/{"suite":"popqa","id":"\1","output":"answer \1","prompt_sha256":"\2"}/' p.jsonl >answers.jsonl
expect 0 '8 of 8 right' "$GATERQ" score --suite popqa --data popqa.tsv --predictions answers.jsonl --prompts p.jsonl
expect 3 '8 predictions were made from other prompts than those of other.jsonl' "$GATERQ" score --suite popqa --data popqa.tsv --predictions answers.jsonl --prompts other.jsonl
sed 's/,"prompt_sha256":"[0-9a-f]*"//' answers.jsonl >bare.jsonl
expect 3 '8 predictions have no prompt_sha256' "$GATERQ" score --suite popqa --data popqa.tsv --predictions bare.jsonl --prompts p.jsonl

# What readers refuse.
printf '\xef\xbb\xbf{"question": "q", "answer": ["a"]}\n' >bom.jsonl
expect 0 '1 prompts' "$GATERQ" prompts --suite nq_open --data bom.jsonl --out bom.prompts
printf '{"question_id": "x", "question": "q", "answers": ["a"]}\n{"question_id": "x", "question": "r", "answers": ["b"]}\n' >twice.jsonl
expect 3 'item x is there twice' "$GATERQ" prompts --suite triviaqa --data twice.jsonl --out none
perl -e 'print "{\"question\": \"", "x" x 17000000, "\", \"answer\": [\"a\"]}\n"' >long.jsonl
expect 3 'line 1 has 17[0-9]* bytes; 16777216 are allowed' "$GATERQ" prompts --suite nq_open --data long.jsonl --out none
{ cat popqa.tsv; perl -e 'print "9\ts\tp\t", "x" x 17000000, "\t" x 12, "q\t[]\n"'; } >long.tsv
expect 3 'line 10: a record of 17[0-9]* bytes; 16777216 are allowed' "$GATERQ" prompts --suite popqa --data long.tsv --out none
printf '{"question": "q", "answer": ["a"]} x\n' >tail.jsonl
expect 3 'tail.jsonl:1:3' "$GATERQ" prompts --suite nq_open --data tail.jsonl --out none
printf '{"question": "q", "question": "r", "answer": ["a"]}\n' >keys.jsonl
expect 3 'keys.jsonl: line 1' "$GATERQ" prompts --suite nq_open --data keys.jsonl --out none
printf '{"question": "q\xff", "answer": ["a"]}\n' >utf8.jsonl
expect 3 'not valid UTF-8' "$GATERQ" prompts --suite nq_open --data utf8.jsonl --out none
finish
