/* A trace read back whole. Everything is checked before anything is computed from it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/lookups.h"
#include "trace/trace_internal.h"

static grq_status check_format(grq_h5 *file, grq_error *err)
{
    const char *path = grq_h5_path(file);
    if (!grq_h5_has_attribute(file, "/", "format"))
        return grq_fail(err, GRQ_E_DATA,
                        "%s: not a trace: the root attribute \"format\" is missing; gaterq trace writes traces", path);
    char *format = NULL;
    uint64_t version = 0;
    grq_status st = grq_h5_get_string(file, "/", "format", &format, err);
    if (st == GRQ_OK && strcmp(format, GRQ_TRACE_FORMAT))
        st = grq_fail(err, GRQ_E_DATA, "%s: format is \"%s\", not \"%s\"", path, format, GRQ_TRACE_FORMAT);
    if (st == GRQ_OK) st = grq_h5_get_u64(file, "/", "format_version", &version, err);
    if (st == GRQ_OK && version != GRQ_TRACE_VERSION)
        st = grq_fail(err, GRQ_E_DATA, "%s: format_version is %" PRIu64 "; this build reads version %d", path, version,
                      GRQ_TRACE_VERSION);
    free(format);
    return st;
}

static grq_status read_row_dim(grq_h5 *file, grq_trace *out, grq_error *err)
{
    uint64_t row_dim = 0;
    const grq_status st = grq_h5_get_u64(file, "/", "row_dim", &row_dim, err);
    if (st != GRQ_OK) return st;
    if (row_dim < 1 || row_dim > UINT32_MAX)
        return grq_fail(err, GRQ_E_DATA, "%s: row_dim is %" PRIu64, grq_h5_path(file), row_dim);
    out->row_dim = (uint32_t)row_dim;
    return GRQ_OK;
}

/* Reads one dataset; a first axis of *n_positions 0 is not known yet, a width of 0 neither. */
static grq_status read_field(grq_h5 *file, const grq_trace_field *field, uint32_t layer, size_t *n_positions,
                             uint32_t *width, uint32_t max_width, void **member, grq_error *err)
{
    char path[GRQ_FIELD_PATH_BYTES];
    grq_field_path(field, layer, path);
    const uint32_t rank = field->axes == GRQ_AXES_POSITION ? 1 : 2;
    const uint64_t expected[2] = { *n_positions ? *n_positions : GRQ_H5_ANY, *width ? *width : GRQ_H5_ANY };
    uint64_t shape[2] = { 0, 1 };
    grq_status st = grq_h5_shape(file, path, field->type, rank, expected, shape, err);
    if (st != GRQ_OK) return st;
    if (shape[0] == 0) return grq_fail(err, GRQ_E_DATA, "%s: %s has no positions", grq_h5_path(file), path);
    if (shape[1] < 1 || shape[1] > max_width)
        return grq_fail(err, GRQ_E_DATA, "%s: %s is %" PRIu64 " wide; 1 to %" PRIu32 " is possible", grq_h5_path(file),
                        path, shape[1], max_width);
    st = grq_h5_read(file, path, field->type, rank, expected, NULL, member, err);
    if (st != GRQ_OK) return st;
    *n_positions = shape[0];
    *width = (uint32_t)shape[1];
    st = grq_field_check(field, path, *member, 0, shape[0], shape[1], err);
    return st == GRQ_OK ? st : grq_fail_prefix(err, st, "%s", grq_h5_path(file));
}

static grq_status read_positions(grq_h5 *file, grq_trace *out, grq_error *err)
{
    uint32_t width = 1;
    grq_status st = GRQ_OK;
    for (size_t f = 0; st == GRQ_OK && f < grq_n_position_fields; f++) {
        const grq_trace_field *field = &grq_position_fields[f];
        st = read_field(file, field, 0, &out->n_positions, &width, 1, grq_field_of_positions(out, field), err);
    }
    for (size_t t = 1; st == GRQ_OK && t < out->n_positions; t++)
        if (out->sequence[t] < out->sequence[t - 1])
            st = grq_fail(err, GRQ_E_DATA,
                          "%s: /positions/sequence[%zu] is %" PRIu32 " after %" PRIu32 "; sequences follow each other",
                          grq_h5_path(file), t, out->sequence[t], out->sequence[t - 1]);
    return st;
}

