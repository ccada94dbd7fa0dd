# The benchmarks of look-ups and layers on small tables: figures beside their bounds, and what is refused. And the level of
# the kernels: chosen by GATERQ_CPU, shown by doctor.
. "$(dirname "$0")/lib.sh"

for level in ref avx2 avx512; do
    if GATERQ_CPU=$level "$GATERQ" doctor 2>"$scratch/refused" >"$scratch/doctor"; then
        grep -q "$level kernels of at most" "$scratch/doctor" || fail "doctor does not name $level: $(head -3 "$scratch/doctor")"
    else
        grep -q "this processor has no more than" "$scratch/refused" || fail "$level: $(cat "$scratch/refused")"
    fi
done
expect 2 'GATERQ_CPU is "sse9"; known: ref, avx2, avx512' env GATERQ_CPU=sse9 "$GATERQ" doctor
expect 0 'Usage: gaterq doctor' env GATERQ_CPU=sse9 "$GATERQ" doctor --help

# numbers FIELD JSON: the values of a field, one a line.
numbers() {
    tr ',{}' '\n\n\n' <"$2" | sed -n "s/^ *\"$1\": *//p"
}

# positive FIELD COUNT JSON
positive() {
    local n
    n=$(numbers "$1" "$3" | awk '$1 > 0 { n++ } END { print n + 0 }')
    [ "$n" = "$2" ] || fail "$1: $n positive numbers, expected $2: $(head -c 300 "$3")"
}

"$GATERQ" bench lookup --gib 0.02 --seconds 0.1 --threads 2 --json >"$scratch/lookup.json" 2>/dev/null ||
    fail "bench lookup: exit $?"
for field in rows_per_second bound_lines_per_second bound_rows_per_second ratio; do
    positive $field 8 "$scratch/lookup.json" # 2 formats, 1 and 2 threads, 2 kinds of ids
done
[ -z "$(ls /dev/shm/gaterq-bench-* "${TMPDIR:-/tmp}"/gaterq-bench-* 2>/dev/null)" ] || fail "bench lookup left a file behind"
expect 0 'stage 1, 32 \+ 2 bytes +1  text' "$GATERQ" bench lookup --gib 0.02 --seconds 0.1 --threads 1
if [ "$(awk '/MemTotal/ { print int($2 / 1048576) }' /proc/meminfo)" -lt 300 ]; then
    expect 2 'more than half of this machine' "$GATERQ" bench lookup --gib 200
fi

"$GATERQ" bench layer --width 16 --seconds 0.1 --threads 1 --json >"$scratch/layer.json" 2>/dev/null ||
    fail "bench layer: exit $?"
for field in tokens_per_second reference_tokens_per_second bound_tokens_per_second ratio reference_ratio; do
    positive $field 3 "$scratch/layer.json" # batches
done
expect 2 'there are: ' "$GATERQ" bench nothing
expect 2 '--width' "$GATERQ" bench layer --width 3

# All of PopQA in under a second, by every rule.
"$GATERQ" bench score --seconds 0.1 --json >"$scratch/score.json" 2>/dev/null || fail "bench score: exit $?"
python3 - "$scratch/score.json" <<'PY' || fail "bench score: $(head -c 300 "$scratch/score.json")"
import json, sys
r = json.load(open(sys.argv[1]))
slow = [x for x in r["rules"] if r["read_seconds"] + x["seconds"] > 1]
assert not slow, slow
assert r["items"] == 14267 and 3.7 < r["answers"]/r["items"] < 3.95, r
rules = {x["rule"]: x["accuracy"] for x in r["rules"]}
assert 0.4 < rules["popqa_contains"] < 0.6, rules
PY

"$GATERQ" bench compare --json >"$scratch/compare.json" 2>/dev/null || fail "bench compare: exit $?"
grep -qE '"seconds":[0-9.]+,"seconds_item_by_item":[0-9.e+]+,"ratio":[0-9.e+]+' "$scratch/compare.json" ||
    fail "bench compare: $(head -c 300 "$scratch/compare.json")"

finish
