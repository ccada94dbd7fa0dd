/* Access logs as CSV: a strict reader that keeps up with millions of lines, and the premise measured on them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis_internal.h"
#include "gaterq/file.h"
#include "stats/stats_internal.h"

/* ---- reading ---- */

typedef enum { COLUMN_ROW, COLUMN_SCALE, COLUMN_NORM, COLUMN_TABLE, N_COLUMNS } log_column;
static const char *const column_names[N_COLUMNS] = { "row_id", "scale", "norm", "table_id" };
enum { MAX_TABLES = 4096 }; /* a model has some dozens; more means that the column holds something else */

/* One entry per look-up. */
typedef struct {
    size_t n;
    bool has_norm, has_table;
    uint64_t *row, *table;
    double *energy, *importance; /* scale^2; scale^2 norm^2 */
} access_log;

typedef struct {
    const char *path, *at, *end; /* *end is a NUL */
    uint64_t line;
    uint32_t n_columns;
    log_column columns[N_COLUMNS]; /* in file order */
} log_reader;

static void free_log(access_log *log)
{
    free(log->row);
    free(log->table);
    free(log->energy);
    free(log->importance);
}

static const char *field_end(const log_reader *r)
{
    const char *p = r->at;
    while (p < r->end && *p != ',' && *p != '\n') p++;
    return p > r->at && p[-1] == '\r' && (p == r->end || *p == '\n') ? p - 1 : p;
}

/* Past the comma or the end of line at `stop`; tells which of them a field must be followed by. */
static grq_status end_field(log_reader *r, const char *stop, bool last, grq_error *err)
{
    r->at = stop;
    if (r->at < r->end && *r->at == '\r') r->at++;
    const bool at_comma = r->at < r->end && *r->at == ',';
    if (at_comma == last)
        return grq_fail(err, GRQ_E_DATA, "%s: line %" PRIu64 " has %s than the header's %" PRIu32 " fields", r->path,
                        r->line, last ? "more" : "fewer", r->n_columns);
    if (r->at < r->end) r->at++;
    if (last) r->line++;
    return GRQ_OK;
}

static grq_status bad_field(const log_reader *r, log_column column, const char *stop, const char *wanted,
                            grq_error *err)
{
    const size_t n = (size_t)(stop - r->at);
    return grq_fail(err, GRQ_E_DATA, "%s: line %" PRIu64 ", column %s: \"%.*s\" is not %s", r->path, r->line,
                    column_names[column], (int)(n < 40 ? n : 40), r->at, wanted);
}

static grq_status read_header(log_reader *r, grq_error *err)
{
    if (!strncmp(r->at, "\xEF\xBB\xBF", 3)) r->at += 3; /* a byte order mark */
    bool seen[N_COLUMNS] = { false }, more = true;
    while (more) {
        const char *stop = field_end(r);
        const size_t n = (size_t)(stop - r->at);
        int column = 0;
        while (column < N_COLUMNS && (strlen(column_names[column]) != n || memcmp(column_names[column], r->at, n)))
            column++;
        if (column == N_COLUMNS)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: line 1: unknown column \"%.*s\"; the header is row_id,scale[,norm][,table_id]",
                            r->path, (int)(n < 40 ? n : 40), r->at);
        if (seen[column])
            return grq_fail(err, GRQ_E_DATA, "%s: line 1: column %s is there twice", r->path, column_names[column]);
        seen[column] = true;
        r->columns[r->n_columns++] = (log_column)column;
        more = stop < r->end && *stop == ',';
        const grq_status st = end_field(r, stop, !more, err);
        if (st != GRQ_OK) return st;
    }
    for (int column = COLUMN_ROW; column <= COLUMN_SCALE; column++)
        if (!seen[column])
            return grq_fail(err, GRQ_E_DATA,
                            "%s: line 1: column %s is missing; the header is row_id,scale[,norm][,table_id]", r->path,
                            column_names[column]);
    return GRQ_OK;
}

