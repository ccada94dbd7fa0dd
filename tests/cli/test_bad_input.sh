# Every command that reads a file is given an empty one, a folder, a pipe, pieces of the right one, garbage, doubled keys,
# text behind the end, one that may not be read and one that is not there. It must end with exit 2 or 3, name the file,
# and leave the file that it would have written as it was.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tiny_model.sh"
files="$(dirname "$GATERQ")/tests/layer_files"
[ -x "$files" ] || { echo "SKIPPED: $files is not built" >&2; exit 77; }
tiny_model "$scratch/m" || { fail "no tiny model"; finish; }
root=$PWD
cd "$scratch" || exit 1
failed="$scratch/failed"
n_runs=0
: >failed
mkdir bad

# Root may read anything: then another user tries.
as_user=()
if [ "$(id -u)" = 0 ]; then
    chmod 755 "$scratch"
    as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    "${as_user[@]}" "$GATERQ" --help >/dev/null 2>&1 || {
        as_user=()
        echo "SKIPPED: files that may not be read: this is root, and no other user can run the tool" >&2
    }
fi
unreadable() { [ "$(id -u)" != 0 ] || [ ${#as_user[@]} -gt 0 ]; }

# check NAME OUT COMMAND...: one run; NAME is what the message must contain.
check() {
    local name=$1 out=$2 code
    shift 2
    local log
    log=$(mktemp log.XXXXXX)
    timeout -s KILL 60 "$@" >"$log" 2>&1 </dev/null
    code=$?
    [ $code = 2 ] || [ $code = 3 ] || echo "exit $code: $* -> $(tail -c 300 "$log")" >>"$failed"
    grep -qF -- "$name" "$log" || echo "\"$name\" is not named by: $* -> $(tail -c 300 "$log")" >>"$failed"
    [ "$(wc -l <"$log")" -le 6 ] || echo "many words: $* -> $(head -c 300 "$log")" >>"$failed"
    [ -z "$out" ] || printf precious | cmp -s - "$out" || echo "$out did not survive: $*" >>"$failed"
    rm -f "$log"
}

# spoil FAULT GOOD BAD: GOOD with this fault; false where it makes no sense.
spoil() {
    local fault=$1 good=$2 bad=$3
    rm -rf "$bad"
    case $fault in
        empty) : >"$bad" ;;
        folder) mkdir "$bad" ;;
        pipe) mkfifo "$bad" ;;
        missing) ;;
        half) head -c $(($(stat -c %s "$good") / 2)) "$good" >"$bad" ;;
        short) perl -0777 -pe 's/\s*.\s*\z//s' "$good" >"$bad" ;; # the last byte that says something
        garbage) perl -e 'srand 3; print map { chr int rand 256 } 1 .. 5000' >"$bad" ;;
        binary) { cat "$good"; printf '\000'; cat "$good"; } >"$bad" ;;
        nowhere) printf 'no-such-file\tno-such-file\n' >"$bad" ;;
        zeros) head -c 5000 /dev/zero >"$bad" ;;
        huge-header) { printf '\377\377\377\377\377\377\377\177'; tail -c +9 "$good"; } >"$bad" ;;
        large-header) { printf '\000\000\000\000\020\000\000\000'; tail -c +9 "$good"; } >"$bad" ;;
        trailing) { cat "$good"; printf 'x'; } >"$bad" ;;
        text) { cat "$good"; printf '\n{"a": 1}\n'; } >"$bad" ;;
        # The first key once more, in front: the object then has it twice.
        twice) perl -0777 -pe 's/^(\s*\{\s*)("(?:[^"\\]|\\.)*")/$1$2: 1, $2/' "$good" >"$bad" ;;
        header-twice) perl -0777 -ne '$n = unpack "Q<"; $h = substr $_, 8, $n; $h =~ s/^\{\s*("(?:[^"\\]|\\.)*")/{$1:{},$1/; print pack("Q<", length $h), $h, substr $_, 8 + $n' "$good" >"$bad" ;;
        secret) unreadable || return 1; cp "$good" "$bad"; chmod 000 "$bad" ;;
    esac
}

declare -A faults=(
    [safetensors]="empty folder pipe missing half short garbage zeros huge-header large-header trailing header-twice secret"
    [h5]="empty folder pipe missing half garbage zeros secret"
    [json]="empty folder pipe missing half short garbage zeros text twice secret"
    [jsonl]="empty folder pipe missing half garbage zeros trailing twice secret"
    [map]="empty folder pipe missing short garbage trailing secret"
    [text]="folder pipe missing garbage zeros text secret"
    [table]="empty folder pipe missing garbage zeros binary nowhere secret"
)

