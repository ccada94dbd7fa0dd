/* core/qa/tsv.h - tab-separated files with quoted fields, record by record, strictly. */
#ifndef GATERQ_TSV_H
#define GATERQ_TSV_H

#include <stdbool.h>
#include <stddef.h>

#include "gaterq/status.h"

/* A reader over a whole file in memory. Fields are unquoted in place, so the text must be writable. */
typedef struct {
    const char *path; /* for messages */
    char *at, *end;
    size_t line; /* of the next record, 1-based; quoted fields may span lines */
} tsv_reader;

enum { TSV_MAX_FIELDS = 64, TSV_MAX_RECORD = 16 << 20 };

typedef struct {
    size_t line, n_fields;
    char *fields[TSV_MAX_FIELDS]; /* NUL-terminated */
} tsv_record;

/* Checks the text once: valid UTF-8, no NUL byte; skips a byte order mark. `text` (n bytes and a NUL) stays the
 * caller's. */
grq_status tsv_start(const char *path, char *text, size_t n, tsv_reader *out, grq_error *err);
/* The next record; *more is false at the end. Lines end with LF or CRLF; empty lines are skipped. An unfinished quote,
 * text after a closing quote, a lone carriage return outside quotes, too many fields or a record beyond 16 MiB are
 * errors with file, line and, where it is one field's fault, column. */
grq_status tsv_next(tsv_reader *r, tsv_record *out, bool *more, grq_error *err);

#endif
