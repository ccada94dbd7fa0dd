/* Stored tensors as binary32, and tables in place. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors_internal.h"
#include "memory/checkpoint_internal.h"
#include "shared/number.h"

enum { TILE = 32 };

static float scale_value(grq_e8m0_rule rule, uint8_t byte)
{
    return rule == GRQ_E8M0_OCP ? grq_f32_from_e8m0(byte) : grq_float_from_bits((uint32_t)byte << 23);
}

static uint16_t half_at(const grq_tensor *t, uint64_t i)
{
    uint16_t bits;
    memcpy(&bits, (const char *)t->data + i * sizeof bits, sizeof bits);
    return bits;
}

/* One row of a matrix (n_rows, n_columns); scales (ceil(n_rows / 32), ceil(n_columns / 32)) or NULL. */
static void convert_row(const grq_checkpoint *c, const grq_tensor *t, const grq_tensor *scales, uint64_t row,
                        uint64_t n_columns, float *out)
{
    const uint64_t first = row * n_columns;
    const uint64_t tiles = (n_columns + TILE - 1) / TILE;
    for (uint64_t i = 0; i < n_columns; i++) switch (t->dtype) {
        case GRQ_BF16: out[i] = grq_f32_from_bf16(half_at(t, first + i)); break;
        case GRQ_F16: out[i] = grq_f32_from_f16(half_at(t, first + i)); break;
        case GRQ_F8_E4M3:
            out[i] = grq_f32_from_e4m3(((const uint8_t *)t->data)[first + i]) *
                     scale_value(c->e8m0, ((const uint8_t *)scales->data)[row / TILE * tiles + i / TILE]);
            break;
        default: memcpy(out + i, (const char *)t->data + (first + i) * sizeof *out, sizeof *out);
        }
}

static grq_status find_tile_scales(grq_checkpoint *c, const char *name, const char *scale_name, uint64_t n_rows,
                                   uint64_t n_columns, const grq_tensor **out, grq_error *err)
{
    if (!scale_name) return grq_fail(err, GRQ_E_DATA, "tensor \"%s\": F8_E4M3 cannot stand here", name);
    const uint64_t shape[] = { (n_rows + TILE - 1) / TILE, (n_columns + TILE - 1) / TILE };
    const grq_status st = grq_shards_get(c->shards, scale_name, GRQ_F8_E8M0, 2, shape, out, err);
    return st == GRQ_OK ? st : grq_fail_prefix(err, st, "scales of \"%s\", one per 32 x 32 values", name);
}

static grq_status find_tensor(grq_checkpoint *c, const char *name, uint32_t rank, const uint64_t *shape,
                              const grq_tensor **out, const char **file, grq_error *err)
{
    static const grq_dtype readable[] = { GRQ_F32, GRQ_BF16, GRQ_F16, GRQ_F8_E4M3 };
    *file = grq_shards_path(c->shards);
    grq_status st = grq_shards_find(c->shards, name, out, file, err);
    if (st != GRQ_OK) return st;
    if (!*out) return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is missing", *file, name);
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++)
        if ((*out)->dtype == readable[i]) return grq_shards_get(c->shards, name, readable[i], rank, shape, out, err);
    return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is %s; F32, BF16, F16 and F8_E4M3 can be read", *file, name,
                    grq_dtype_name((*out)->dtype));
}

grq_status checkpoint_read_shaped(grq_checkpoint *c, const char *name, const char *scale_name, uint32_t rank,
                                  const uint64_t *shape, float **out, grq_error *err)
{
    const uint64_t n_columns = shape[rank - 1];
    uint64_t n_rows = 1;
    for (uint32_t i = 0; i + 1 < rank; i++) n_rows *= shape[i];
    const grq_tensor *t, *scales = NULL;
    const char *file;
    grq_status st = find_tensor(c, name, rank, shape, &t, &file, err);
    if (st == GRQ_OK && t->dtype == GRQ_F8_E4M3)
        st = find_tile_scales(c, name, scale_name, n_rows, n_columns, &scales, err);
    if (st != GRQ_OK) return st;
    float *const values = malloc(n_rows * n_columns * sizeof *values);
    if (!values) return grq_fail(err, GRQ_E_NOMEM, "no memory for tensor %s", name);
    for (uint64_t r = 0; st == GRQ_OK && r < n_rows; r++) {
        convert_row(c, t, scales, r, n_columns, values + r * n_columns);
        for (uint64_t i = 0; st == GRQ_OK && i < n_columns; i++)
            if (!isfinite(values[r * n_columns + i]))
                st = grq_fail(err, GRQ_E_DATA, "%s: %s: row %" PRIu64 ", column %" PRIu64 " is %g", file, name, r, i,
                              (double)values[r * n_columns + i]);
    }
    if (st == GRQ_OK) *out = values;
    else free(values);
    return st;
}

grq_status checkpoint_read(grq_checkpoint *c, const char *name, const char *scale_name, uint64_t n_rows,
                           uint64_t n_columns, float **out, grq_error *err)
{
    const uint64_t shape[] = { n_rows, n_columns };
    return checkpoint_read_shaped(c, name, scale_name, 2, shape, out, err);
}

grq_status checkpoint_table(grq_checkpoint *c, const char *name, const char *scale_name, uint64_t n_rows,
                            uint32_t row_dim, grq_table **out, grq_error *err)
{
    const uint64_t shape[] = { n_rows, row_dim }, scale_shape[] = { n_rows, (row_dim + TILE - 1) / TILE };
    const grq_tensor *t, *scales = NULL;
    const char *file;
    grq_status st = find_tensor(c, name, 2, shape, &t, &file, err);
    if (st == GRQ_OK && t->dtype == GRQ_F8_E4M3)
        st = scale_name ? grq_shards_get(c->shards, scale_name, GRQ_F8_E8M0, 2, scale_shape, &scales, err)
                        : grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\": F8_E4M3 without scales", file, name);
    if (st != GRQ_OK) return st;
    char label[CHECKPOINT_NAME_BYTES + 300];
    const char *const base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    snprintf(label, sizeof label, "%.255s:%s", base, name);
    const void *const values[] = { t->data }, *const scale_data[] = { scales ? scales->data : NULL };
    const grq_table_layout layout = {
        .format = t->dtype == GRQ_F32    ? GRQ_ROWS_F32
                  : t->dtype == GRQ_BF16 ? GRQ_ROWS_BF16
                  : t->dtype == GRQ_F16  ? GRQ_ROWS_F16
                                         : GRQ_ROWS_F8_BLOCKS,
        .n_rows = n_rows,
        .row_dim = row_dim,
        .rows_per_piece = n_rows,
        .values = values,
        .scales = scale_data,
        .e8m0 = c->e8m0,
        .name = label,
    };
    return grq_table_new(&layout, out, err);
}

void checkpoint_offset_gains(const grq_geometry *g, float *gains, size_t n)
{
    for (size_t i = 0; i < n; i++) gains[i] += (float)g->gain_offset;
}

grq_status checkpoint_transpose_taps(const grq_geometry *g, float **weights, grq_error *err)
{
    const size_t channels = (size_t)g->n_branches * g->width, n_taps = g->conv_kernel;
    float *const to = malloc(channels * n_taps * sizeof *to);
    if (!to) return grq_fail(err, GRQ_E_NOMEM, "no memory for the convolution's weights");
    for (size_t i = 0; i < channels; i++)
        for (size_t k = 0; k < n_taps; k++) to[k * channels + i] = (*weights)[i * n_taps + k];
    free(*weights);
    *weights = to;
    return GRQ_OK;
}
