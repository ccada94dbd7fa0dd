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

/* Bytes of the line end at r->at: 1 for LF, 2 for CRLF, 0 for anything else. */
static size_t line_end(const tsv_reader *r)
{
    if (r->at == r->end) return 0;
    if (*r->at == '\n') return 1;
    return *r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n' ? 2 : 0;
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
    if (r->at < r->end && *r->at != '\t' && line_end(r) == 0)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, column %zu: text follows a closing quote", r->path, r->line,
                        record->n_fields + 1);
    *to = '\0';
    return GRQ_OK;
}

static grq_status plain_field(tsv_reader *r, const tsv_record *record, char **field, grq_error *err)
{
    *field = r->at;
    while (r->at < r->end && *r->at != '\t' && *r->at != '\n' && *r->at != '\r') r->at++;
    if (r->at < r->end && *r->at == '\r' && line_end(r) == 0)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, column %zu: a carriage return without a line feed", r->path,
                        r->line, record->n_fields + 1);
    return GRQ_OK;
}

/* Ends a field in place: a NUL over the tab or line end behind it. Whether it was a tab: then another field follows. */
static bool end_field(tsv_reader *r)
{
    const bool tab = r->at < r->end && *r->at == '\t';
    const size_t n = tab ? 1 : line_end(r);
    if (n) *r->at = '\0'; /* else the end of the text, where a NUL stands already */
    r->at += n;
    r->line += n && !tab;
    return tab;
}

grq_status tsv_next(tsv_reader *r, tsv_record *out, bool *more, grq_error *err)
{
    for (size_t n; (n = line_end(r)) > 0; r->line++) r->at += n;
    *more = r->at < r->end;
    out->n_fields = 0;
    out->line = r->line;
    if (!*more) return GRQ_OK;
    const char *const begin = r->at;
    do {
        if (out->n_fields == TSV_MAX_FIELDS)
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu has more than %d columns", r->path, out->line,
                            TSV_MAX_FIELDS);
        char **field = &out->fields[out->n_fields];
        const bool quoted = r->at < r->end && *r->at == '"';
        const grq_status st = quoted ? quoted_field(r, out, field, err) : plain_field(r, out, field, err);
        if (st != GRQ_OK) return st;
        out->n_fields++;
    } while (end_field(r));
    if (r->at - begin > TSV_MAX_RECORD)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu: a record of %td bytes; %d are allowed", r->path, out->line,
                        r->at - begin, TSV_MAX_RECORD);
    return GRQ_OK;
}