static grq_status read_layer(grq_h5 *file, grq_trace_layer *layer, grq_trace *out, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t f = 0; st == GRQ_OK && f < grq_n_layer_fields; f++) {
        const grq_trace_field *field = &grq_layer_fields[f];
        const bool by_branch = field->axes == GRQ_AXES_BRANCH;
        st =
            read_field(file, field, layer->layer, &out->n_positions, by_branch ? &layer->n_branches : &layer->n_columns,
                       by_branch ? UINT16_MAX : GRQ_MAX_COLUMNS, grq_field_of_layer(layer, field), err);
    }
    /* Orders belong to columns; the analyses group look-ups by them. */
    for (size_t i = layer->n_columns; st == GRQ_OK && i < out->n_positions * layer->n_columns; i++)
        if (layer->order[i] != layer->order[i % layer->n_columns])
            st = grq_fail(err, GRQ_E_DATA, "%s: /layers/%" PRIu32 "/lookups/order[%zu, %zu] is %u; the column's is %u",
                          grq_h5_path(file), layer->layer, i / layer->n_columns, i % layer->n_columns, layer->order[i],
                          layer->order[i % layer->n_columns]);
    return st;
}

static grq_status parse_layer_name(grq_h5 *file, const char *name, uint32_t *layer, grq_error *err)
{
    char *end;
    errno = 0;
    const unsigned long value = strtoul(name, &end, 10);
    if (*name < '0' || *name > '9' || (*name == '0' && name[1]) || *end || errno || value > UINT32_MAX)
        return grq_fail(err, GRQ_E_DATA, "%s: /layers/%s is not named by a decoder layer's number", grq_h5_path(file),
                        name);
    *layer = (uint32_t)value;
    return GRQ_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static grq_status read_layers(grq_h5 *file, grq_trace *out, grq_error *err)
{
    char **names = NULL;
    size_t n = 0;
    uint32_t numbers[GRQ_MAX_MEMORY_LAYERS];
    grq_status st = grq_h5_list(file, "/layers", &names, &n, err);
    if (st == GRQ_OK && (n < 1 || n > GRQ_MAX_MEMORY_LAYERS))
        st = grq_fail(err, GRQ_E_DATA, "%s: /layers holds %zu memory layers; 1 to %d are possible", grq_h5_path(file),
                      n, GRQ_MAX_MEMORY_LAYERS);
    for (size_t l = 0; st == GRQ_OK && l < n; l++) st = parse_layer_name(file, names[l], &numbers[l], err);
    grq_h5_free_names(names, n);
    if (st != GRQ_OK) return st;
    qsort(numbers, n, sizeof *numbers, by_number); /* "10" sorts before "9" by name */
    for (size_t l = 0; st == GRQ_OK && l < n; l++) {
        out->n_layers = (uint32_t)l + 1;
        out->layers[l].layer = numbers[l];
        st = read_layer(file, &out->layers[l], out, err);
    }
    return st;
}

grq_status grq_trace_open(const char *path, grq_trace *out, grq_error *err)
{
    *out = (grq_trace){ 0 };
    grq_h5 *file = NULL;
    grq_status st = grq_h5_open(path, &file, err);
    if (st == GRQ_OK) st = check_format(file, err);
    if (st == GRQ_OK) st = read_row_dim(file, out, err);
    if (st == GRQ_OK) st = read_positions(file, out, err);
    if (st == GRQ_OK) st = read_layers(file, out, err);
    grq_h5_close(file);
    if (st != GRQ_OK) grq_trace_free(out);
    return st;
}
