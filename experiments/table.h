/* experiments/table.h - one table of text cells, written as Markdown, CSV or aligned for a terminal. */
#ifndef GATERQ_REPORT_TABLE_H
#define GATERQ_REPORT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "gaterq/status.h"

enum { TABLE_MAX_COLUMNS = 24 };

typedef struct {
    size_t n_columns, n_rows, room;
    const char *headings[TABLE_MAX_COLUMNS]; /* borrowed */
    char **cells;                            /* (n_rows, n_columns), owned */
    bool failed;                             /* memory ran out; reported by table_check */
} table;

void table_start(table *t, size_t n_columns, const char *const *headings);
void table_free(table *t);
void table_row(table *t); /* a new row of empty cells */
/* Sets a cell of the last row. */
void table_cell(table *t, size_t column, const char *format, ...) __attribute__((format(printf, 3, 4)));
grq_status table_check(const table *t, grq_error *err);

void table_markdown(const table *t, FILE *to); /* '|' in cells is escaped */
grq_status table_csv(const table *t, const char *path, grq_error *err);
void table_terminal(const table *t, FILE *to, const size_t *columns, size_t n); /* only these columns */

#endif
