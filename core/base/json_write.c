/* The text grows in compact form; the indented form is made from it when asked for. */
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "gaterq/file.h"
#include "gaterq/json.h"

enum { MAX_DEPTH = 64 };

typedef struct {
    char *bytes; /* NUL-terminated once non-NULL */
    size_t n, room;
    bool failed; /* out of memory */
} text_buffer;

struct grq_json_writer {
    text_buffer compact, indented;
    char open[MAX_DEPTH]; /* '{' or '[' per open container */
    unsigned depth;
    bool needs_comma, complete;
    char misuse[160]; /* the first one; empty if none */
};

/* ---- text ------------------------------------------------------------------------------------------------------ */

static void append(text_buffer *t, const char *bytes, size_t n)
{
    if (t->failed) return;
    if (t->room - t->n <= n) {
        size_t room = t->room ? t->room : 256;
        while (room - t->n <= n && room <= SIZE_MAX / 2) room *= 2;
        char *const more = room - t->n > n ? realloc(t->bytes, room) : NULL;
        if (!more) {
            t->failed = true;
            return;
        }
        t->bytes = more;
        t->room = room;
    }
    if (n) memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    t->bytes[t->n] = '\0';
}

static void append_text(text_buffer *t, const char *text)
{
    append(t, text, strlen(text));
}

/* A string in quotes. Broken bytes become U+FFFD, one each; control characters become escapes. */
static void append_string(text_buffer *t, const char *text)
{
    append(t, "\"", 1);
    size_t left = strlen(text);
    while (left > 0) {
        const size_t n = grq_utf8_length(text, left);
        const unsigned char c = (unsigned char)*text;
        char escape[8];
        if (n == 0) {
            append_text(t, "\xEF\xBF\xBD");
        } else if (c == '"' || c == '\\') {
            append(t, (const char[]){ '\\', (char)c }, 2);
        } else if (c < 0x20 || c == 0x7F) {
            const char *const named = c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : NULL;
            snprintf(escape, sizeof escape, "\\u%04x", c);
            append_text(t, named ? named : escape);
        } else {
            append(t, text, n);
        }
        text += n ? n : 1;
        left -= n ? n : 1;
    }
    append(t, "\"", 1);
}

/* ---- structure ------------------------------------------------------------------------------------------------- */

grq_json_writer *grq_json_writer_new(void)
{
    return calloc(1, sizeof(grq_json_writer));
}

void grq_json_writer_free(grq_json_writer *w)
{
    if (!w) return;
    free(w->compact.bytes);
    free(w->indented.bytes);
    free(w);
}

static void __attribute__((format(printf, 2, 3))) misuse(grq_json_writer *w, const char *format, ...)
{
    if (w->misuse[0]) return;
    va_list args;
    va_start(args, format);
    vsnprintf(w->misuse, sizeof w->misuse, format, args);
    va_end(args);
}

/* Comma and key before a value; false if no value may stand here. */
static bool begin_value(grq_json_writer *w, const char *key)
{
    if (w->misuse[0]) return false;
    const bool in_object = w->depth > 0 && w->open[w->depth - 1] == '{';
    if (w->complete) misuse(w, "a value after the end of the document");
    else if (in_object && !key) misuse(w, "a value without a key inside an object");
    else if (!in_object && key) misuse(w, "the key \"%s\" outside an object", key);
    if (w->misuse[0]) return false;
    if (w->needs_comma) append(&w->compact, ",", 1);
    if (key) {
        append_string(&w->compact, key);
        append(&w->compact, ":", 1);
    }
    return true;
}

static void end_value(grq_json_writer *w)
{
    w->needs_comma = w->depth > 0;
    w->complete = w->depth == 0;
}

static void begin_container(grq_json_writer *w, const char *key, char bracket)
{
    if (!begin_value(w, key)) return;
    if (w->depth == MAX_DEPTH) {
        misuse(w, "nested more than %d levels deep", MAX_DEPTH);
        return;
    }
    append(&w->compact, &bracket, 1);
    w->open[w->depth++] = bracket;
    w->needs_comma = false;
}

static void end_container(grq_json_writer *w, char bracket)
{
    if (w->misuse[0]) return;
    if (w->depth == 0 || w->open[w->depth - 1] != bracket) {
        misuse(w, "an %s is ended that was not begun", bracket == '{' ? "object" : "array");
        return;
    }
    append(&w->compact, bracket == '{' ? "}" : "]", 1);
    w->depth--;
    end_value(w);
}

void grq_json_begin_object(grq_json_writer *w, const char *key)
{
    begin_container(w, key, '{');
}

void grq_json_end_object(grq_json_writer *w)
{
    end_container(w, '{');
}

void grq_json_begin_array(grq_json_writer *w, const char *key)
{
    begin_container(w, key, '[');
}

