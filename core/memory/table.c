/* Rows of a memory table: where each lies, and the loop that fetches them with prefetching. */
#include "gaterq/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels.h"
#include "cpu/prefetch.h"
#include "shared/number.h"

struct grq_table {
    grq_table_layout layout; /* pointers and name owned */
    uint32_t n_pieces, n_scales;
    size_t value_bytes;      /* of one row */
    float scale_values[256]; /* of the E8M0 rule */
    const grq_codes *codes;  /* NULL: stored rows */
    uint32_t depth;
};

static const size_t bytes_per_value[] = {
    [GRQ_ROWS_F32] = 4, [GRQ_ROWS_BF16] = 2, [GRQ_ROWS_F16] = 2, [GRQ_ROWS_F8_BLOCKS] = 1, [GRQ_ROWS_F8_SCALAR] = 1
};

static void fill_scale_values(grq_table *t)
{
    for (uint32_t b = 0; b < 256; b++)
        t->scale_values[b] =
            t->layout.e8m0 == GRQ_E8M0_OCP ? grq_f32_from_e8m0((uint8_t)b) : grq_float_from_bits(b << 23);
}

static const void **copy_pointers(const void *const *from, uint32_t n)
{
    const void **const copy = malloc(n * sizeof *copy);
    if (copy) memcpy(copy, from, n * sizeof *copy);
    return copy;
}

static grq_status check_layout(const grq_table_layout *l, grq_error *err)
{
    if (l->n_rows < 1 || l->n_rows > INT64_MAX / 65536)
        return grq_fail(err, GRQ_E_DATA, "%s: a table of %" PRIu64 " rows", l->name, l->n_rows);
    if (l->row_dim < 1 || l->row_dim > 65536)
        return grq_fail(err, GRQ_E_DATA, "%s: rows of %u values; 1 to 65536 are possible", l->name, l->row_dim);
    if (l->rows_per_piece < 1 || (l->n_rows - 1) / l->rows_per_piece >= UINT32_MAX)
        return grq_fail(err, GRQ_E_DATA, "%s: pieces of %" PRIu64 " rows", l->name, l->rows_per_piece);
    if (l->format == GRQ_ROWS_F8_SCALAR && !isfinite(l->scale))
        return grq_fail(err, GRQ_E_DATA, "%s: the table's scale is %g", l->name, (double)l->scale);
    return GRQ_OK;
}

grq_status grq_table_new(const grq_table_layout *layout, grq_table **out, grq_error *err)
{
    *out = NULL;
    const grq_status st = check_layout(layout, err);
    if (st != GRQ_OK) return st;
    grq_table *t = calloc(1, sizeof *t);
    if (!t) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a table", layout->name);
    t->layout = *layout;
    t->n_pieces = (uint32_t)((layout->n_rows - 1) / layout->rows_per_piece + 1);
    t->n_scales = (layout->row_dim + GRQ_F8_BLOCK - 1) / GRQ_F8_BLOCK;
    t->value_bytes = bytes_per_value[layout->format] * layout->row_dim;
    t->layout.values = copy_pointers(layout->values, t->n_pieces);
    t->layout.scales = layout->format == GRQ_ROWS_F8_BLOCKS ? copy_pointers(layout->scales, t->n_pieces) : NULL;
    t->layout.name = strdup(layout->name);
    fill_scale_values(t);
    if (!t->layout.values || !t->layout.name || (layout->format == GRQ_ROWS_F8_BLOCKS && !t->layout.scales)) {
        grq_table_free(t);
        return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a table", layout->name);
    }
    *out = t;
    return GRQ_OK;
}

grq_status grq_table_of_codes(const grq_codes *codes, uint32_t depth, grq_table **out, grq_error *err)
{
    *out = NULL;
    if (depth < 1 || depth > grq_codes_n_stages(codes))
        return grq_fail(err, GRQ_E_USAGE, "depth %u: the codes have stages 1 to %u", depth, grq_codes_n_stages(codes));
    grq_table *t = calloc(1, sizeof *t);
    char *name = strdup(grq_codes_origin_of(codes)->source);
    if (!t || !name) {
        free(t);
        free(name);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for a table");
    }
    t->layout =
        (grq_table_layout){ .n_rows = grq_codes_n_rows(codes), .row_dim = grq_codes_row_dim(codes), .name = name };
    t->codes = codes;
    t->depth = depth;
    *out = t;
    return GRQ_OK;
}

void grq_table_free(grq_table *t)
{
    if (!t) return;
    free((void *)t->layout.values);
    free((void *)t->layout.scales);
    free((char *)t->layout.name);
    free(t);
}

uint64_t grq_table_n_rows(const grq_table *t)
{
    return t->layout.n_rows;
}

uint32_t grq_table_row_dim(const grq_table *t)
{
    return t->layout.row_dim;
}

const char *grq_table_name(const grq_table *t)
{
    return t->layout.name;
}

double grq_table_row_bytes(const grq_table *t)
{
    if (t->codes) return t->depth * (double)(grq_code_bytes(t->layout.row_dim) + sizeof(uint16_t));
    return (double)t->value_bytes + (t->layout.scales ? t->n_scales : 0);
}

/* ---- fetching ---- */

typedef struct {
    const uint8_t *values, *scales; /* scales NULL but for GRQ_ROWS_F8_BLOCKS */
} place;

