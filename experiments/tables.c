#include "tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "inputs.h"

enum { SCALE_BLOCK = 32 };

/* ---- a tensor ---- */

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
static grq_status find_scales(const grq_safetensors *file, const grq_tensor *table, const grq_tensor **out,
                              grq_error *err)
{
    const size_t n = strlen(table->name);
    char name[512];
    if (n < 7 || strcmp(table->name + n - 7, ".weight") || n >= sizeof name)
        return grq_fail(err, GRQ_E_DATA,
                        "%s: tensor %s is F8_E4M3; its name must end in .weight, so that its .scale can be found",
                        grq_safetensors_path(file), table->name);
    snprintf(name, sizeof name, "%.*s.scale", (int)(n - 7), table->name);
    const uint64_t shape[] = { table->shape[0], (table->shape[1] + SCALE_BLOCK - 1) / SCALE_BLOCK };
    return grq_safetensors_get(file, name, GRQ_F8_E8M0, 2, shape, out, err);
}

static grq_status format_of(const grq_safetensors *file, const grq_tensor *t, grq_row_format *out, grq_error *err)
{
    switch (t->dtype) {
    case GRQ_F32: *out = GRQ_ROWS_F32; return GRQ_OK;
    case GRQ_F16: *out = GRQ_ROWS_F16; return GRQ_OK;
    case GRQ_BF16: *out = GRQ_ROWS_BF16; return GRQ_OK;
    case GRQ_F8_E4M3: *out = GRQ_ROWS_F8_BLOCKS; return GRQ_OK;
    default:
        return grq_fail(err, GRQ_E_DATA, "%s: tensor %s is %s; a table is F32, F16, BF16 or F8_E4M3",
                        grq_safetensors_path(file), t->name, grq_dtype_name(t->dtype));
    }
}

static grq_status open_tensor(input_rows *rows, const char *tensor, grq_e8m0_rule e8m0, grq_error *err)
{
    const char *const path = grq_safetensors_path(rows->file), *const slash = strrchr(path, '/');
    const grq_tensor *const t = grq_safetensors_find(rows->file, tensor), *scales = NULL;
    grq_table_layout layout = { .e8m0 = e8m0 };
    char name[600];
    if (!t) return grq_fail(err, GRQ_E_DATA, "%s: there is no tensor %s", path, tensor);
    if (t->rank != 2 || t->shape[0] < 1 || t->shape[1] < 1 || t->shape[1] > 65536)
        return grq_fail(err, GRQ_E_DATA, "%s: tensor %s is no table (rows, values) of at most 65536 values a row", path,
                        tensor);
    grq_status st = format_of(rows->file, t, &layout.format, err);
    if (st == GRQ_OK && t->dtype == GRQ_F8_E4M3) st = find_scales(rows->file, t, &scales, err);
    if (st != GRQ_OK) return st;
    const void *const values[] = { t->data }, *const scale_data[] = { scales ? scales->data : NULL };
    snprintf(name, sizeof name, "%.255s:%.300s", slash ? slash + 1 : path, tensor);
    layout.n_rows = layout.rows_per_piece = t->shape[0];
    layout.row_dim = (uint32_t)t->shape[1];
    layout.values = values;
    layout.scales = scale_data;
    layout.name = name;
    return grq_table_new(&layout, &rows->table, err);
}

/* ---- a layer ---- */

static grq_status open_layer(input_rows *rows, const input_rows_options *o, grq_e8m0_rule e8m0, grq_error *err)
{
    uint32_t index = 0;
    grq_status st = grq_checkpoint_open(o->memory, &(grq_checkpoint_options){ .e8m0 = e8m0 }, &rows->checkpoint, err);
    if (st != GRQ_OK) return st;
    const grq_geometry *const g = grq_checkpoint_geometry(rows->checkpoint);
    st = grq_geometry_layer_index(g, (uint32_t)o->layer, &index, err);
    if (st == GRQ_OK) st = grq_checkpoint_table(rows->checkpoint, index, &rows->table, err);
    rows->family = g->family;
    rows->layer = (uint32_t)o->layer;
    rows->layer_index = index;
    return st;
}

static grq_status check_options(const input_rows_options *o, grq_e8m0_rule *e8m0, grq_error *err)
{
    if ((o->table != NULL) == (o->memory != NULL))
        return grq_fail(err, GRQ_E_USAGE, "give either --table, or --memory with --layer");
    if (o->memory && o->layer == INPUT_NO_LAYER) return grq_fail(err, GRQ_E_USAGE, "--memory needs --layer");
    if (o->table && o->layer != INPUT_NO_LAYER) return grq_fail(err, GRQ_E_USAGE, "--layer goes with --memory");
    if (strcmp(o->e8m0, "ocp") && strcmp(o->e8m0, "shift"))
        return grq_fail(err, GRQ_E_USAGE, "--e8m0: \"%s\" is neither ocp nor shift", o->e8m0);
    *e8m0 = strcmp(o->e8m0, "ocp") ? GRQ_E8M0_SHIFT : GRQ_E8M0_OCP;
    return GRQ_OK;
}

grq_status input_rows_open(const input_rows_options *o, input_rows *out, grq_error *err)
{
    char path[4096];
    const char *tensor = NULL;
    grq_e8m0_rule e8m0 = GRQ_E8M0_OCP;
    *out = (input_rows){ .family = "" };
    grq_status st = check_options(o, &e8m0, err);
    if (st == GRQ_OK && o->memory) {
        st = open_layer(out, o, e8m0, err);
    } else if (st == GRQ_OK) {
        st = split_name(o->table, path, sizeof path, &tensor, err);
        if (st == GRQ_OK) st = grq_safetensors_open(path, &out->file, err);
        if (st == GRQ_OK) st = open_tensor(out, tensor, e8m0, err);
    }
    if (st != GRQ_OK) input_rows_close(out);
    return st;
}

void input_rows_close(input_rows *rows)
{
    grq_table_free(rows->table);
    grq_safetensors_close(rows->file);
    grq_checkpoint_close(rows->checkpoint);
    *rows = (input_rows){ .family = "" };
}

/* ---- what must not be replaced ---- */

static bool lies_in(const char *path, const char *folder)
{
    struct stat a, b;
    char parent[4096];
    snprintf(parent, sizeof parent, "%s", path);
    char *const slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = '\0';
    return stat(slash ? parent : ".", &a) == 0 && stat(folder, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

grq_status input_rows_check_output(const input_rows_options *o, const char *path, grq_error *err)
{
    struct stat info;
    char source[4096];
    const char *tensor;
    if (stat(path, &info) != 0) return GRQ_OK;
    if (o->table) {
        if (split_name(o->table, source, sizeof source, &tensor, NULL) == GRQ_OK && input_same_file(source, path))
            return grq_fail(err, GRQ_E_USAGE, "--out: %s is the file with the table itself", path);
    } else if (input_same_file(o->memory, path) || lies_in(path, o->memory)) {
        return grq_fail(err, GRQ_E_USAGE, "--out: %s is a file of the memory that is read", path);
    }
    return GRQ_OK;
}
