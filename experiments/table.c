#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"

void table_start(table *t, size_t n_columns, const char *const *headings)
{
    *t = (table){ .n_columns = n_columns };
    memcpy(t->headings, headings, n_columns * sizeof *headings);
}

void table_free(table *t)
{
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) free(t->cells[i]);
    free(t->cells);
    *t = (table){ 0 };
}

void table_row(table *t)
{
    if (t->failed) return;
    if (t->n_rows == t->room) {
        const size_t room = t->room ? 2 * t->room : 16;
        char **cells = realloc(t->cells, room * t->n_columns * sizeof *cells);
        if (!cells) {
            t->failed = true;
            return;
        }
        t->cells = cells;
        t->room = room;
    }
    memset(t->cells + t->n_rows * t->n_columns, 0, t->n_columns * sizeof *t->cells);
    t->n_rows++;
}

void table_cell(table *t, size_t column, const char *format, ...)
{
    if (t->failed || !t->n_rows || column >= t->n_columns) return;
    char **cell = &t->cells[(t->n_rows - 1) * t->n_columns + column];
    free(*cell);
    va_list args;
    va_start(args, format);
    if (vasprintf(cell, format, args) < 0) {
        *cell = NULL;
        t->failed = true;
    }
    va_end(args);
}

grq_status table_check(const table *t, grq_error *err)
{
    return t->failed ? grq_fail(err, GRQ_E_NOMEM, "no memory for a table") : GRQ_OK;
}

static const char *cell_of(const table *t, size_t row, size_t column)
{
    const char *text = t->cells[row * t->n_columns + column];
    return text ? text : "";
}

void table_markdown(const table *t, FILE *to)
{
    for (size_t c = 0; c < t->n_columns; c++) fprintf(to, "| %s ", t->headings[c]);
    fprintf(to, "|\n");
    for (size_t c = 0; c < t->n_columns; c++) fprintf(to, "|---");
    fprintf(to, "|\n");
    for (size_t r = 0; r < t->n_rows; r++) {
        for (size_t c = 0; c < t->n_columns; c++) {
            fprintf(to, "| ");
            for (const char *p = cell_of(t, r, c); *p; p++) fprintf(to, *p == '|' ? "\\|" : "%c", *p);
            fprintf(to, " ");
        }
        fprintf(to, "|\n");
    }
    fprintf(to, "\n");
}

static void csv_cell(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"') fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

grq_status table_csv(const table *t, const char *path, grq_error *err)
{
    grq_outfile *file;
    grq_status st = table_check(t, err);
    if (st == GRQ_OK) st = grq_outfile_open(path, &file, err);
    if (st != GRQ_OK) return st;
    FILE *to = grq_outfile_stream(file);
    for (size_t c = 0; c < t->n_columns; c++) {
        if (c) fputc(',', to);
        csv_cell(to, t->headings[c]);
    }
    fputc('\n', to);
    for (size_t r = 0; r < t->n_rows; r++) {
        for (size_t c = 0; c < t->n_columns; c++) {
            if (c) fputc(',', to);
            csv_cell(to, cell_of(t, r, c));
        }
        fputc('\n', to);
    }
    return grq_outfile_commit(file, err);
}

void table_terminal(const table *t, FILE *to, const size_t *columns, size_t n)
{
    size_t width[TABLE_MAX_COLUMNS];
    for (size_t k = 0; k < n; k++) {
        width[k] = strlen(t->headings[columns[k]]);
        for (size_t r = 0; r < t->n_rows; r++) {
            const size_t length = strlen(cell_of(t, r, columns[k]));
            if (length > width[k]) width[k] = length;
        }
    }
    for (size_t k = 0; k < n; k++) fprintf(to, "%-*s  ", (int)width[k], t->headings[columns[k]]);
    fputc('\n', to);
    for (size_t r = 0; r < t->n_rows; r++) {
        for (size_t k = 0; k < n; k++) fprintf(to, "%-*s  ", (int)width[k], cell_of(t, r, columns[k]));
        fputc('\n', to);
    }
}
