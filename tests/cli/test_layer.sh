# gaterq layer on small checkpoints of every family: full tables and codes, numerics, chunks, threads, sequences, and
# what is refused; then gaterq explain on a tiny trained model and on a trace of it.
. "$(dirname "$0")/lib.sh"
files="$(dirname "$GATERQ")/tests/layer_files"
[ -x "$files" ] || { echo "SKIPPED: $files is not built" >&2; exit 77; }
cd "$scratch" || exit 1

# layer KIND OUTPUT OPTION...: layer 1 over the 300 tokens of KIND.h5
layer() {
    local kind=$1 out=$2
    shift 2
    "$GATERQ" layer --memory "$kind" --layer 1 --input "$kind.h5" --output "$out" --quiet "$@" >out 2>&1 ||
        fail "layer $kind $*: exit $?: $(tail -c 300 out)"
}
close() { "$files" compare "$@" >out 2>&1 || fail "compare $*: $(cat out)"; }

# fp32 against reference, |a - b| / (1 + |a|): without rounding points only the order of sums differs. DeepSeek's rounds
# the streams on the way in and out (2^-9 each, and the gate moves a little); Qwen's at ten more places, of which the
# convolution's gain enlarges some.
while read -r kind limit; do
    "$files" checkpoint "$kind" "$kind" && "$files" input "$kind.h5" "$kind" 0 300 || fail "layer_files $kind"
    layer "$kind" whole.h5
    layer "$kind" fp32.h5 --numerics fp32
    close whole.h5 fp32.h5 "$limit"

    # The same bytes from any chunks, threads and owners of rows.
    for how in "--chunk 1" "--chunk 7 --threads 1" "--threads 3" "--chunk 65536 --threads 2 --shards 3" "--shards 1024"; do
        layer "$kind" again.h5 $how
        cmp -s whole.h5 again.h5 || fail "$kind: $how gives other bytes"
    done

    # The second of two sequences knows nothing of the first.
    "$files" input two.h5 "$kind" 0 300 sequences
    "$files" input second.h5 "$kind" 100 200
    for part in two second; do
        "$GATERQ" layer --memory "$kind" --layer 1 --input $part.h5 --output $part.out.h5 --chunk 33 --quiet >out 2>&1 ||
            fail "$kind, $part: $(cat out)"
    done
    close two.out.h5 second.out.h5 0 100
    "$files" compare whole.h5 second.out.h5 0 100 >out && fail "$kind: a sequence that starts anew gives what it gave before"

    # Codes at a depth are the table that holds their rows, exactly; deeper is nearer to the full table on the whole.
    "$GATERQ" encode --memory "$kind" --layer 1 --encoder integer --out "$kind.codes" --quiet >out 2>&1 || fail "encode $kind: $(cat out)"
    for depth in 1 2 3; do
        layer "$kind" coded.h5 --codes "$kind.codes" --depth $depth
        "$files" checkpoint "$kind" "$kind.$depth" "$kind.codes" $depth
        "$GATERQ" layer --memory "$kind.$depth" --layer 1 --input "$kind.h5" --output full.h5 --quiet >out 2>&1 || fail "$(cat out)"
        close full.h5 coded.h5 0
        "$files" compare whole.h5 coded.h5 9 >off.$depth
        layer "$kind" again.h5 --codes "$kind.codes" --depth $depth --threads 3 --chunk 11 --shards 2
        cmp -s coded.h5 again.h5 || fail "$kind at depth $depth: threads and chunks give other bytes"
    done
    awk '{ x[NR] = $1 } END { exit !(x[1] > x[2] && x[2] > x[3] && x[3] > 0) }' off.1 off.2 off.3 ||
        fail "$kind: errors at depths 1, 2, 3 are $(cat off.1 off.2 off.3 | tr '\n' ' ')"
    layer "$kind" again.h5 --codes "$kind.codes"
    cmp -s coded.h5 again.h5 || fail "$kind: all stages are not those of depth 3"
done <<'LIMITS'
deepseek 0.02
qwen 0.04
qwen-fp8 0.04
own 1e-5
own-fp8 1e-5
LIMITS

# DeepSeek's second memory layer lies in the other shard. Nothing happens to positions that are no text.
"$GATERQ" layer --memory deepseek --layer 3 --input deepseek.h5 --output three.h5 --json >json 2>err || fail "layer 3: $(cat err)"
tr -d ' \n' <json | grep -q '"family":"deepseek-v41","layer":3,"tokens":300,"numerics":"reference"' || fail "--json: $(cat json)"
"$files" compare whole.h5 three.h5 0 >out && fail "layer 3 gives what layer 1 gives"
layer deepseek rounded.h5
layer deepseek kept.h5 --no-input-rounding
close rounded.h5 kept.h5 0 # stored rows are MXFP8 already
layer deepseek shift.h5 --e8m0 shift
close rounded.h5 shift.h5 0 # no scale byte is 0
if command -v h5dump >/dev/null; then
    h5dump -d /gates -s 5,0 -c 1,2 rounded.h5 | grep -q ': 0, 0$' || fail "a position that is no text has a gate: $(h5dump -d /gates -s 5,0 -c 1,2 rounded.h5)"
else
    echo "SKIPPED: h5dump is missing; the gates of positions that are no text are not looked at" >&2
