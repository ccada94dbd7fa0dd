# datasets/fetch: copies from a mirror and from URLs, goes on after an interruption, refuses wrong digests by name, says
# loudly what it cannot verify; and the manifests agree with the data that is here.
. "$(dirname "$0")/lib.sh"

source=$PWD
for tool in curl sha256sum sha1sum; do
    command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
export XDG_CACHE_HOME=$scratch/cache
cache=$scratch/cache/gaterq/datasets

# The manifests: every file has places, a digest or at least a number of rows, and a licence that is printed.
names=''
for manifest in datasets/*.json; do
    names="$names $(basename "$manifest" .json)"
    grep -q '"schema": "gaterq-dataset-1"' "$manifest" || fail "$manifest: schema"
    while read -r line; do
        grep -qE '"urls": \["https://[^"]+"' <<<"$line" || fail "$manifest: no place in $line"
        grep -qE '"sha256": "[0-9a-f]{64}"|"git_blob": "[0-9a-f]{40}"|"rows": [0-9]+, "count": "[A-Za-z]+", "bytes": null' <<<"$line" ||
            fail "$manifest: nothing to check in $line"
        [ "$(tr -cd '{}' <<<"$line")" = '{}' ] || fail "$manifest: one file a line: $line"
    done < <(grep '"path"' "$manifest")
done
[ "$names" = " cmmlu efficientqa nq_open popqa triviaqa" ] || fail "data sets:$names"
[ "$(grep -c '"path"' datasets/cmmlu.json)" = 134 ] || fail "CMMLU has 67 subjects, twice"
rows=$(sed -n 's/.*"path": "test.*"rows": \([0-9]*\).*/\1/p' datasets/cmmlu.json | awk '{ n += $1 } END { print n }')
[ "$rows" = 11582 ] || fail "CMMLU's files have $rows rows"
expect 0 'CC BY-NC-SA 4.0, non-commercial' datasets/fetch --list
expect 0 'popqa +PopQA: 14267 rows, 0 of 1 files' datasets/fetch --list

# A data set of our own, with every kind of entry.
mkdir -p "$scratch/d" "$scratch/web" "$scratch/mirror/toy"
cp datasets/fetch "$scratch/d"
seq 1 5000 >"$scratch/web/plain.txt"
{ echo head; seq 1 7; } >"$scratch/web/rows.csv"
gzip -nc "$scratch/web/plain.txt" >"$scratch/web/plain.txt.gz"
(cd "$scratch/web" && mkdir in && printf '[{"QuestionId": 1}, {"QuestionId": 2}]\n' >in/q.json && tar czf q.tar.gz in/q.json)
sha=$(sha256sum <"$scratch/web/plain.txt" | cut -c1-64)
blob=$({ printf 'blob %d\0' "$(stat -c %s "$scratch/web/plain.txt")"; cat "$scratch/web/plain.txt"; } | sha1sum | cut -c1-40)
url=file://$scratch/web
toy() { # toy FILE-LINES: the manifest
    printf '{\n  "schema": "gaterq-dataset-1",\n  "name": "toy",\n  "title": "Toy",\n  "folder": "toy",\n  "licence": "CC0",\n' >"$scratch/d/toy.json"
    printf '  "home": "x",\n  "revision": "1",\n  "rows": 5000,\n  "files": [\n%s\n  ]\n}\n' "$1" >>"$scratch/d/toy.json"
}
line() { # line PATH URLS ROWS COUNT BYTES SHA BLOB OPTIONAL [MORE]
    printf '    {"path": "%s", "urls": [%s], "rows": %s, "count": "%s", "bytes": %s, "sha256": %s, "git_blob": %s, "optional": %s%s}' "$1" "$2" "$3" "$4" \
        "$5" "$6" "$7" "$8" "${9:-}"
}
fetch="$scratch/d/fetch"

