/* cJSON alone is too lax for configurations: it takes "01", "1.", "+1", raw control characters and broken UTF-8, cuts
 * strings at an escaped NUL and numbers at 63 characters. So the text is checked here first, and cJSON builds the tree.
 */
#include "base/json_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

enum { MAX_NUMBER_CHARS = 63 }; /* what cJSON 1.7 hands to strtod */

typedef struct {
    const char *name;
    const char *start, *at, *end;
    size_t n_values;
    grq_error *err;
} scan;

/* Fails at `at`, whose line and column (in characters, from 1) are found only now. */
static grq_status fail_at(const scan *s, const char *at, const char *what)
{
    size_t line = 1, column = 1;
    for (const char *p = s->start; p < at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xC0) != 0x80) {
            column++;
        }
    }
    return grq_fail(s->err, GRQ_E_DATA, "%s:%zu:%zu: %s", s->name, line, column, what);
}

static grq_status fail_here(const scan *s, const char *what)
{
    if (s->at == s->end) return fail_at(s, s->at, "the text ends too early");
    if (*s->at == '\0') return fail_at(s, s->at, "a NUL byte");
    return fail_at(s, s->at, what);
}

static void skip_space(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')) s->at++;
}

static bool take(scan *s, char c)
{
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static size_t skip_digits(scan *s)
{
    const char *const from = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9') s->at++;
    return (size_t)(s->at - from);
}

/* Overflow to infinity is left to the reader, which knows the value's path. */
static grq_status check_number(scan *s)
{
    const char *const from = s->at;
    take(s, '-');
    if (take(s, '0')) {
        if (s->at < s->end && *s->at >= '0' && *s->at <= '9') return fail_at(s, from, "a number must not start with 0");
    } else if (skip_digits(s) == 0) {
        return fail_here(s, "a digit must follow the sign");
    }
    if (take(s, '.') && skip_digits(s) == 0) return fail_here(s, "a digit must follow the decimal point");
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        if (!take(s, '-')) take(s, '+');
        if (skip_digits(s) == 0) return fail_here(s, "a digit must follow the exponent's e");
    }
    if (s->at - from > MAX_NUMBER_CHARS) return fail_at(s, from, "a number of more than 63 characters");
    return GRQ_OK;
}

/* Four hex digits after \u; -1 if they are not. */
static int32_t hex4(scan *s)
{
    int32_t value = 0;
    if (s->end - s->at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char c = s->at[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    s->at += 4;
    return value;
}

static grq_status check_escape(scan *s)
{
    const char *const from = s->at++;
    if (s->at == s->end) return fail_here(s, "");
    const char c = *s->at++;
    if (c != 'u') return strchr("\"\\/bfnrt", c) && c ? GRQ_OK : fail_at(s, from, "an unknown escape in a string");
    const int32_t unit = hex4(s);
    if (unit < 0) return fail_at(s, from, "\\u must be followed by four hexadecimal digits");
    if (unit == 0) return fail_at(s, from, "\\u0000 is not allowed in a string");
    if (unit < 0xD800 || unit > 0xDFFF) return GRQ_OK;
    if (unit > 0xDBFF || !take(s, '\\') || !take(s, 'u')) return fail_at(s, from, "half of a surrogate pair");
    const int32_t low = hex4(s);
    return low >= 0xDC00 && low <= 0xDFFF ? GRQ_OK : fail_at(s, from, "half of a surrogate pair");
}

static grq_status check_string(scan *s)
{
    s->at++; /* the opening quote */
    while (s->at < s->end && *s->at != '"') {
        if (*s->at == '\\') {
            const grq_status st = check_escape(s);
            if (st != GRQ_OK) return st;
        } else if ((unsigned char)*s->at < 0x20) {
            return fail_here(s, "a control character in a string; write it as an escape");
        } else {
            const size_t n = grq_utf8_length(s->at, (size_t)(s->end - s->at));
            if (n == 0) return fail_at(s, s->at, "not UTF-8");
            s->at += n;
        }
    }
    return take(s, '"') ? GRQ_OK : fail_here(s, "");
}

static grq_status check_word(scan *s, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return fail_here(s, "not a JSON value (true, false and null are in lower case; strings are in double quotes)");
    s->at += n;
    return GRQ_OK;
}

static grq_status check_value(scan *s, unsigned depth);

static grq_status check_key(scan *s)
{
    skip_space(s);
    if (s->at == s->end || *s->at != '"') return fail_here(s, "a key in double quotes is expected");
    grq_status st = check_string(s);
    if (st != GRQ_OK) return st;
    skip_space(s);
    return take(s, ':') ? GRQ_OK : fail_here(s, "a colon is expected after the key");
}

static grq_status check_container(scan *s, unsigned depth, char close)
{
    if (depth == GRQ_JSON_MAX_DEPTH) return fail_here(s, "nested more than 200 levels deep");
    s->at++; /* the opening bracket */
    skip_space(s);
    if (take(s, close)) return GRQ_OK;
    for (;;) {
        grq_status st = close == '}' ? check_key(s) : GRQ_OK;
        if (st == GRQ_OK) st = check_value(s, depth + 1);
        if (st != GRQ_OK) return st;
        skip_space(s);
        if (take(s, close)) return GRQ_OK;
        if (!take(s, ',')) return fail_here(s, close == '}' ? "a comma or } is expected" : "a comma or ] is expected");
    }
}

static grq_status check_value(scan *s, unsigned depth)
{
    skip_space(s);
    s->n_values++;
    if (s->at == s->end) return fail_here(s, "");
    switch (*s->at) {
    case '{': return check_container(s, depth, '}');
    case '[': return check_container(s, depth, ']');
    case '"': return check_string(s);
    case 't': return check_word(s, "true");
    case 'f': return check_word(s, "false");
    case 'n': return check_word(s, "null");
    default:
        if (*s->at == '-' || (*s->at >= '0' && *s->at <= '9')) return check_number(s);
        return fail_here(s, "not a JSON value");
    }
}

grq_status grq_json_check(const char *name, const char *text, size_t n_bytes, size_t *n_values, grq_error *err)
{
    scan s = { .name = name, .start = text, .at = text, .end = text + n_bytes, .err = err };
    *n_values = 0;
    if (n_bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        return fail_at(&s, text, "starts with a byte order mark; save it as UTF-8 without one");
    grq_status st = check_value(&s, 0);
    if (st != GRQ_OK) return st;
    skip_space(&s);
    if (s.at != s.end) return fail_here(&s, "text after the end of the JSON value");
    *n_values = s.n_values;
    return GRQ_OK;
}