# run_fault FAULT NAME OUT COMMAND...: pipes may be waited for a while, so these runs overlap.
run_fault() {
    local fault=$1 name=$2 out=$3
    shift 3
    n_runs=$((n_runs + 1))
    if [ "$fault" = secret ]; then
        check "$name" "" "${as_user[@]}" "$@"
    elif [ "$fault" = pipe ]; then
        check "$name" "" "$@" &
    else
        [ -z "$out" ] || printf precious >"$out"
        check "$name" "$out" "$@"
    fi
}

# attack KIND GOOD OUT COMMAND...: @ in the command is the spoilt file.
attack() {
    local kind=$1 good=$2 out=$3 fault number=$n_runs
    shift 3
    [ -f "$good" ] || { fail "no $good to spoil"; return; }
    for fault in ${faults[$kind]}; do
        local bad="bad/$number-$fault.$kind"
        spoil "$fault" "$good" "$bad" || continue
        run_fault "$fault" "$number-$fault.$kind" "$out" "${@//@/$bad}"
    done
}

# attack_in KIND FOLDER NAME OUT COMMAND...: @ is a copy of FOLDER in which NAME is spoilt. A folder is read without an
# index too, and then does not know what it lacks: $spared names the fault that is none.
spared=
attack_in() {
    local kind=$1 folder=$2 name=$3 out=$4 fault number=$n_runs
    shift 4
    [ -f "$folder/$name" ] || { fail "no $folder/$name to spoil"; return; }
    for fault in ${faults[$kind]}; do
        [ "$fault" != "$spared" ] || continue
        local copy="bad/$number-$fault"
        cp -r "$folder" "$copy"
        spoil "$fault" "$folder/$name" "$copy/$name" || continue
        run_fault "$fault" "$name" "$out" "${@//@/$copy}"
    done
}

# ---- files that are right ----

