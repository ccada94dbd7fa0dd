#include "qa/csv.h"

#include <string.h>

/* Bytes of the line end at r->at: 1 for LF, 2 for CRLF, 0 for anything else. */
static size_t line_end(const grq_csv *r)
{
    if (r->at == r->end) return 0;
    if (*r->at == '\n') return 1;
    return *r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n' ? 2 : 0;
}

/* A field that starts with a quote: "" is a quote, everything else up to the closing quote is itself. */
static grq_status quoted_field(grq_csv *r, const grq_csv_record *record, char **field, grq_error *err)
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
    if (r->at < r->end && *r->at != r->separator && line_end(r) == 0)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, column %zu: text follows a closing quote", r->path, r->line,
                        record->n_fields + 1);
    *to = '\0';
    return GRQ_OK;
}

static grq_status plain_field(grq_csv *r, const grq_csv_record *record, char **field, grq_error *err)
{
    *field = r->at;
    while (r->at < r->end && *r->at != r->separator && *r->at != '\n' && *r->at != '\r') r->at++;
    if (r->at < r->end && *r->at == '\r' && line_end(r) == 0)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, column %zu: a carriage return without a line feed", r->path,
                        r->line, record->n_fields + 1);
    return GRQ_OK;
}

/* Ends a field in place: a NUL over the separator or line end behind it. Whether it was a separator: then another field
 * follows. */
static bool end_field(grq_csv *r)
{
    const bool separated = r->at < r->end && *r->at == r->separator;
    const size_t n = separated ? 1 : line_end(r);
    if (n) *r->at = '\0'; /* else the end of the text, where a NUL stands already */
    r->at += n;
    r->line += n && !separated;
    return separated;
}

grq_status grq_csv_next(grq_csv *r, grq_csv_record *out, bool *more, grq_error *err)
{
    for (size_t n; (n = line_end(r)) > 0; r->line++) r->at += n;
    *more = r->at < r->end;
    out->n_fields = 0;
    out->line = r->line;
    if (!*more) return GRQ_OK;
    const char *const begin = r->at;
    do {
        if (out->n_fields == GRQ_CSV_MAX_FIELDS)
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu has more than %d fields", r->path, out->line,
                            GRQ_CSV_MAX_FIELDS);
        char **field = &out->fields[out->n_fields];
        const bool quoted = r->at < r->end && *r->at == '"';
        const grq_status st = quoted ? quoted_field(r, out, field, err) : plain_field(r, out, field, err);
        if (st != GRQ_OK) return st;
        out->n_fields++;
    } while (end_field(r));
    if (r->at - begin > GRQ_CSV_MAX_RECORD)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu: a record of %td bytes; %d are allowed", r->path, out->line,
                        r->at - begin, GRQ_CSV_MAX_RECORD);
    return GRQ_OK;
}

void grq_csv_unquote(char *field)
{
    const size_t n = strlen(field);
    if (n < 2 || field[0] != '"' || field[n - 1] != '"') return;
    char *to = field;
    for (size_t i = 1; i + 1 < n; i++) {
        *to++ = field[i];
        if (field[i] == '"' && i + 2 < n && field[i + 1] == '"') i++;
    }
    *to = '\0';
}
