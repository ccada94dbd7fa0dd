# gaterq compare and premise --log: the contract's keys and values, and files that must be refused.
. "$(dirname "$0")/lib.sh"

# lines FILE ID:CORRECT...: a predictions file.
lines() {
    local file=$1 pair
    shift
    for pair; do
        printf '{"suite": "popqa", "id": %s, "output": "x", "correct": %s}\n' "${pair%:*}" "${pair##*:}"
    done >"$file"
}
compact() { tr -d ' \n'; }

cd "$scratch" || exit 1
lines a.jsonl 1:true 2:true '"3":true' 4:false '"tc_5":true'
lines b.jsonl '"tc_5":true' '"2":false' 3:false 1:false 4:true # another order; 2 and "2" are one id

json=$("$GATERQ" compare a.jsonl b.jsonl --json | compact)
for part in '"n":5' '"only_a":3' '"only_b":1' '"difference":0.4' '"p_exact":0.625' '"p_mid":0.375' '"bca":[' '"mid_p_interval":[-0.' \
    '"bonett_price":[' '"p_sign_flip":0.6' '"detectable":null'; do
    grep -qF -- "$part" <<<"$json" || fail "compare --json lacks $part: $json"
done
[ "$("$GATERQ" compare a.jsonl b.jsonl --json)" = "$("$GATERQ" compare a.jsonl b.jsonl --json --threads 1)" ] ||
    fail "two runs of compare differ"
expect 0 'B right alone 0; difference \+0.00' "$GATERQ" compare a.jsonl a.jsonl

# Families are corrected from mid-p: 0.375, 1, 0.375 here. A family of one stays as it is.
printf 'a.jsonl\tb.jsonl\na.jsonl\ta.jsonl\nb.jsonl\ta.jsonl\n' >family.tsv
json=$("$GATERQ" compare --family family.tsv --json | compact)
[ "$(grep -o '"holm":1' <<<"$json" | wc -l)" = 3 ] || fail "Holm of 0.375, 1, 0.375 is 1 three times: $json"
[ "$(grep -o '"bh":0.5625' <<<"$json" | wc -l)" = 2 ] || fail "BH of 0.375 among three is 0.5625: $json"
[ "$(grep -o '"hochberg":0.75' <<<"$json" | wc -l)" = 2 ] || fail "Hochberg of 0.375, 1, 0.375 is 0.75, 1, 0.75: $json"
printf 'a.jsonl\tb.jsonl\n' >family.tsv
json=$("$GATERQ" compare --family family.tsv --json | compact)
grep -q '"holm":0.375' <<<"$json" || fail "a family of one is corrected: $json"

lines c.jsonl 1:true 2:true 3:true 4:false
expect 3 'a.jsonl.*not in c.jsonl: tc_5' "$GATERQ" compare a.jsonl c.jsonl
expect 3 'a.jsonl.*not in c.jsonl: tc_5' "$GATERQ" compare c.jsonl a.jsonl
lines d.jsonl 1:true 2:true '"1":true'
expect 3 'd.jsonl: 1 repeated ids: 1' "$GATERQ" compare d.jsonl d.jsonl
lines e.jsonl '1:"true"'
expect 3 'e.jsonl: line 1.*correct' "$GATERQ" compare e.jsonl e.jsonl
printf '{"suite": "popqa", "id": 1, "output": "x"}\n' >f.jsonl
expect 3 'f.jsonl: line 1.*correct.*gaterq score --suite popqa --data FILE --predictions f.jsonl --out' "$GATERQ" compare f.jsonl f.jsonl
{ cat a.jsonl; printf '{"suite": "popqa", "id": 6, "cor'; } >g.jsonl
expect 3 'g.jsonl: line 6' "$GATERQ" compare g.jsonl a.jsonl
printf '{"id": 1, "correct": true, "correct": false}\n' >h.jsonl
expect 3 'h.jsonl: line 1.*correct' "$GATERQ" compare h.jsonl h.jsonl
: >i.jsonl
expect 3 'i.jsonl' "$GATERQ" compare i.jsonl i.jsonl
printf 'a.jsonl b.jsonl\n' >family.tsv
expect 3 'family.tsv: line 1' "$GATERQ" compare --family family.tsv
expect 2 'two prediction files' "$GATERQ" compare a.jsonl
expect 2 'two prediction files' "$GATERQ" compare a.jsonl b.jsonl --family family.tsv