model=m/model.safetensors
run=("--model" $model --codes m/codes --counts m/counts.safetensors)
{
    "$GATERQ" trace "${run[@]}" --tokens 300 --out text.h5 &&
        "$GATERQ" eval --model $model --questions 5 --out a.jsonl &&
        "$GATERQ" world --config m/tiny.json --out facts.tsv &&
        "$GATERQ" score --suite popqa --data facts.tsv --predictions a.jsonl --partial &&
        "$files" checkpoint deepseek deepseek && "$files" checkpoint qwen qwen && "$files" checkpoint own own &&
        "$files" input x.h5 own 0 20 &&
        "$GATERQ" encode --memory own --layer 1 --out own.codes
} >setup 2>&1 || fail "setting up: $(tail -5 setup)"
sed 's/}$/, "correct": true}/' a.jsonl >b.jsonl
grep -q correct a.jsonl && cp a.jsonl b.jsonl
perl -e 'print pack "l<*", 0 .. 49' >map
printf '1\n2\n3\n' >ids
printf 'row_id,scale\n%s' "$(for i in $(seq 40); do echo "$((i % 7)),0.$i"; done)" >log.csv
cat >tokenizer.json <<'JSON'
{"version": "1.0", "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"A": 0, "a": 1, "b": 2}, "merges": []}, "added_tokens": []}
JSON
"$GATERQ" compare b.jsonl b.jsonl >setup 2>&1 || fail "compare: $(cat setup)"
"$GATERQ" premise --log log.csv >setup 2>&1 || fail "premise --log: $(cat setup)"
table=(--table own/memory.safetensors:memory.1.table)

# ---- the memory core ----

attack text ids "" "$GATERQ" hash --family engram-v1 --layer 1 --tokens @
attack map map "" "$GATERQ" hash --layer 1 --ids 1 --token-map @
attack json tokenizer.json o "$GATERQ" tokenmap @ --out o --expect 2
attack h5 x.h5 o "$GATERQ" layer --memory own --layer 1 --input @ --output o
attack safetensors own.codes o "$GATERQ" layer --memory own --layer 1 --input x.h5 --output o --codes @
attack map map o "$GATERQ" layer --memory deepseek --layer 1 --input x.h5 --output o --token-map @
attack_in json own memory.json o "$GATERQ" layer --memory @ --layer 1 --input x.h5 --output o
spared=missing
attack_in safetensors own memory.safetensors o "$GATERQ" layer --memory @ --layer 1 --input x.h5 --output o
attack_in json deepseek model.safetensors.index.json o "$GATERQ" layer --memory @ --layer 1 --input x.h5 --output o
attack_in safetensors qwen model-00002-of-00002.safetensors o "$GATERQ" encode --memory @ --layer 1 --out o
spared=
attack_in json deepseek config.json o "$GATERQ" encode --memory @ --layer 1 --out o
attack_in safetensors deepseek model-00047-of-00048.safetensors o "$GATERQ" encode --memory @ --layer 1 --out o
attack safetensors $model "" "$GATERQ" explain --model @ --codes m/codes --counts m/counts.safetensors word
attack safetensors m/counts.safetensors "" "$GATERQ" explain --model m --counts @ word
attack_in safetensors m/codes layer-2.safetensors "" "$GATERQ" explain --model m --codes @ word
attack h5 text.h5 "" "$GATERQ" explain --trace @

# ---- codes ----

attack safetensors own/memory.safetensors o "$GATERQ" encode --table @:memory.1.table --out o
attack safetensors own.codes o "$GATERQ" encode --join @ --out o
attack safetensors own.codes "" "$GATERQ" decode @ --rows 0
attack safetensors own.codes "" "$GATERQ" distort @ "${table[@]}"
attack safetensors own/memory.safetensors "" "$GATERQ" distort own.codes --table @:memory.1.table
attack h5 text.h5 "" "$GATERQ" distort m/codes/layer-1.safetensors --memory m --layer 1 --trace @
attack safetensors own.codes o "$GATERQ" verify @ "${table[@]}" --receipt o
attack safetensors own/memory.safetensors o "$GATERQ" verify own.codes --table @:memory.1.table --receipt o

# ---- models, counts, traces, predictions ----

attack safetensors $model o "$GATERQ" count --model @ --codes m/codes --tokens 500 --out o
attack json m/tiny.json o "$GATERQ" count --model $model --codes m/codes --config @ --tokens 500 --out o
attack_in safetensors m/codes layer-1.safetensors o "$GATERQ" count --model $model --codes @ --tokens 500 --out o
attack safetensors $model o "$GATERQ" trace --model @ --codes m/codes --counts m/counts.safetensors --tokens 300 --out o
attack safetensors m/counts.safetensors o "$GATERQ" trace --model $model --codes m/codes --counts @ --tokens 300 --out o
attack json m/tiny.json o "$GATERQ" trace "${run[@]}" --config @ --tokens 300 --out o
attack_in json m/codes layer-1.safetensors.receipt.json o "$GATERQ" trace --model $model --codes @ --counts m/counts.safetensors --tokens 300 --out o
attack h5 text.h5 "" "$GATERQ" premise @ --bootstrap 10
attack table log.csv "" "$GATERQ" premise --log @
attack h5 text.h5 "" "$GATERQ" ablate @ --bootstrap 10
attack safetensors $model o "$GATERQ" eval --model @ --questions 3 --out o
attack json m/tiny.json o "$GATERQ" eval --model $model --config @ --questions 3 --out o
attack_in safetensors m/codes layer-1.safetensors o "$GATERQ" eval --model $model --codes @ --depth 1 --questions 3 --out o
attack safetensors m/counts.safetensors o "$GATERQ" eval --model $model --codes m/codes --counts @ --policy prior --questions 3 --out o
attack table facts.tsv "" "$GATERQ" score --suite popqa --data @ --predictions a.jsonl
attack jsonl a.jsonl "" "$GATERQ" score --suite popqa --data facts.tsv --predictions @ --partial
attack jsonl b.jsonl "" "$GATERQ" compare @ b.jsonl
attack jsonl b.jsonl "" "$GATERQ" compare b.jsonl @
printf 'b.jsonl\tb.jsonl\n' >family
attack table family "" "$GATERQ" compare --family @
attack json m/tiny.json o "$GATERQ" train --config @ --out o
attack json m/tiny.json o "$GATERQ" world --config @ --out o
attack json m/tiny.json "" "$GATERQ" run @ --out made
wait
[ -e made ] && fail "a refused config left a run's folder"
find . -name '*tmp*' | grep -q . && fail "temporary files were left: $(find . -name '*tmp*')"
[ "$n_runs" -gt 300 ] || fail "only $n_runs runs"

while read -r line; do fail "$line"; done <"$failed"
cd "$root" || exit 1
echo "$n_runs runs"
finish
