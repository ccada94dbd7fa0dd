# encode, decode, distort and hash: results, contracts of --json, and what is refused.
. "$(dirname "$0")/lib.sh"

# write_tensors FILE HEADER HEX: a safetensors file from its header's JSON and its data in hexadecimal.
write_tensors() {
    local n=${#2} padding=""
    while [ $((n % 8)) != 0 ]; do
        padding="$padding "
        n=$((n + 1))
    done
    { printf "\\x$(printf %02x $((n % 256)))\\x$(printf %02x $((n / 256)))\\0\\0\\0\\0\\0\\0%s%s" "$2" "$padding"; printf "$(sed 's/../\\x&/g' <<<"$3")"; } >"$1"
}

json() { tr -d ' \n' <"$scratch/out"; }

# expect_json TEXT COMMAND...: exit 0, and this text in the result once blanks are gone.
expect_json() {
    local text=$1
    shift
    "$@" --json >"$scratch/out" 2>"$scratch/err" || fail "exit $?: $* -> $(cat "$scratch/err")"
    grep -qF -- "$text" <<<"$(json)" || fail "$text is not in the result of: $* -> $(json | head -c 400)"
}

# The paper's row (0.9, -0.3), and a row of zeros.
table=$scratch/toy.safetensors
write_tensors "$table" '{"rows":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}' 6666663f9a9999be0000000000000000
codes=$scratch/codes.safetensors
expect_json '"rows":2,"row_dim":2,"stages":3' "$GATERQ" encode --table "$table:rows" --encoder integer-rms --out "$codes"
expect_json '"values":[[0.6708984375,-0.6708984375]]' "$GATERQ" decode "$codes" --rows 0 --depth 1
expect_json '"values":[[0.979248046875,-0.362548828125],[0,0]]' "$GATERQ" decode "$codes" --rows 0,1 --depth 2
expect_json '"relative_mse":[0.2111701' "$GATERQ" distort "$codes" --table "$table:rows"
for key in '"bits_per_value":9' '"encoder":"integer-rms"' '"zero_rows":1'; do
    grep -qF -- "$key" <<<"$(json)" || fail "distort --json lacks $key: $(json)"
done
expect 0 '2 +0\.0113 +0\.[0-9]+ +0\.0625' "$GATERQ" distort "$codes" --table "$table:rows"

# Same bytes again, and no folder of this machine in them.
"$GATERQ" encode --table "$table:rows" --encoder integer-rms --out "$scratch/again" --threads 1 --quiet >"$scratch/out"
cmp -s "$codes" "$scratch/again" || fail "encoding twice gives other bytes"
grep -q "$scratch" "$codes" && fail "the coded file names a folder"
grep -q '"toy.safetensors:rows"' "$codes" || fail "the coded file does not name its source"

# E4M3 with one E8M0 scale per 32 columns: 32 times 0x38 = 1, scale 2^(126-127).
half=$scratch/half.safetensors
write_tensors "$half" '{"e.weight":{"dtype":"F8_E4M3","shape":[1,32],"data_offsets":[0,32]},"e.scale":{"dtype":"F8_E8M0","shape":[1,1],"data_offsets":[32,33]},"x.weight":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[33,35]}}' \
    "$(printf '38%.0s' {1..32})7e3838"
expect_json '"row_dim":32' "$GATERQ" encode --table "$half:e.weight" --out "$scratch/half.codes"
expect_json "[[0.5$(printf ',0.5%.0s' {1..31})]]" "$GATERQ" decode "$scratch/half.codes" --rows 0
expect 3 'x\.scale' "$GATERQ" encode --table "$half:x.weight" --out "$scratch/none"

# What is refused, and leaves nothing behind.
write_tensors "$scratch/nan.safetensors" '{"rows":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}' 0000000000000000000000000000c07f
expect 3 'row 1, column 1 is nan' "$GATERQ" encode --table "$scratch/nan.safetensors:rows" --out "$scratch/none"
expect 3 'no tensor cols' "$GATERQ" encode --table "$table:cols" --out "$scratch/none"
expect 2 'FILE.safetensors:TENSOR' "$GATERQ" encode --table "$table" --out "$scratch/none"
expect 2 'known: integer, integer-rms' "$GATERQ" encode --table "$table:rows" --encoder tcq9 --out "$scratch/none"
expect 2 'the table itself' "$GATERQ" encode --table "$table:rows" --out "$table"
expect 2 'either --table, or --memory' "$GATERQ" encode --out "$scratch/none"
expect 2 'needs --layer' "$GATERQ" encode --memory "$table" --out "$scratch/none"
expect 3 'no memory|metadata|model' "$GATERQ" encode --memory "$table" --layer 1 --out "$scratch/none"
[ -e "$scratch/none" ] && fail "a refused encode left a file"
ls "$scratch" | grep -q tmp && fail "a temporary file was left: $(ls "$scratch")"
expect 2 "row 2 is not among the table's 2 rows" "$GATERQ" decode "$codes" --rows 0,2
expect 2 'does not start with a row number' "$GATERQ" decode "$codes" --rows 0,,1
expect 2 '--depth: 4' "$GATERQ" decode "$codes" --rows 0 --depth 4
expect 3 'not a coded table' "$GATERQ" decode "$table" --rows 0
expect 3 'the codes hold 2 rows of 2 values, the table 1 of 32' "$GATERQ" distort "$codes" --table "$half:e.weight"

# hash: ids inline, from a file, through a token map; -1 is not text.
first='"rows":[[5702652,24393184,39183301,'
expect_json "$first" "$GATERQ" hash --family deepseek-v41 --layer 1 --ids 0,3
printf '0\n3\n' >"$scratch/ids"
expect_json "$first" "$GATERQ" hash --layer 1 --tokens "$scratch/ids"
perl -e 'print pack "l<*", 0, 1, 1, 2' >"$scratch/short"
expect 3 '3' "$GATERQ" hash --layer 1 --ids 2,1 --token-map "$scratch/short"
perl -e 'print pack "l<*", 0 .. 99091, 0, 3' >"$scratch/map" # raw 99092 and 99093 stand for 0 and 3 too
expect_json "$first" "$GATERQ" hash --layer 1 --ids 99092,99093 --token-map "$scratch/map"
expect 2 'raw id 99094 is not in' "$GATERQ" hash --layer 1 --ids 99094 --token-map "$scratch/map"
expect 2 'hashes raw ids' "$GATERQ" hash --family qwen38-ple --layer 1 --ids 1 --token-map "$scratch/map"
expect_json '"rows":[[4299726,' "$GATERQ" hash --layer 1 --ids=-1
expect 2 'id 99092 is not below 99092' "$GATERQ" hash --layer 1 --ids 99092
expect 2 'id number 2, "x"' "$GATERQ" hash --layer 1 --ids 1,x
expect 2 'id number 2, ""' "$GATERQ" hash --layer 1 --ids 1,
expect 2 'memory layers of deepseek-v41 are 1, 14' "$GATERQ" hash --layer 2 --ids 1
printf '1\0002\n' >"$scratch/nul"
expect 3 'not a text file' "$GATERQ" hash --layer 1 --tokens "$scratch/nul"
finish
