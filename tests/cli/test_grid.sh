# gaterq report --predictions: the paper's tables from a folder of scored predictions, the same for a miniature's run of
# table-accuracy.json; what is not there is NOT RUN with the reason, what is wrong is refused by name.
. "$(dirname "$0")/lib.sh"

source=$PWD
compact() { tr -d ' \n'; }

# scored FILE SUITE N ONLY FIRST: N items, of which those from FIRST on for ONLY items are right, beside the last 100.
scored() {
    mkdir -p "$(dirname "$1")"
    awk -v suite="$2" -v n="$3" -v only="$4" -v first="$5" 'BEGIN {
        for (i = 0; i < n; i++) {
            id = suite == "cmmlu" ? (i % 2 ? "law/" : "art/") int(i / 2) : i
            right = (i >= first && i < first + only) || i >= n - 100
            printf "{\"suite\": \"%s\", \"id\": \"%s\", \"output\": \"x\", \"correct\": %s}\n", suite, id, right ? "true" : "false"
        }
    }' >"$1"
}
entry() { # entry SUITE ORDERING FILE
    printf '{"model": "deepseek-v41-flash", "encoder": "integer", "budget": "bits-150", "ordering": "%s", "suite": "%s", "file": "%s", "data": "%s"}' \
        "$2" "$1" "$3" "$1.tsv"
}
manifest() { # manifest ENTRIES
    printf '{"schema": "gaterq-predictions-1", "scale": "full", "title": "T", "about": "A",
        "entries": [%s],\n"not_run": [{"suite": "nq_open", "reason": "no machine was free"}, {"model": "qwen38-flash-next", "reason": "no such checkpoint"}]}' "$1" \
        >"$full/predictions.json"
}

full=$scratch/full
scored "$full/popqa/gate.jsonl" popqa 1000 60 0      # 60 alone against prior's 20
scored "$full/popqa/prior.jsonl" popqa 1000 20 60
scored "$full/popqa/frequency.jsonl" popqa 1000 120 0 # 60 more than gate: significant the other way
scored "$full/cmmlu-gate.jsonl" cmmlu 11582 300 0
scored "$full/cmmlu-prior.jsonl" cmmlu 11582 300 0
scored "$full/base.jsonl" popqa 1000 100 0
base='{"model": "deepseek-v41-flash", "encoder": null, "budget": null, "ordering": "full", "suite": "popqa", "file": "base.jsonl", "data": "popqa.tsv"}'
entries="$base, $(entry popqa gate popqa/gate.jsonl), $(entry popqa prior popqa/prior.jsonl), $(entry popqa random popqa/random.jsonl),
 $(entry popqa frequency popqa/frequency.jsonl), $(entry cmmlu gate cmmlu-gate.jsonl), $(entry cmmlu prior cmmlu-prior.jsonl)"
manifest "$entries"
json=$("$GATERQ" report --predictions "$full" --out "$scratch/out" --json --quiet | compact) || fail "report --predictions: exit $?"
for part in '"scale":"full","cells":280,"cells_run":6,"comparisons_run":3' \
    '"of":"gate","against":"prior","verdict":"REPRODUCED","reason":"1000of14267items","n":1000,"only_a":60,"only_b":20,"difference":0.04,' \
    '"against":"random","verdict":"NOTRUN","reason":"popqa/random.jsonlisnotthere"' \
    '"against":"frequency","verdict":"NOTREPRODUCED","reason":"1000of14267items;gateisnotahead"' \
    '"suite":"nq_open","model":"deepseek-v41-flash","encoder":"tcq","budget":"bits-150","of":"gate","against":"prior","verdict":"NOTRUN","reason":"nomachinewasfree"' \
    '"suite":"triviaqa","model":"qwen38-flash-next","encoder":"pq","budget":"bits-210","of":"gate","against":"frequency","verdict":"NOTRUN","reason":"nosuchcheckpoint"' \
    '"reason":"predictions.jsonnamesnofilefortriviaqagate"'; do
    grep -qF -- "$part" <<<"$json" || fail "report --json lacks $part"
done
# The family keeps its 36 places: Holm is 35 times the second smallest p.
read -r p holm < <(sed 's/.*"only_a":60,[^}]*"p_mid":\([^,]*\),"holm":\([^,]*\),.*/\1 \2/' <<<"$json")
awk -v p="$p" -v holm="$holm" 'BEGIN { exit !(p > 0 && holm / p > 34.999 && holm / p < 35.001) }' || fail "Holm $holm of p $p, not 35 times"
"$GATERQ" compare "$full/popqa/gate.jsonl" "$full/popqa/prior.jsonl" --json | compact | grep -qF "\"p_mid\":$p," || fail "compare and report differ"
[ "$(grep -c '| NOT RUN |' "$scratch/out/report.md")" -ge 141 ] || fail "141 comparisons were not run"
grep -q '^| DeepSeek-V4.1-Flash | integer | gate, 1.50 bits | 1.500 | 16.00 |.*| NOT RUN |.*| 3.45 |' "$scratch/out/report.md" ||
    fail "the accuracy table lacks the row of gate"