fi
"$files" input empty.h5 own 0 0
expect 0 'empty.out.h5: 0 tokens' "$GATERQ" layer --memory own --layer 1 --input empty.h5 --output empty.out.h5

# Raw ids through a map, one of which stands for an image.
perl -e 'print pack "l<*", map { int($_ / 2) } 0 .. 99' >map
"$files" input plain.h5 own 0 300
"$GATERQ" layer --memory deepseek --layer 1 --input plain.h5 --output mapped.h5 --token-map map --image-id 49 --quiet >out 2>&1 || fail "map: $(cat out)"
"$GATERQ" layer --memory deepseek --layer 1 --input plain.h5 --output unmapped.h5 --quiet >out 2>&1 || fail "$(cat out)"
"$files" compare unmapped.h5 mapped.h5 0 >out && fail "a token map changes nothing"
expect 2 'hashes raw ids' "$GATERQ" layer --memory qwen --layer 1 --input qwen.h5 --output none.h5 --token-map map
expect 2 'it needs --token-map' "$GATERQ" layer --memory deepseek --layer 1 --input plain.h5 --output none.h5 --image-id 49
perl -e 'print pack "l<*", 0 .. 48, 50' >map
expect 3 'layer: map: raw id 49 maps to 50 before' "$GATERQ" layer --memory deepseek --layer 1 --input plain.h5 --output none.h5 --token-map map

# What does not fit is refused by file and dataset, and an output that is there stays.
cp whole.h5 none.h5
while read -r kind fault code message; do
    "$files" input bad.h5 "$kind" 20 30 "$fault"
    expect "$code" "$message" "$GATERQ" layer --memory "$kind" --layer 1 --input bad.h5 --output none.h5
done <<'FAULTS'
own wide-ids 3 bad\.h5: /ids: .*int32
own square-ids 3 bad\.h5: /ids: must have the shape \(any\), has \(30, 1\)
own no-ids 3 bad\.h5: /ids
own no-hidden 3 bad\.h5: /hidden
own flat 3 bad\.h5: /hidden: must have the shape \(30, 2, 24\), has \(30, 48\)
own swapped 3 bad\.h5: /hidden: .*24
own short 3 bad\.h5: /hidden: .*29
own integers 3 bad\.h5: /hidden: .*float32
own short-sequences 3 bad\.h5: /sequence: .*29
own nan 3 bad\.h5: /hidden: position 9, branch 1, value 4 is -?nan
qwen infinite 3 bad\.h5: /hidden: position 29, branch 0, value 23 is -inf
deepseek large 3 bad\.h5: what the layer makes of /hidden: position 7, branch 0, value [0-9]+ is
deepseek id 3 bad\.h5: tokens from 0 on: position 9: id 50 is not below 50
deepseek negative 3 bad\.h5: .*position 9: id -2
own dead 3 bad\.h5: .*position 9: id -1
qwen dead 3 bad\.h5: .*position 9: id -1
FAULTS
"$files" input bad.h5 deepseek 20 30 id
expect 3 'bad\.h5: tokens from 8 on: position 1: id 50' "$GATERQ" layer --memory deepseek --layer 1 --input bad.h5 --output none.h5 --chunk 8

expect 3 'qwen.codes:? .*128 rows of 10 values; layer 1 has 120 of 40|128 rows of 10 values; layer 1 has 120 of 40' \
    "$GATERQ" layer --memory deepseek --layer 1 --input deepseek.h5 --output none.h5 --codes qwen.codes
expect 3 'deepseek.codes: codes of layer 1, not of layer 3' "$GATERQ" layer --memory deepseek --layer 3 --input deepseek.h5 --output none.h5 --codes deepseek.codes
expect 2 'layer 2 has no memory; the memory layers of deepseek-v41 are 1, 3' "$GATERQ" layer --memory deepseek --layer 2 --input deepseek.h5 --output none.h5
expect 2 'depth' "$GATERQ" layer --memory own --layer 1 --input own.h5 --output none.h5 --depth 1
expect 2 'depth' "$GATERQ" layer --memory own --layer 1 --input own.h5 --output none.h5 --codes own.codes --depth 4
expect 2 'numerics: "exact" is neither reference nor fp32' "$GATERQ" layer --memory own --layer 1 --input own.h5 --output none.h5 --numerics exact
expect 2 'e8m0: "fn" is neither ocp nor shift' "$GATERQ" layer --memory own --layer 1 --input own.h5 --output none.h5 --e8m0 fn
expect 2 'own.h5 is the input' "$GATERQ" layer --memory own --layer 1 --input own.h5 --output ./own.h5
expect 2 'own.codes is the coded table' "$GATERQ" layer --memory own --layer 1 --input own.h5 --output own.codes --codes own.codes
mkdir folder
expect 3 'folder: is a folder' "$GATERQ" layer --memory own --layer 1 --input own.h5 --output folder
expect 2 'own is the memory' "$GATERQ" layer --memory own --layer 1 --input own.h5 --output own
expect 3 'no/folder/y.h5' "$GATERQ" layer --memory own --layer 1 --input own.h5 --output no/folder/y.h5
cmp -s whole.h5 none.h5 || fail "a refused run changed an output that was there"
ls | grep -q tmp && fail "a temporary file was left: $(ls)"

finish
