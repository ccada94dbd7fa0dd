# Shared by the tests of the tool: a scratch folder, and checks that say what they expected.
set -u
: "${GATERQ:?GATERQ must name the tool}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

fail() {
    echo "FAIL: $*" >&2
    failures=$((failures + 1))
}

# expect CODE PATTERN COMMAND...: the exit code, and an extended regular expression in stdout or stderr.
expect() {
    local code=$1 pattern=$2
    shift 2
    local output got
    output=$("$@" 2>&1 </dev/null)
    got=$?
    [ "$got" = "$code" ] || fail "exit $got, expected $code: $* -> $(tail -c 400 <<<"$output")"
    grep -Eq -- "$pattern" <<<"$output" || fail "\"$pattern\" is not in the output of: $* -> $(tail -c 400 <<<"$output")"
}

finish() {
    [ "$failures" = 0 ] && echo "all checks passed"
    exit $((failures > 0))
}