grep -q '1000 of 14267 items' "$scratch/out/table-accuracy.csv" || fail "a suite in part is not said to be"
grep -q "popqa/gate.jsonl,1000,160,$(sha256sum "$full/popqa/gate.jsonl" | cut -c1-64)" "$scratch/out/files.csv" || fail "files.csv"
expect 0 'full scale: 6 of 280 cells run; of 144 comparisons 3 run, 1 REPRODUCED, 2 NOT REPRODUCED, 141 NOT RUN' \
    "$GATERQ" report "$full" --quiet

# Refused: unscored files, names that the grid lacks, cells twice, files outside, other suites.
sed 's/, "correct": [a-z]*//' "$full/popqa/gate.jsonl" >"$full/popqa/raw.jsonl"
manifest "$(entry popqa gate popqa/raw.jsonl), $(entry popqa prior popqa/prior.jsonl)"
expect 3 'raw.jsonl: line 1.*gaterq score --suite popqa --data FILE --predictions .*raw.jsonl --out' "$GATERQ" report --predictions "$full"
refuse() { # refuse PATTERN SED-EXPRESSION
    manifest "$entries"
    sed -i "$2" "$full/predictions.json"
    expect 3 "$1" "$GATERQ" report --predictions "$full"
}
refuse 'entries\[0\].model "deepsek" is none of .*deepseek-v41-flash, qwen38' 's/deepseek-v41-flash/deepsek/'
refuse 'entries\[2\].ordering "priore"' 's/"prior", "suite": "popqa"/"priore", "suite": "popqa"/'
refuse 'entries\[1\] and entries\[2\] are one cell' 's/"prior", "suite": "popqa"/"gate", "suite": "popqa"/'
refuse 'entries\[0\]: "full" has no encoder' 's/"encoder": null/"encoder": "pq"/'
refuse '"../gate.jsonl" must be a path inside the folder' 's#popqa/gate.jsonl#../gate.jsonl#'
refuse 'items are of suite popqa, in predictions.json of cmmlu' 's#cmmlu-gate.jsonl#popqa/gate.jsonl#'
refuse 'scale is "large"' 's/"full", "title"/"large", "title"/'
refuse 'schema is "gaterq-predictions-2"' 's/predictions-1/predictions-2/'
refuse 'popqa name other data' 's/"popqa.tsv"/"other.tsv"/'
refuse 'entries\[0\]: the key "file" is missing' 's/"file": "base/"filee": "base/'
refuse 'entries\[0\].note: unknown key' 's/"file": "base/"note": 1, "file": "base/'
expect 3 'predictions.json' "$GATERQ" report --predictions "$scratch/nowhere"
expect 2 'give a run' "$GATERQ" report
expect 2 'belong to --predictions' "$GATERQ" report results/x --out y
manifest "$entries"
cp experiments/configs/table-accuracy.json "$scratch"
sed 's/"against": \[/"against": ["oracle",/' experiments/configs/table-significance.json >"$scratch/family.json"
expect 2 'oracle.* is none of the grid' "$GATERQ" report --predictions "$full" --family "$scratch/family.json"

# The miniature's run of the grid, very small: the same tables.
sed -e 's/"n_entities": [0-9]*/"n_entities": 30/; s/"n_tokens": [0-9]*/"n_tokens": 46080/; s/"warmup_steps": [0-9]*/"warmup_steps": 5/' \
    -e 's/"bootstrap": [0-9]*/"bootstrap": 100/; s/"prime_start": [0-9]*/"prime_start": 512/; s/"tokens": 1000000/"tokens": 20000/' \
    -e 's/"n_syllables": [0-9]*/"n_syllables": 80/; s/"n_people": [0-9]*/"n_people": 40/; s/"n_cities": [0-9]*/"n_cities": 40/' \
    experiments/configs/table-accuracy.json >"$scratch/tiny.json"
expect 0 'miniature: 35 of 280 cells run; of 144 comparisons 18 run,' "$GATERQ" run "$scratch/tiny.json" --out "$scratch/one" --quiet --threads 2
expect 0 '126 NOT RUN' "$GATERQ" run "$scratch/tiny.json" --out "$scratch/two" --quiet --threads 1
for file in report.md table-accuracy.csv table-significance.csv predictions.json files.csv; do
    cmp "$scratch/one/$file" "$scratch/two/$file" || fail "two runs differ in $file"
done
[ "$(head -1 "$scratch/one/table-significance.csv")" = "$(head -1 "$scratch/out/table-significance.csv")" ] || fail "other columns"
[ "$(wc -l <"$scratch/one/table-accuracy.csv")" = "$(wc -l <"$scratch/out/table-accuracy.csv")" ] || fail "another number of rows"
grep -q 'Scale: miniature' "$scratch/one/report.md" || fail "the miniature's report does not say its scale"
grep -qE 'PopQA|DeepSeek-V4.1|Qwen3.8' "$scratch/one/table-accuracy.csv" && fail "the miniature is passed off as the paper's"
expect 0 'done before' "$GATERQ" run "$scratch/tiny.json" --out "$scratch/one" --quiet

# The significance config reports on that run, or says how to make it.
cd "$scratch" || exit 1
expect 3 'results/table-accuracy/predictions.json is not there: gaterq run experiments/configs/table-accuracy.json' \
    "$GATERQ" run "$source/experiments/configs/table-significance.json"
mkdir results && mv one results/table-accuracy
expect 0 '18 run' "$GATERQ" run "$source/experiments/configs/table-significance.json" --quiet
grep -q 'gate - frequency' results/table-significance/report.md || fail "no family in results/table-significance"

finish