static grq_status read_whole(const log_reader *r, log_column column, const char *stop, uint64_t *out, grq_error *err)
{
    uint64_t value = 0;
    const char *p = r->at;
    for (; p < stop && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            break;
    if (p == r->at || p != stop) return bad_field(r, column, stop, "a whole number below 2^64", err);
    *out = value;
    return GRQ_OK;
}

static grq_status read_square(const log_reader *r, log_column column, const char *stop, double *out, grq_error *err)
{
    for (const char *p = r->at; p < stop; p++) /* strtod alone would take hexadecimal, "inf" and leading blanks */
        if (!strchr("0123456789+-.eE", *p) || !*p) return bad_field(r, column, stop, "a decimal number", err);
    char *end;
    const double value = strtod(r->at, &end);
    if (end != stop || end == r->at) return bad_field(r, column, stop, "a decimal number", err);
    *out = value * value;
    if (!isfinite(*out)) return bad_field(r, column, stop, "a number whose square is finite", err);
    return GRQ_OK;
}

static grq_status read_line(log_reader *r, access_log *log, grq_error *err)
{
    const size_t i = log->n;
    double norm_square = 1;
    grq_status st = GRQ_OK;
    for (uint32_t k = 0; st == GRQ_OK && k < r->n_columns; k++) {
        const char *stop = field_end(r);
        switch (r->columns[k]) {
        case COLUMN_ROW: st = read_whole(r, COLUMN_ROW, stop, &log->row[i], err); break;
        case COLUMN_TABLE: st = read_whole(r, COLUMN_TABLE, stop, &log->table[i], err); break;
        case COLUMN_SCALE: st = read_square(r, COLUMN_SCALE, stop, &log->energy[i], err); break;
        default: st = read_square(r, COLUMN_NORM, stop, &norm_square, err); break;
        }
        if (st == GRQ_OK) st = end_field(r, stop, k + 1 == r->n_columns, err);
    }
    if (st != GRQ_OK) return st;
    log->importance[i] = log->energy[i] * norm_square;
    if (!isfinite(log->importance[i]))
        return grq_fail(err, GRQ_E_DATA, "%s: line %" PRIu64 ": scale^2 norm^2 is not finite", r->path, r->line - 1);
    log->n++;
    return GRQ_OK;
}

static size_t count_lines(const char *text, const char *end)
{
    size_t n = 1; /* the last one may lack its end */
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(end - p))); p++) n++;
    return n;
}

static grq_status read_log(const char *path, access_log *log, grq_error *err)
{
    char *text = NULL;
    size_t n_bytes = 0;
    *log = (access_log){ 0 };
    grq_status st = grq_file_read(path, 0, &text, &n_bytes, err);
    if (st != GRQ_OK) return st;
    log_reader r = { .path = path, .at = text, .end = text + n_bytes, .line = 1 };
    st = read_header(&r, err);
    if (st == GRQ_OK) {
        for (uint32_t k = 0; k < r.n_columns; k++) {
            log->has_norm |= r.columns[k] == COLUMN_NORM;
            log->has_table |= r.columns[k] == COLUMN_TABLE;
        }
        const size_t room = count_lines(r.at, r.end);
        log->row = grq_stats_array(room, sizeof *log->row, "log lines", err);
        log->table = grq_stats_array(room, sizeof *log->table, "log lines", err);
        log->energy = grq_stats_array(room, sizeof *log->energy, "log lines", err);
        log->importance = grq_stats_array(room, sizeof *log->importance, "log lines", err);
        if (!log->row || !log->table || !log->energy || !log->importance) st = GRQ_E_NOMEM;
    }
    while (st == GRQ_OK && r.at < r.end) st = read_line(&r, log, err);
    if (st == GRQ_OK && log->n == 0) st = grq_fail(err, GRQ_E_DATA, "%s: no line follows the header", path);
    if (st == GRQ_OK && log->n > UINT32_MAX)
        st = grq_fail(err, GRQ_E_DATA, "%s: %zu look-ups; the limit is %u", path, log->n, UINT32_MAX);
    free(text);
    return st;
}

