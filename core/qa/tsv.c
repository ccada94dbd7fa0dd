#include "qa/tsv.h"

#include <string.h>

#include "base/utf8.h"

grq_status tsv_start(const char *path, char *text, size_t n, tsv_reader *out, grq_error *err)
{
    size_t line = 1;
    for (size_t at = 0; at < n;) {
        const size_t length = grq_utf8_length(text + at, n - at);
        if (text[at] == '\0') return grq_fail(err, GRQ_E_DATA, "%s: line %zu holds a NUL byte", path, line);
        if (length == 0) return grq_fail(err, GRQ_E_DATA, "%s: line %zu is not valid UTF-8", path, line);
        line += text[at] == '\n';
        at += length;
    }
    const size_t mark = n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0;
    *out = (tsv_reader){ .path = path, .at = text + mark, .end = text + n, .line = 1 };
    return GRQ_OK;
}

/* A field that starts with a quote: "" is a quote, everything else up to the closing quote is itself. */
static grq_status quoted_field(tsv_reader *r, const tsv_record *record, char **field, grq_error *err)
{
    char *to = ++r->at;
    *field = to;
    for (; r->at < r->end; r->at++) {
        if (*r->at == '"') {
            if (r->at + 1 < r->end && r->at[1] == '"') r->at++;
            else break;
        }
        r->line += *r->at == '\n';
        *to++ = *r->at;
    }
    if (r->at == r->end)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, column %zu: a quoted field has no end", r->path, record->line,
                        record->n_fields + 1);
    r->at++;
    if (r->at < r->end && *r->at != '\t' && *r->at != '\n' && *r->at != '\r')
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, column %zu: text follows a closing quote", r->path, r->line,
                        record->n_fields + 1);
    *to = '\0';
    return GRQ_OK;
}

/* At the end of a field: what ends it is overwritten, so it is looked at first. Returns the character, 0 at the end. */
static char end_field(tsv_reader *r)
{
    if (r->at == r->end) return '\0';
    char mark = *r->at;
    if (mark == '\r' && r->at + 1 < r->end && r->at[1] == '\n') {
        *r->at++ = '\0';
        mark = '\n';
    }
    *r->at++ = '\0';
    return mark;
}

grq_status tsv_next(tsv_reader *r, tsv_record *out, bool *more, grq_error *err)
{
    while (r->at < r->end && (*r->at == '\n' || (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n'))) {
        r->line += *r->at == '\n';
        r->at++;
    }
    *more = r->at < r->end;
    out->n_fields = 0;
    out->line = r->line;
    if (!*more) return GRQ_OK;
    for (;;) {
        if (out->n_fields == TSV_MAX_FIELDS)
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu has more than %d columns", r->path, out->line,
                            TSV_MAX_FIELDS);
        char **field = &out->fields[out->n_fields];
        if (r->at < r->end && *r->at == '"') {
            const grq_status st = quoted_field(r, out, field, err);
            if (st != GRQ_OK) return st;
        } else {
            *field = r->at;
            while (r->at < r->end && *r->at != '\t' && *r->at != '\n') r->at++;
            if (r->at < r->end && *r->at == '\n' && r->at > *field && r->at[-1] == '\r') r->at--; /* CRLF */
        }
        out->n_fields++;
        const char mark = end_field(r);
        if (mark == '\n') r->line++;
        if (mark != '\t') return GRQ_OK;
    }
}