# Prompts must be the same in both, where both say what they were.
printf '{"id": %d, "prompt_sha256": "%s", "correct": true}\n' 1 aa 2 bb 3 cc >j.jsonl
printf '{"id": %d, "prompt_sha256": "%s", "correct": true}\n' 1 aa 2 xx 3 cc >k.jsonl
printf '{"id": %d, "correct": true}\n' 1 2 3 >l.jsonl
expect 3 '1 items of j.jsonl were asked with other prompts .*k.jsonl: 2$' "$GATERQ" compare j.jsonl k.jsonl
expect 0 '3 items' "$GATERQ" compare j.jsonl l.jsonl
sed 's/"id"/"suite": "nq_open", "id"/' l.jsonl >m.jsonl
sed 's/"id"/"suite": "popqa", "id"/' l.jsonl >n.jsonl
expect 3 'm.jsonl is of suite nq_open, n.jsonl of popqa' "$GATERQ" compare m.jsonl n.jsonl
cat m.jsonl n.jsonl | sed 's/"id": 3/"id": 4/' | sed '6s/4/5/;4s/1/6/;5s/2/7/' >o.jsonl
expect 3 'o.jsonl: line 6, item 5 is of suite popqa, others of nq_open' "$GATERQ" compare o.jsonl o.jsonl

# CMMLU: A wins 2 of 4 in law, B 1 of 2 in art: 1/6 over items, 0 over subjects.
cmmlu() { # cmmlu FILE CORRECT...: law/0 to law/3, art/0, art/1
    local file=$1 id
    shift
    for id in law/0 law/1 law/2 law/3 art/0 art/1; do
        printf '{"suite": "cmmlu", "id": "%s", "output": "A", "correct": %s}\n' "$id" "$1"
        shift
    done >"$file"
}
cmmlu p.jsonl true true true false false true
cmmlu q.jsonl false false true false true true
json=$("$GATERQ" compare p.jsonl q.jsonl --json | compact)
grep -qE '"difference":0.16666.*"macro":\{"subjects":2,"difference":0,"low":-0\.[0-9]+,' <<<"$json" || fail "macro difference: $json"
expect 0 'macro over 2 subjects: difference \+0.00' "$GATERQ" compare p.jsonl q.jsonl

# What is below the smallest double keeps its size.
seq 1 1200 | sed 's/.*/{"id": &, "correct": true}/' >r.jsonl
sed 's/true/false/' r.jsonl >s.jsonl
expect 0 'exact p = 10\^-361, mid-p = 10\^-361' "$GATERQ" compare r.jsonl s.jsonl # 2^-1199 and 2^-1200
"$GATERQ" compare r.jsonl s.jsonl --json | compact | grep -q '"log10_p_exact":-360.93' || fail "log10_p_exact"

# An access log: rows that are read more often have smaller scales.
awk 'BEGIN {
    print "row_id,scale"
    for (i = 0; i < 3000; i++) {
        row = i % 7 ? (i % 3 ? 1 : 2) : i
        printf "%d,%.4f\n", row, (row < 3 ? row / 10 : 0.9) + i % 5 / 100
    }
}' >log.csv
json=$("$GATERQ" premise --log log.csv --json | compact)
grep -qE '"spearman":-0\.[0-9]+,"verdict":"gate"' <<<"$json" || fail "premise --log: ${json:0:200}"
expect 0 'verdict: gate' "$GATERQ" premise --log log.csv
printf '1,0.5,3\n' >>log.csv
expect 3 'log.csv: line 3002 has more' "$GATERQ" premise --log log.csv
expect 2 'either a trace or --log' "$GATERQ" premise x.h5 --log log.csv
expect 3 'missing.csv' "$GATERQ" premise --log missing.csv

finish