/* ---- measuring ---- */

/* The log's look-ups ordered by table, with what the correlations need. */
typedef struct {
    size_t n;
    uint32_t *order, *table, *cluster; /* order: by table; table: dense number */
    uint64_t *key;                     /* one number per (table, row) */
    double *count, *x, *y;             /* x, y: room for one cell */
    uint64_t *row;                     /* room for one cell */
    uint32_t *block;                   /* room for one cell */
} log_points;

static void free_points(log_points *p)
{
    free(p->order);
    free(p->table);
    free(p->cluster);
    free(p->key);
    free(p->count);
    free(p->x);
    free(p->y);
    free(p->row);
    free(p->block);
}

static grq_status new_points(size_t n, log_points *p, grq_error *err)
{
    *p = (log_points){
        .n = n,
        .order = grq_stats_array(n, sizeof *p->order, "look-ups", err),
        .table = grq_stats_array(n, sizeof *p->table, "look-ups", err),
        .cluster = grq_stats_array(n, sizeof *p->cluster, "look-ups", err),
        .key = grq_stats_array(n, sizeof *p->key, "look-ups", err),
        .count = grq_stats_array(n, sizeof *p->count, "look-ups", err),
        .x = grq_stats_array(n, sizeof *p->x, "look-ups", err),
        .y = grq_stats_array(n, sizeof *p->y, "look-ups", err),
        .row = grq_stats_array(n, sizeof *p->row, "look-ups", err),
        .block = grq_stats_array(n, sizeof *p->block, "look-ups", err),
    };
    return p->order && p->table && p->cluster && p->key && p->count && p->x && p->y && p->row && p->block ? GRQ_OK
                                                                                                          : GRQ_E_NOMEM;
}

/* Access counts per (table, row) within the log. */
static grq_status count_accesses(const access_log *log, log_points *p, uint32_t *n_tables, grq_error *err)
{
    const size_t n = log->n;
    uint32_t n_rows = 0, n_keys = 0;
    uint32_t *dense = grq_stats_array(n, sizeof *dense, "rows", err), *count = NULL;
    grq_status st = dense ? grq_dense_rows(log->table, n, p->table, n_tables, err) : GRQ_E_NOMEM;
    if (st == GRQ_OK) st = grq_dense_rows(log->row, n, dense, &n_rows, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) p->key[i] = (uint64_t)p->table[i] * n_rows + dense[i];
    if (st == GRQ_OK) st = grq_dense_rows(p->key, n, dense, &n_keys, err);
    if (st == GRQ_OK) {
        count = grq_stats_array(n_keys, sizeof *count, "rows", err);
        if (!count) st = GRQ_E_NOMEM;
    }
    for (size_t i = 0; st == GRQ_OK && i < n; i++) count[dense[i]]++;
    for (size_t i = 0; st == GRQ_OK && i < n; i++) p->count[i] = count[dense[i]];
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        p->row[i] = p->table[i];
        p->cluster[i] = (uint32_t)((unsigned __int128)i * GRQ_LOG_BLOCKS / n);
    }
    if (st == GRQ_OK) st = grq_stable_order_u64(p->row, n, p->order, err);
    free(count);
    free(dense);
    return st;
}

