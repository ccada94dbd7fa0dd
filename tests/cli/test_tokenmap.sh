# gaterq tokenmap: the count is checked before anything is written, reserved ids, what the map is good for.
. "$(dirname "$0")/lib.sh"
map="$scratch/out.map"

# Five ids, three classes: "A" and "a", the lone byte E1 (spelled as the character is) and "b".
cat >"$scratch/tokenizer.json" <<'JSON'
{"version": "1.0", "truncation": null, "decoder": {"type": "ByteLevel"},
 "model": {"type": "BPE", "vocab": {"A": 0, "a": 1, "\u00e1": 2, "\u0120b": 3}, "merges": []},
 "added_tokens": [{"id": 4, "content": " B ", "special": true}]}
JSON
expect 3 '5 ids fall into 3 classes, expected 99092' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map"
expect 3 'nothing was written; .*--size 99094 adds' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map"
expect 3 '3 classes, expected 2\..*nothing was written\. For a .*--expect 3$' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map" --expect 2
[ "$(ls "$scratch")" = tokenizer.json ] || fail "a refused map left something behind: $(ls "$scratch")"
expect 0 '5 ids \(0 of them reserved\) in 3 classes' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map" --expect 3
expect 0 'largest classes: "a" 2 "b" 2' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map" --expect 3
[ "$(od -An -v -td4 -w4 "$map" | tr -d '\n ')" = 00122 ] || fail "the map is $(od -An -td4 "$map")"
expect 0 "^sha256 $(sha256sum <"$map" | cut -c 1-64)$" "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map" --expect 3

# A refused map leaves the one that is there alone.
before=$(sha256sum <"$map")
expect 3 'expected 4' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map" --expect 4
[ "$(sha256sum <"$map")" = "$before" ] || fail "a refused map replaced another one"

# Reserved ids are classes of their own.
expect 0 '7 ids \(2 of them reserved\) in 5 classes' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map" --size 7 --expect 5
[ "$(od -An -v -td4 -w4 "$map" | tr -d '\n ')" = 0012234 ] || fail "the padded map is $(od -An -td4 "$map")"
expect 2 'has 5 ids, more than the 4 asked for' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map" --size 4 --expect 3
expect 2 'size: 0 is outside' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map" --size 0
expect 2 'out' "$GATERQ" tokenmap "$scratch/tokenizer.json"
expect 3 'missing.json' "$GATERQ" tokenmap "$scratch/missing.json" --out "$map"
expect 3 'is a folder' "$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$scratch" --expect 3
sed 's/"BPE"/"Unigram"/' "$scratch/tokenizer.json" >"$scratch/unigram.json"
expect 3 'unigram.json: model: type must be "BPE"' "$GATERQ" tokenmap "$scratch/unigram.json" --out "$map" --expect 3

json=$("$GATERQ" tokenmap "$scratch/tokenizer.json" --out "$map" --expect 3 --json) || fail "--json fails"
for key in '"n_ids":5' '"n_reserved":0' '"n_classes":3' '"released_v41":false' '"size":2,"key":"a"'; do
    grep -qF "$key" <<<"$(tr -d ' \n' <<<"$json")" || fail "--json lacks $key: $json"
done

# The released model's map, from the tokenizer, to the byte.
released=../shared/specs/golden/engram_token_map_v41.i32le
if [ -z "${GATERQ_DEEPSEEK_TOKENIZER:-}" ]; then
    echo "SKIPPED: GATERQ_DEEPSEEK_TOKENIZER names no tokenizer.json of DeepSeek-V3 or V4.1" >&2
else
    expect 0 'DeepSeek-V4.1-Flash as released' "$GATERQ" tokenmap "$GATERQ_DEEPSEEK_TOKENIZER" --out "$map" --size 129280
    if [ -r $released ]; then cmp "$map" $released || fail "the map differs from the released one"
    else echo "SKIPPED: no $released to compare with" >&2; fi
fi

finish