toy "$(line sub/plain.txt "\"$url/plain.txt\"" 5000 lines null "\"$sha\"" null false),
$(line unzipped.txt "\"$url/missing\", \"$url/plain.txt.gz\"" 5000 lines null null "\"$blob\"" false),
$(line rows.csv "\"$url/rows.csv\"" 7 header null null null false),
$(line q.json "\"$url/q.tar.gz\"" 2 QuestionId null null null true ', "member": "in/q.json"')"
expect 0 'licence: CC0' "$fetch" toy
expect 0 '0 new, 3 there before, 0 failed' "$fetch" toy
cmp "$scratch/web/plain.txt" "$cache/toy/sub/plain.txt" || fail "a file came changed"
cmp "$scratch/web/plain.txt" "$cache/toy/unzipped.txt" || fail "an archive is not unpacked"
expect 0 'WARNING: toy/rows.csv: its digest is not known here; only checked: any number of bytes, 7 rows. sha256 of what came: [0-9a-f]{64}' "$fetch" toy
[ -e "$cache/toy/q.json" ] && fail "an optional file came unasked"
expect 0 '1 new, 3 there' "$fetch" --all toy
cmp "$scratch/web/in/q.json" "$cache/toy/q.json" || fail "a member of an archive"
[ -z "$(find "$cache" -name '*.part*')" ] || fail "parts are left behind"

# An interrupted download goes on: half of it is not read again, so a spoiled half shows.
rm -r "$cache/toy/sub"
mkdir "$cache/toy/sub"
head -c 9000 "$scratch/web/plain.txt" >"$cache/toy/sub/plain.txt.part1"
expect 0 '1 new' "$fetch" toy
cmp "$scratch/web/plain.txt" "$cache/toy/sub/plain.txt" || fail "a continued file differs"
rm "$cache/toy/sub/plain.txt"
head -c 9000 /dev/zero >"$cache/toy/sub/plain.txt.part1"
spoiled=$({ head -c 9000 /dev/zero; tail -c +9001 "$scratch/web/plain.txt"; } | sha256sum | cut -c1-64)
expect 3 "toy/sub/plain.txt: sha256 is $spoiled, should be $sha" "$fetch" toy
[ -e "$cache/toy/sub/plain.txt" ] && fail "a wrong file is kept"
expect 0 '1 new' "$fetch" toy # the whole is read again

# A spoiled file in the cache is noticed and got again.
echo more >>"$cache/toy/unzipped.txt"
expect 0 'toy/unzipped.txt: git blob is [0-9a-f]{40}, should be '"$blob" "$fetch" toy
cmp "$scratch/web/plain.txt" "$cache/toy/unzipped.txt" || fail "a spoiled file stays"

# A mirror without network; wrong bytes, rows and sizes there.
cp "$scratch/web/plain.txt" "$scratch/mirror/toy/a.txt"
toy "$(line a.txt '"https://nowhere.invalid/a"' 5000 lines null "\"$sha\"" null false)"
expect 0 '1 new' "$fetch" --from "$scratch/mirror" toy
sed -i 's/^7$/8/' "$scratch/mirror/toy/a.txt"
rm "$cache/toy/a.txt"
expect 3 'toy/a.txt: sha256 is [0-9a-f]{64}, should be '"$sha" "$fetch" --from "$scratch/mirror" toy
toy "$(line a.txt '"https://nowhere.invalid/a"' 4999 lines null null null false)"
expect 3 'toy/a.txt: 5000 rows, should be 4999' "$fetch" --from="$scratch/mirror" toy
toy "$(line a.txt '"https://nowhere.invalid/a"' null lines 17 null null false)"
expect 3 'toy/a.txt: 23893 bytes, should be 17' "$fetch" --from "$scratch/mirror" toy
toy "$(line b.txt '"https://nowhere.invalid/b"' null lines 17 null null false)"
expect 3 'toy/b.txt: not in .*mirror' "$fetch" --from "$scratch/mirror" toy
toy "$(line gone.txt "\"$url/gone.txt\"" 1 lines null null null false)"
expect 3 'toy/gone.txt: file.*gone.txt could not be read' "$fetch" toy
expect 2 'no data set "toys"; there are: toy' "$fetch" toys
expect 2 'unknown option --form' "$fetch" --form x
expect 2 'no such folder' "$fetch" --from "$scratch/nowhere"

# The real files, where they are here.
data=${GATERQ_DATA:-$source/../shared/datasets}
if [ -d "$data/cmmlu" ] && [ -f "$data/nq_open/NQ-open.dev.jsonl" ]; then
    expect 0 'CMMLU.*' datasets/fetch --from "$data" cmmlu nq_open
    expect 0 'cmmlu +CMMLU: 11582 rows, 134 of 134 files here and verified' datasets/fetch --list
else
    echo "SKIPPED in part: cmmlu and nq_open are neither in \$GATERQ_DATA nor in ../shared/datasets"
fi
finish
