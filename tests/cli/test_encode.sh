# encode in parts, by ranks and after kills; verify and its receipts; what eval and trace ask for; distort's samples.
. "$(dirname "$0")/lib.sh"

# A table of 20,000 rows of 32 values, and another.
make_table() {
    perl -e '
        my ($rows, $seed) = @ARGV; srand $seed;
        my $h = sprintf "{\"e.weight\":{\"dtype\":\"F32\",\"shape\":[%d,32],\"data_offsets\":[0,%d]}}", $rows, $rows * 128;
        $h .= " " while length($h) % 64 != 56;
        print pack("Q<", length $h), $h, map { pack "f<", (rand() + rand() + rand() - 1.5) } 1 .. $rows * 32' "$1" "$2"
}
make_table 20000 1 >"$scratch/t.safetensors"
make_table 20000 2 >"$scratch/u.safetensors"
table=(--table "$scratch/t.safetensors:e.weight")
whole=$scratch/whole
"$GATERQ" encode "${table[@]}" --encoder tcq-b --out "$whole" --quiet >/dev/null || fail "encode"

# Parts, and joined.
for range in 0:8192 8192:12288 12288:; do
    expect 0 "rows of 32 values" "$GATERQ" encode "${table[@]}" --encoder tcq-b --rows $range --out "$scratch/part-${range%%:*}"
done
expect 0 '20000 rows of 32 values in 3 stages' "$GATERQ" encode --join "$scratch"/part-* --out "$scratch/joined"
cmp -s "$whole" "$scratch/joined" || fail "joined parts are not the whole"
expect 3 'gaterq encode --join' "$GATERQ" decode "$scratch/part-0" --rows 0
expect 3 'no part holds rows 0 to 8191' "$GATERQ" encode --join "$scratch/part-8192" "$scratch/part-12288" --out "$scratch/none"
expect 2 'is one of the parts' "$GATERQ" encode --join "$scratch/part-0" --out "$scratch/part-0"
expect 2 'parts go with --join' "$GATERQ" encode "${table[@]}" "$scratch/part-0" --out "$scratch/none"
expect 2 'no parts to join' "$GATERQ" encode --join --out "$scratch/none"
for range in 5: 0:5 8192:0 x: 0 0:999999; do
    expect 2 'rows' "$GATERQ" encode "${table[@]}" --rows $range --out "$scratch/none"
done

# Ranks, named by hand, by a launcher's environment, and by mpirun where there is one.
ranks() {
    local n=$1 r
    shift
    for ((r = n - 1; r > 0; r--)); do "$@" $r & done
    "$@" 0
    wait
    cmp -s "$whole" "$scratch/ranks" || fail "$n ranks give other bytes"
    ls "$scratch" | grep -E 'journal|partial' && fail "a finished run left files"
    rm -f "$scratch/ranks"
}
by_hand() { "$GATERQ" encode "${table[@]}" --encoder tcq-b --quiet --rank $1 --ranks 3 --out "$scratch/ranks" >"$scratch/rank-$1"; }
by_environment() { OMPI_COMM_WORLD_RANK=$1 OMPI_COMM_WORLD_SIZE=2 "$GATERQ" encode "${table[@]}" --encoder tcq-b --quiet --out "$scratch/ranks" >"$scratch/rank-$1"; }
ranks 3 by_hand
grep -q 'rank 2 of 3: its 4096 rows' "$scratch/rank-2" || fail "rank 2 says: $(cat "$scratch/rank-2")"
ranks 2 by_environment
if command -v mpirun >/dev/null; then
    mpirun --allow-run-as-root --oversubscribe -n 3 "$GATERQ" encode "${table[@]}" --encoder tcq-b --quiet --out "$scratch/ranks" >/dev/null || fail "mpirun"
    cmp -s "$whole" "$scratch/ranks" || fail "mpirun gives other bytes"
else
    echo "SKIPPED: no mpirun here; its environment was set by hand instead"
fi
expect 2 'go together' "$GATERQ" encode "${table[@]}" --rank 0 --out "$scratch/none"
expect 2 'rank 2 of 2' "$GATERQ" encode "${table[@]}" --rank 2 --ranks 2 --out "$scratch/none"

# Killed twenty times, then finished.
kills=0
exec 3>&2 2>/dev/null # the shell reports every kill
for ((i = 0; i < 400 && kills < 20; i++)); do
    timeout -s KILL 0.$((i % 7 + 1))5 "$GATERQ" encode "${table[@]}" --encoder tcq --threads 1 --quiet --out "$scratch/killed" >/dev/null 2>&1
    if [ $? = 137 ]; then kills=$((kills + 1)); else rm -f "$scratch/killed"; fi
done
exec 2>&3
"$GATERQ" encode "${table[@]}" --encoder tcq --quiet --out "$scratch/killed" >/dev/null || fail "encode after kills"
"$GATERQ" encode "${table[@]}" --encoder tcq --quiet --out "$scratch/straight" >/dev/null
cmp -s "$scratch/straight" "$scratch/killed" || fail "a killed run ends in other bytes"
[ $kills -ge 20 ] || echo "note: only $kills kills hit a run that was not done"