void grq_json_end_array(grq_json_writer *w)
{
    end_container(w, '[');
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static void put(grq_json_writer *w, const char *key, const char *value)
{
    if (!begin_value(w, key)) return;
    append_text(&w->compact, value);
    end_value(w);
}

void grq_json_put_string(grq_json_writer *w, const char *key, const char *value)
{
    if (!value) {
        grq_json_put_null(w, key);
        return;
    }
    if (!begin_value(w, key)) return;
    append_string(&w->compact, value);
    end_value(w);
}

/* Below 2^53 every reader of JSON keeps the value; above, only a string is safe. */
static void put_integer(grq_json_writer *w, const char *key, bool negative, uint64_t magnitude)
{
    const char *const quote = magnitude >= UINT64_C(1) << 53 ? "\"" : "";
    char text[32];
    snprintf(text, sizeof text, "%s%s%" PRIu64 "%s", quote, negative ? "-" : "", magnitude, quote);
    put(w, key, text);
}

void grq_json_put_u64(grq_json_writer *w, const char *key, uint64_t value)
{
    put_integer(w, key, false, value);
}

void grq_json_put_i64(grq_json_writer *w, const char *key, int64_t value)
{
    put_integer(w, key, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* 15 digits survive any trip through a normal double, so fewer are never shorter than %.15g, which drops zeros;
 * subnormals have fewer digits and need the search from 1. */
static void shortest_decimal(double value, char *text, size_t room)
{
    for (int digits = fabs(value) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, room, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    const char *const point = localeconv()->decimal_point; /* a program may have set a locale that writes 1,5 */
    char *const at = strcmp(point, ".") ? strstr(text, point) : NULL;
    if (at) {
        *at = '.';
        memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
    }
}

void grq_json_put_f64(grq_json_writer *w, const char *key, double value)
{
    char text[64] = "null";
    if (isfinite(value)) shortest_decimal(value, text, sizeof text);
    put(w, key, text);
}

void grq_json_put_bool(grq_json_writer *w, const char *key, bool value)
{
    put(w, key, value ? "true" : "false");
}

void grq_json_put_null(grq_json_writer *w, const char *key)
{
    put(w, key, "null");
}

/* ---- the finished text ----------------------------------------------------------------------------------------- */

/* Whether the array that opens at `p` holds containers. */
static bool holds_containers(const char *p)
{
    bool in_string = false;
    for (p++; *p; p++) {
        if (in_string && *p == '\\') p++;
        else if (*p == '"') in_string = !in_string;
        else if (!in_string && (*p == '[' || *p == '{')) return true;
        else if (!in_string && *p == ']') return false;
    }
    return false;
}

static void new_line(text_buffer *t, unsigned depth)
{
    append(t, "\n", 1);
    for (unsigned i = 0; i < depth; i++) append(t, "  ", 2);
}

/* Copies compact JSON, adding line breaks and spaces between its tokens. */
static void indent(const char *p, text_buffer *t)
{
    unsigned depth = 0;
    bool on_one_line = false; /* inside an array of plain values */
    for (; *p; p++) {
        switch (*p) {
        case '"': {
            const char *const from = p;
            for (p++; *p != '"'; p++) p += *p == '\\';
            append(t, from, (size_t)(p - from) + 1);
            break;
        }
        case '{':
        case '[':
            append(t, p, 1);
            if (p[1] == '}' || p[1] == ']') append(t, ++p, 1);
            else if (*p == '[' && !holds_containers(p)) on_one_line = true;
            else new_line(t, ++depth);
            break;
        case '}':
        case ']':
            if (!on_one_line) new_line(t, --depth);
            on_one_line = false;
            append(t, p, 1);
            break;
        case ',':
            append(t, on_one_line ? ", " : ",", on_one_line ? 2 : 1);
            if (!on_one_line) new_line(t, depth);
            break;
        case ':': append(t, ": ", 2); break;
        default: append(t, p, 1);
        }
    }
}

grq_status grq_json_writer_text(grq_json_writer *w, bool compact, const char **text, grq_error *err)
{
    *text = NULL;
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "no memory for a JSON writer");
    if (!w->misuse[0] && !w->complete) misuse(w, w->depth ? "a container is still open" : "no value was written");
    if (w->misuse[0]) return grq_fail(err, GRQ_E_DATA, "JSON writer misused: %s", w->misuse);
    if (!compact && !w->indented.bytes && !w->compact.failed) indent(w->compact.bytes, &w->indented);
    if (w->compact.failed || w->indented.failed) return grq_fail(err, GRQ_E_NOMEM, "no memory for the JSON text");
    *text = compact ? w->compact.bytes : w->indented.bytes;
    return GRQ_OK;
}

grq_status grq_json_writer_save(grq_json_writer *w, const char *path, grq_error *err)
{
    const char *text;
    grq_status st = grq_json_writer_text(w, false, &text, err);
    if (st != GRQ_OK) return grq_fail_prefix(err, st, "%s", path);
    grq_outfile *file;
    st = grq_outfile_open(path, &file, err);
    if (st != GRQ_OK) return st;
    fputs(text, grq_outfile_stream(file)); /* commit reports a short write */
    fputc('\n', grq_outfile_stream(file));
    return grq_outfile_commit(file, err);
}
