/* qa/csv.h - delimited text with quoted fields, record by record, strictly: PopQA's and DPR's tabs, CMMLU's commas. */
#ifndef GATERQ_QA_CSV_H
#define GATERQ_QA_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "gaterq/status.h"

/* A reader over a whole text in memory (grq_text_file_read): { .path, .at, .end, .separator, .line = 1 }. Fields are
 * unquoted in place, so the text must be writable, and a NUL must follow it. */
typedef struct {
    const char *path; /* for messages */
    char *at, *end;
    char separator;
    size_t line; /* of the next record, 1-based; quoted fields may span lines */
} grq_csv;

enum { GRQ_CSV_MAX_FIELDS = 64, GRQ_CSV_MAX_RECORD = 16 << 20 };

typedef struct {
    size_t line, n_fields;
    char *fields[GRQ_CSV_MAX_FIELDS]; /* NUL-terminated */
} grq_csv_record;

/* The next record; *more is false at the end. Lines end with LF or CRLF; empty lines are skipped. An unfinished quote,
 * text after a closing quote, a lone carriage return outside quotes, too many fields or a record beyond 16 MiB are
 * errors with file, line and, where it is one field's fault, column. */
grq_status grq_csv_next(grq_csv *r, grq_csv_record *out, bool *more, grq_error *err);
/* Takes one layer of quotes off a whole field, in place: where it starts and ends with one. */
void grq_csv_unquote(char *field);

#endif
