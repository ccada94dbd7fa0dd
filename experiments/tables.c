#include "tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/number.h"

enum { SCALE_BLOCK = 32 };

static grq_status split_name(const char *name, char *path, size_t room, const char **tensor, grq_error *err)
{
    const char *colon = strrchr(name, ':');
    if (!colon || colon == name || !colon[1] || (size_t)(colon - name) >= room)
        return grq_fail(err, GRQ_E_USAGE, "--table \"%s\": write FILE.safetensors:TENSOR", name);
    memcpy(path, name, (size_t)(colon - name));
    path[colon - name] = '\0';
    *tensor = colon + 1;
    return GRQ_OK;
}

/* The tensor with the scales of an F8_E4M3 table. */
static grq_status find_scales(const input_table *t, const grq_tensor *table, const grq_tensor **out, grq_error *err)
{
    const size_t n = strlen(table->name);
    const char *path = grq_safetensors_path(t->file);
    char name[512];
    if (n < 7 || strcmp(table->name + n - 7, ".weight") || n >= sizeof name)
        return grq_fail(err, GRQ_E_DATA,
                        "%s: tensor %s is F8_E4M3; its name must end in .weight, so that its .scale can be found", path,
                        table->name);
    snprintf(name, sizeof name, "%.*s.scale", (int)(n - 7), table->name);
    const uint64_t shape[] = { t->n_rows, (t->row_dim + SCALE_BLOCK - 1) / SCALE_BLOCK };
    return grq_safetensors_get(t->file, name, GRQ_F8_E8M0, 2, shape, out, err);
}

static float convert(const grq_tensor *table, const grq_tensor *scales, const input_table *t, uint64_t row,
                     uint32_t column)
{
    const uint64_t i = row * t->row_dim + column;
    uint16_t word;
    switch (table->dtype) {
    case GRQ_F16: memcpy(&word, (const char *)table->data + 2 * i, 2); return grq_f32_from_f16(word);
    case GRQ_BF16: memcpy(&word, (const char *)table->data + 2 * i, 2); return grq_f32_from_bf16(word);
    default: {
        const uint64_t block = row * scales->shape[1] + column / SCALE_BLOCK;
        return grq_f32_from_e4m3(((const uint8_t *)table->data)[i]) *
               grq_f32_from_e8m0(((const uint8_t *)scales->data)[block]);
    }
    }
}

static grq_status convert_table(input_table *t, const grq_tensor *table, grq_error *err)
{
    const grq_tensor *scales = NULL;
    if (table->dtype == GRQ_F8_E4M3) {
        const grq_status st = find_scales(t, table, &scales, err);
        if (st != GRQ_OK) return st;
    }
    t->owned = malloc(t->n_rows * t->row_dim * sizeof *t->owned);
    if (!t->owned)
        return grq_fail(err, GRQ_E_NOMEM, "%s: no memory to convert %" PRIu64 " rows of %u values",
                        grq_safetensors_path(t->file), t->n_rows, t->row_dim);
    for (uint64_t r = 0; r < t->n_rows; r++)
        for (uint32_t c = 0; c < t->row_dim; c++) {
            const float value = convert(table, scales, t, r, c);
            if (!isfinite(value))
                return grq_fail(err, GRQ_E_DATA, "%s: tensor %s, row %" PRIu64 ", column %u is NaN or infinite",
                                grq_safetensors_path(t->file), table->name, r, c);
            t->owned[r * t->row_dim + c] = value;
        }
    t->values = t->owned;
    return GRQ_OK;
}

static grq_status open_tensor(input_table *t, const char *tensor, grq_error *err)
{
    const char *path = grq_safetensors_path(t->file), *base = strrchr(path, '/');
    const grq_tensor *table = grq_safetensors_find(t->file, tensor);
    if (!table) return grq_fail(err, GRQ_E_DATA, "%s: there is no tensor %s", path, tensor);
    if (table->rank != 2 || table->shape[0] < 1 || table->shape[1] < 1 || table->shape[1] > 65536)
        return grq_fail(err, GRQ_E_DATA, "%s: tensor %s is no table (rows, values) of at most 65536 values a row", path,
                        tensor);
    t->n_rows = table->shape[0];
    t->row_dim = (uint32_t)table->shape[1];
    snprintf(t->source, sizeof t->source, "%s:%s", base ? base + 1 : path, tensor);
    const grq_status st = grq_sha256(table->data, table->n_bytes, t->sha256, err);
    if (st != GRQ_OK) return st;
    switch (table->dtype) {
    case GRQ_F32:
        if ((uintptr_t)table->data % sizeof(float))
            return grq_fail(err, GRQ_E_DATA, "%s: tensor %s does not start at a multiple of 4 bytes", path, tensor);
        t->values = table->data;
        return GRQ_OK;
    case GRQ_F16:
    case GRQ_BF16:
    case GRQ_F8_E4M3: return convert_table(t, table, err);
    default:
        return grq_fail(err, GRQ_E_DATA, "%s: tensor %s is %s; a table is F32, F16, BF16 or F8_E4M3", path, tensor,
                        grq_dtype_name(table->dtype));
    }
}

grq_status input_table_open(const char *name, input_table *out, grq_error *err)
{
    char path[4096];
    const char *tensor = NULL;
    *out = (input_table){ 0 };
    grq_status st = split_name(name, path, sizeof path, &tensor, err);
    if (st == GRQ_OK) st = grq_safetensors_open(path, &out->file, err);
    if (st == GRQ_OK) st = open_tensor(out, tensor, err);
    if (st != GRQ_OK) input_table_close(out);
    return st;
}

void input_table_close(input_table *t)
{
    free(t->owned);
    grq_safetensors_close(t->file);
    *t = (input_table){ 0 };
}