# Ctrl-C: exit 130, and the work is kept.
"$GATERQ" encode "${table[@]}" --encoder tcq --threads 1 --quiet --out "$scratch/stopped" >/dev/null 2>"$scratch/err" &
sleep 0.4
kill -INT $!
wait $!
code=$?
if [ $code = 130 ]; then
    [ -e "$scratch/stopped.journal" ] || fail "Ctrl-C lost the journal"
    "$GATERQ" encode "${table[@]}" --encoder tcq --out "$scratch/stopped" --json 2>/dev/null | tr -d ' \n' | grep -q '"resumed_rows":[1-9]' || fail "nothing was resumed"
else
    [ $code = 0 ] || fail "Ctrl-C: exit $code: $(cat "$scratch/err")"
    echo "note: the run was over before Ctrl-C"
fi
cmp -s "$scratch/straight" "$scratch/stopped" || fail "an interrupted run ends in other bytes"

# Verify: passes, leaves a receipt, and each kind of harm fails and takes the receipt away.
expect 0 'whole: verified' "$GATERQ" verify "$whole" "${table[@]}"
grep -q '"passed": true' "$whole.receipt.json" || fail "no receipt"
expect 1 'source: rows that are not those coded' "$GATERQ" verify "$whole" --table "$scratch/u.safetensors:e.weight"
[ -e "$whole.receipt.json" ] && fail "a receipt was left after a failure"
expect 1 'distortion' "$GATERQ" verify "$whole" "${table[@]}" --limit 0.01,0.01,0.01
expect 2 '--limit' "$GATERQ" verify "$whole" "${table[@]}" --limit 0.5
expect 3 'the codes hold 20000 rows of 32 values' "$GATERQ" verify "$whole" --table "$scratch/short.safetensors:e.weight" --sample 5 < <(make_table 10 3 >"$scratch/short.safetensors")
cp "$whole" "$scratch/torn"
printf '\x55' | dd of="$scratch/torn" bs=1 seek=30000 conv=notrunc 2>/dev/null
expect 1 'code blocks: blocks that do not have their digest' "$GATERQ" verify "$scratch/torn" "${table[@]}"
cp "$whole" "$scratch/layer"
perl -pi -e 's/"layer":"0"/"layer":"7"/' "$scratch/layer"
expect 1 'header: its digest' "$GATERQ" verify "$scratch/layer" "${table[@]}"

# Samples.
expect 0 'plain signs  Shannon: code bits  all bits' "$GATERQ" distort "$whole" "${table[@]}" --sample 300
expect 0 'was coded from another table' "$GATERQ" distort "$whole" --table "$scratch/u.safetensors:e.weight" --sample 10
expect 3 'trace' "$GATERQ" distort "$whole" "${table[@]}" --trace "$scratch/no-trace.h5"
expect 2 'not both' "$GATERQ" distort "$whole" "${table[@]}" --trace x --sample 5

# A book of its own, which the file carries; parts coded with one book join, with two they do not.
expect 0 '(pq)' "$GATERQ" encode "${table[@]}" --encoder pq --train-book 2000 --out "$scratch/book"
expect 0 'verified' "$GATERQ" verify "$scratch/book" "${table[@]}"
for range in 0:8192 8192:; do
    "$GATERQ" encode "${table[@]}" --encoder pq --book "$scratch/book" --rows $range --quiet --out "$scratch/booked-$range" >/dev/null || fail "--book"
done
expect 0 'rows' "$GATERQ" encode --join "$scratch"/booked-* --out "$scratch/rebooked"
cmp -s "$scratch/book" "$scratch/rebooked" || fail "parts with the same book give other bytes"
"$GATERQ" encode "${table[@]}" --encoder pq --rows 8192: --quiet --out "$scratch/booked-8192:" >/dev/null
expect 3 'pq.book' "$GATERQ" encode --join "$scratch"/booked-* --out "$scratch/none"
expect 2 'has no book; pq has' "$GATERQ" encode "${table[@]}" --encoder tcq --train-book 10 --out "$scratch/none"
expect 2 'not both' "$GATERQ" encode "${table[@]}" --encoder pq --train-book 10 --book "$scratch/book" --out "$scratch/none"
expect 2 'goes with --train-book' "$GATERQ" encode "${table[@]}" --encoder pq --book-weights x --out "$scratch/none"
expect 3 'has no book' "$GATERQ" encode "${table[@]}" --encoder pq --book "$whole" --out "$scratch/none"
expect 3 'metadata|not a' "$GATERQ" encode "${table[@]}" --encoder pq --train-book 10 --book-weights "$scratch/t.safetensors" --out "$scratch/none"

# Rotation, and a power of two for scales that FP16 cannot hold.
expect 0 'rows' "$GATERQ" encode "${table[@]}" --encoder tcq-t8 --rotate --exp-tab -3 --out "$scratch/turned"
expect 0 'verified' "$GATERQ" verify "$scratch/turned" "${table[@]}"
expect 2 'whole number' "$GATERQ" encode "${table[@]}" --exp-tab 1.5 --out "$scratch/none"
[ -e "$scratch/none" ] && fail "a refused encode left a file"
finish
