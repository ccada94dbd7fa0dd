#include "csv.h"

#include <string.h>

static size_t line_end(const grq_csv *r)
{
    if (r->at == r->end) return 0;
    if (*r->at == '\n') return 1;
    return *r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n' ? 2 : 0;
}

/* Copies up to the closing quote over itself; *to ends behind the last character. False when there is none. */
static bool take_quoted(grq_csv *r, char **to)
{
    for (r->at++; r->at < r->end; r->at++) {
        if (*r->at == '"') {
            if (r->at + 1 == r->end || r->at[1] != '"') break;
            r->at++;
        }
        r->line += *r->at == '\n';
        *(*to)++ = *r->at;
    }
    if (r->at == r->end) return false;
    r->at++;
    return true;
}

static grq_status take_field(grq_csv *r, grq_csv_record *record, bool *more_fields, grq_error *err)
{
    char *const field = r->at, *to = r->at;
    if (r->at < r->end && *r->at == '"') {
        if (!take_quoted(r, &to))
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu: a quoted field has no end", r->path, record->line);
        if (r->at < r->end && *r->at != r->separator && line_end(r) == 0)
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu: text follows a closing quote", r->path, record->line);
    } else {
        while (r->at < r->end && *r->at != r->separator && line_end(r) == 0) r->at++;
        to = r->at;
    }
    *more_fields = r->at < r->end && *r->at == r->separator;
    const size_t n = *more_fields ? 1 : line_end(r);
    r->line += !*more_fields && n;
    r->at += n;
    *to = '\0'; /* over the separator, the line end or the quote; else where the text's own NUL is */
    record->fields[record->n_fields++] = field;
    return GRQ_OK;
}

grq_status grq_csv_next(grq_csv *r, grq_csv_record *out, bool *more, grq_error *err)
{
    for (size_t n; (n = line_end(r)) > 0; r->line++) r->at += n;
    const char *const begin = r->at;
    *more = r->at < r->end;
    out->n_fields = 0;
    out->line = r->line;
    for (bool more_fields = *more; more_fields;) {
        if (out->n_fields == GRQ_CSV_MAX_FIELDS)
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu has more than %d fields", r->path, out->line,
                            GRQ_CSV_MAX_FIELDS);
        const grq_status st = take_field(r, out, &more_fields, err);
        if (st != GRQ_OK) return st;
    }
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
