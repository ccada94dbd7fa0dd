/* qa/csv.h - records of delimited text with RFC 4180 quoting: CMMLU (commas), DPR's files (tabs). */
#ifndef GATERQ_QA_CSV_H
#define GATERQ_QA_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "gaterq/status.h"

typedef struct {
    const char *path; /* for messages */
    char *at, *end;   /* the text, followed by a NUL; fields are unquoted in place */
    char separator;
    size_t line; /* of the next record, 1-based */
} grq_csv;

enum { GRQ_CSV_MAX_FIELDS = 16, GRQ_CSV_MAX_RECORD = 16 << 20 };

typedef struct {
    size_t line, n_fields;
    char *fields[GRQ_CSV_MAX_FIELDS];
} grq_csv_record;

/* The next record; *more is false at the end. Empty lines are skipped, LF and CRLF end a line. An unfinished quote,
 * text behind a closing quote, too many fields and records beyond 16 MiB are errors with file and line. */
grq_status grq_csv_next(grq_csv *r, grq_csv_record *out, bool *more, grq_error *err);
/* Takes one layer of quotes off a whole field, in place: where it starts and ends with one. */
void grq_csv_unquote(char *field);

#endif