/* One cell: look-ups first .. first + n - 1 of the order. */
static grq_status measure(const access_log *log, log_points *p, size_t first, size_t n, uint32_t n_resamples,
                          uint64_t seed, grq_log_cell *cell, grq_error *err)
{
    const uint32_t *at = p->order + first;
    for (size_t i = 0; i < n; i++) {
        p->x[i] = log->energy[at[i]];
        p->y[i] = p->count[at[i]];
        p->row[i] = p->key[at[i]];
        p->block[i] = p->cluster[at[i]];
    }
    cell->n_lookups = n;
    grq_status st = grq_spearman(p->x, p->y, p->block, n, GRQ_LOG_BLOCKS, n_resamples, seed, &cell->spearman, err);
    if (st == GRQ_OK)
        st = grq_row_correlations(p->row, p->x, p->y, n, n_resamples, seed, &cell->n_rows, &cell->spearman_rows, NULL,
                                  err);
    cell->spearman_importance = (grq_interval){ NAN, NAN, NAN };
    if (st == GRQ_OK && log->has_norm) {
        for (size_t i = 0; i < n; i++) p->x[i] = log->importance[at[i]];
        st = grq_spearman(p->x, p->y, p->block, n, GRQ_LOG_BLOCKS, n_resamples, seed, &cell->spearman_importance, err);
    }
    for (size_t i = 0; i < n; i++) {
        p->x[i] = log->energy[at[i]];
        p->y[i] = log1p(p->y[i]);
    }
    if (st == GRQ_OK) st = grq_pearson(p->x, p->y, p->block, n, GRQ_LOG_BLOCKS, n_resamples, seed, &cell->pearson, err);
    return st;
}

static grq_status measure_all(const access_log *log, log_points *p, uint32_t n_resamples, uint64_t seed,
                              grq_log_premise *out, grq_error *err)
{
    grq_status st = measure(log, p, 0, log->n, n_resamples, seed, &out->all, err);
    for (size_t t = 0, first = 0; st == GRQ_OK && t < out->n_tables; t++) {
        size_t end = first;
        while (end < log->n && p->table[p->order[end]] == t) end++;
        out->tables[t].table_id = log->table[p->order[first]];
        st = measure(log, p, first, end - first, n_resamples, seed, &out->tables[t], err);
        first = end;
    }
    return st;
}

static grq_status judge(grq_log_premise *out, grq_error *err)
{
    grq_interval *cells = grq_stats_array(out->n_tables, sizeof *cells, "tables", err);
    if (!cells) return GRQ_E_NOMEM;
    for (size_t t = 0; t < out->n_tables; t++) cells[t] = out->tables[t].spearman;
    out->verdict = grq_premise_verdict(cells, out->n_tables);
    free(cells);
    return GRQ_OK;
}

grq_status grq_log_premise_run(const char *path, uint32_t n_resamples, uint64_t seed, grq_log_premise *out,
                               grq_error *err)
{
    *out = (grq_log_premise){ 0 };
    access_log log;
    log_points points = { 0 };
    uint32_t n_tables = 0;
    grq_status st = read_log(path, &log, err);
    if (st == GRQ_OK) st = new_points(log.n, &points, err);
    if (st == GRQ_OK) st = count_accesses(&log, &points, &n_tables, err);
    if (st == GRQ_OK && n_tables > MAX_TABLES)
        st = grq_fail(err, GRQ_E_DATA,
                      "%s: column table_id has %" PRIu32 " different values; at most %d tables are expected", path,
                      n_tables, MAX_TABLES);
    if (st == GRQ_OK) {
        out->has_norm = log.has_norm;
        out->has_table = log.has_table;
        out->n_tables = n_tables;
        out->tables = grq_stats_array(n_tables, sizeof *out->tables, "tables", err);
        if (!out->tables) st = GRQ_E_NOMEM;
    }
    if (st == GRQ_OK) st = measure_all(&log, &points, n_resamples, seed, out, err);
    if (st == GRQ_OK) st = judge(out, err);
    free_points(&points);
    free_log(&log);
    if (st != GRQ_OK) grq_log_premise_free(out);
    return st;
}

void grq_log_premise_free(grq_log_premise *premise)
{
    free(premise->tables);
    *premise = (grq_log_premise){ 0 };
}
