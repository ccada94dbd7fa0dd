#include "memory/token_key.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

enum {
    LONE_SPACE = 0xE000, /* stands for a string that is one space while the ends are trimmed */
    MAX_UTF8_BYTES = 4
};

/* UTF-8 without U+FFFD: a decoder writes that character for broken bytes, so one that is really there counts as broken
 * too. */
static bool is_text(const char *bytes, size_t n_bytes)
{
    for (size_t n; n_bytes > 0; bytes += n, n_bytes -= n) {
        n = grq_utf8_length(bytes, n_bytes);
        if (n == 0 || (n == 3 && memcmp(bytes, "\uFFFD", 3) == 0)) return false;
    }
    return true;
}

/* NFKC and then NFD. Composing changes nothing that decomposing does not undo, so this is NFKD. The caller frees
 * *points. */
static grq_status decompose(const char *text, size_t n_bytes, utf8proc_int32_t **points, size_t *n, grq_error *err)
{
    static const utf8proc_option_t nfkd = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
    const utf8proc_uint8_t *const bytes = (const utf8proc_uint8_t *)text;
    *points = NULL;
    *n = 0;
    const utf8proc_ssize_t room = utf8proc_decompose(bytes, (utf8proc_ssize_t)n_bytes, NULL, 0, nfkd);
    if (room < 0) return grq_fail(err, GRQ_E_DATA, "NFKD of a token: %s", utf8proc_errmsg(room));
    *points = malloc(((size_t)room + 1) * sizeof **points);
    if (!*points) return grq_fail(err, GRQ_E_NOMEM, "no memory for a token of %zu bytes", n_bytes);
    *n = (size_t)utf8proc_decompose(bytes, (utf8proc_ssize_t)n_bytes, *points, room, nfkd);
    return GRQ_OK;
}

static bool is_mark(utf8proc_int32_t c)
{
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

/* The characters whose runs become one space: neither VT nor FF. */
static bool is_blank(utf8proc_int32_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Unicode's White_Space, as far as it is left after NFKD, which turns every other one into a space. */
static bool is_white_space(utf8proc_int32_t c)
{
    return (c >= '\t' && c <= '\r') || c == ' ' || c == 0x85 || c == 0x1680 || c == 0x2028 || c == 0x2029;
}

/* Marks go, capitals become small, runs of blanks become one space; in place, returns how many are left. The one letter
 * whose small form is more than one character, U+0130, is decomposed by now, and a sigma is small whatever its place:
 * so the simple mapping is the full one without context (that of qa/text_case.h has Python's final sigma). */
static size_t fold(utf8proc_int32_t *points, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const utf8proc_int32_t c = points[i];
        if (is_mark(c)) continue;
        if (!is_blank(c)) points[kept++] = utf8proc_tolower(c);
        else if (kept == 0 || points[kept - 1] != ' ') points[kept++] = ' ';
    }
    return kept;
}

/* Moves *points past the white space at its start, and returns how many are left before that at its end. */
static size_t trim(utf8proc_int32_t **points, size_t n)
{
    if (n == 1 && **points == ' ') **points = LONE_SPACE;
    for (; n > 0 && is_white_space(**points); n--) ++*points;
    while (n > 0 && is_white_space((*points)[n - 1])) n--;
    return n;
}

/* Every LONE_SPACE becomes a space, also one that the token itself had: so the chain is defined. */
static size_t encode(const utf8proc_int32_t *points, size_t n, char *to)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes +=
            (size_t)utf8proc_encode_char(points[i] == LONE_SPACE ? ' ' : points[i], (utf8proc_uint8_t *)to + n_bytes);
    return n_bytes;
}

static grq_status make_room(char **key, size_t n_bytes, grq_error *err)
{
    *key = malloc(n_bytes + 1);
    return *key ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for a key of %zu bytes", n_bytes);
}

static grq_status copy(const char *bytes, size_t n_bytes, char **key, size_t *n_key, grq_error *err)
{
    const grq_status st = make_room(key, n_bytes, err);
    if (st != GRQ_OK) return st;
    memcpy(*key, bytes, n_bytes);
    *n_key = n_bytes;
    return GRQ_OK;
}

grq_status grq_token_key(const char *bytes, size_t n_bytes, const char *spelling, char **key, size_t *n_key,
                         grq_error *err)
{
    *key = NULL;
    *n_key = 0;
    grq_status st;
    if (is_text(bytes, n_bytes)) {
        utf8proc_int32_t *points;
        size_t n;
        st = decompose(bytes, n_bytes, &points, &n, err);
        if (st != GRQ_OK) return st;
        utf8proc_int32_t *first = points;
        n = trim(&first, fold(points, n));
        if (n == 0) st = copy(bytes, n_bytes, key, n_key, err);
        else if ((st = make_room(key, n * MAX_UTF8_BYTES, err)) == GRQ_OK) *n_key = encode(first, n, *key);
        free(points);
    } else {
        st = copy(spelling, strlen(spelling), key, n_key, err);
    }
    if (st == GRQ_OK) (*key)[*n_key] = '\0';
    return st;
}