static place place_of(const grq_table *t, uint64_t row)
{
    uint64_t piece = 0, local = row;
    if (t->n_pieces > 1) { /* a division takes as long as much of a row's decoding */
        piece = row / t->layout.rows_per_piece;
        local = row % t->layout.rows_per_piece;
    }
    place p = { (const uint8_t *)t->layout.values[piece] + local * t->value_bytes, NULL };
    if (t->layout.scales) p.scales = (const uint8_t *)t->layout.scales[piece] + local * t->n_scales;
    return p;
}

grq_stored_row grq_table_stored(const grq_table *t, uint64_t row)
{
    if (t->codes) return (grq_stored_row){ 0 };
    const place p = place_of(t, row);
    return (grq_stored_row){ p.values, p.scales, t->value_bytes, p.scales ? t->n_scales : 0 };
}

static void prefetch(const grq_table *t, uint64_t row)
{
    if (t->codes) {
        grq_codes_prefetch(t->codes, row, t->depth);
        return;
    }
    const place p = place_of(t, row);
    const uint8_t *const first = p.values - (uintptr_t)p.values % GRQ_CACHE_LINE;
    for (const uint8_t *line = first; line < p.values + t->value_bytes; line += GRQ_CACHE_LINE)
        __builtin_prefetch(line);
    if (p.scales) __builtin_prefetch(p.scales);
}

/* GRQ_PREFETCH_ROWS rows at once, not one before each row that is read: a prefetch waits for the address of its page,
 * and behind a row's decoding the processor cannot look far enough ahead to wait for several pages together. */
static void prefetch_rows(const grq_table *t, size_t first, size_t n, const int64_t *rows)
{
    for (size_t i = first; i < n && i < first + GRQ_PREFETCH_ROWS; i++) prefetch(t, (uint64_t)rows[i]);
}

static bool read_row(const grq_table *t, const grq_kernels *k, uint64_t row, float *out)
{
    const uint32_t dim = t->layout.row_dim;
    if (t->codes) {
        grq_codes_decode(t->codes, row, t->depth, out);
        return false;
    }
    const place p = place_of(t, row);
    switch (t->layout.format) {
    case GRQ_ROWS_F32: return k->row_f32(p.values, dim, out);
    case GRQ_ROWS_BF16: return k->row_bf16(p.values, dim, out);
    case GRQ_ROWS_F16: return k->row_f16(p.values, dim, out);
    case GRQ_ROWS_F8_BLOCKS: return k->row_f8_blocks(p.values, p.scales, t->scale_values, dim, out);
    case GRQ_ROWS_F8_SCALAR: return k->row_f8_scalar(p.values, t->layout.scale, dim, out);
    }
    return true;
}

/* `out` (row_dim) is overwritten: only the reference says which value is wrong. */
static grq_status refuse_row(const grq_table *t, uint64_t row, float *out, grq_error *err)
{
    const place p = place_of(t, row);
    uint32_t i = 0;
    read_row(t, &grq_kernels_ref, row, out);
    while (i + 1 < t->layout.row_dim && isfinite(out[i])) i++;
    if (t->layout.format == GRQ_ROWS_F8_BLOCKS)
        return grq_fail(err, GRQ_E_DATA,
                        "%s: row %" PRIu64 ", column %u: code 0x%02X with scale byte %u is no finite number",
                        t->layout.name, row, i, p.values[i], p.scales[i / GRQ_F8_BLOCK]);
    if (t->layout.format == GRQ_ROWS_F8_SCALAR)
        return grq_fail(err, GRQ_E_DATA, "%s: row %" PRIu64 ", column %u: code 0x%02X is no finite number",
                        t->layout.name, row, i, p.values[i]);
    return grq_fail(err, GRQ_E_DATA, "%s: row %" PRIu64 ", column %u is %g", t->layout.name, row, i, (double)out[i]);
}

static grq_status check_rows(const grq_table *t, size_t n, uint32_t n_columns, const int64_t *rows, grq_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i] < 0 || (uint64_t)rows[i] >= t->layout.n_rows)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: position %zu, head %zu: row %" PRId64 " is not in the table of %" PRIu64 " rows",
                            t->layout.name, i / n_columns, i % n_columns, rows[i], t->layout.n_rows);
    return GRQ_OK;
}

grq_status grq_table_fetch(const grq_table *t, size_t n_positions, uint32_t n_columns, const int64_t *rows, float *out,
                           grq_error *err)
{
    const size_t n = n_positions * n_columns;
    const grq_status st = check_rows(t, n, n_columns, rows, err);
    if (st != GRQ_OK) return st;
    const grq_kernels *const k = grq_cpu_kernels();
    prefetch_rows(t, 0, n, rows);
    for (size_t first = 0; first < n; first += GRQ_PREFETCH_ROWS) {
        prefetch_rows(t, first + GRQ_PREFETCH_ROWS, n, rows);
        for (size_t i = first; i < n && i < first + GRQ_PREFETCH_ROWS; i++) {
            float *const row = out + i * t->layout.row_dim;
            if (read_row(t, k, (uint64_t)rows[i], row)) return refuse_row(t, (uint64_t)rows[i], row, err);
        }
    }
    return GRQ_OK;
}
