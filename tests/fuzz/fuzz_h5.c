/* Readers of HDF5 files: traces and the inputs of `gaterq layer`. The bytes describe a file: see h5_generator.h. */
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "base/h5.h"
#include "fuzz.h"
#include "gaterq/analysis.h"
#include "gaterq/trace.h"
#include "h5_generator.h"

/* HDF5 counts ids up, one counter per kind. So those handed out between two marks are known, and all must be closed. */
typedef struct {
    hid_t type, space, list;
} id_mark;

static id_mark mark_ids(void)
{
    const id_mark now = { H5Tcopy(H5T_NATIVE_INT), H5Screate(H5S_NULL), H5Pcreate(H5P_DATASET_CREATE) };
    H5Tclose(now.type);
    H5Sclose(now.space);
    H5Pclose(now.list);
    return now;
}

static void require_closed(hid_t from, hid_t to)
{
    for (hid_t id = from; id < to; id++) fuzz_require(H5Iis_valid(id) <= 0, "an id of HDF5 is left open");
}

static void require_all_closed(const id_mark *from)
{
    const id_mark to = mark_ids();
    require_closed(from->type, to.type);
    require_closed(from->space, to.space);
    require_closed(from->list, to.list);
    fuzz_require(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) == 0, "an object of HDF5 is left open");
}

static bool checked(grq_status st, const grq_error *err)
{
    if (st != GRQ_OK) fuzz_refused(st, err);
    return st == GRQ_OK;
}

static void read_rows(grq_h5 *file, const char *name, const uint64_t *shape)
{
    grq_error err;
    for (uint64_t first = 0; first <= shape[0] && first < 9; first++)
        for (uint64_t n = 0; n < 3; n++) {
            const size_t n_bytes = n * shape[1] * shape[2] * sizeof(float);
            void *const rows = malloc(n_bytes ? n_bytes : 1); /* of this very size: a write past it is seen */
            fuzz_require(rows != NULL, "no memory for rows");
            const grq_status st = grq_h5_read_rows(file, name, GRQ_H5_F32, 3, shape, first, n, rows, &err);
            if (first + n > shape[0]) fuzz_require(st == GRQ_E_DATA, "rows behind the last are read");
            checked(st, &err);
            free(rows);
        }
}

/* As cmd_layer.c does it. */
static void read_inputs(grq_h5 *file)
{
    uint64_t n = 0, found[3] = { 0 };
    void *ids = NULL, *sequence = NULL;
    grq_error err;
    bool good = checked(grq_h5_read(file, "/ids", GRQ_H5_I32, 1, NULL, &n, &ids, &err), &err);
    if (good) fuzz_touch(ids, n * sizeof(int32_t));
    const uint64_t expected[] = { n, GRQ_H5_ANY, GRQ_H5_ANY };
    const bool shaped =
        checked(grq_h5_shape(file, "/hidden", GRQ_H5_F32, 3, good ? expected : NULL, found, &err), &err);
    if (shaped && found[1] < 1024 && found[2] < 1024) read_rows(file, "/hidden", found);
    if (grq_h5_exists(file, "/sequence") &&
        checked(grq_h5_read(file, "/sequence", GRQ_H5_I32, 1, &n, NULL, &sequence, &err), &err))
        fuzz_touch(sequence, n * sizeof(int32_t));
    fuzz_accepted |= good && shaped;
    free(sequence);
    free(ids);
}

/* Any type and any number of axes asked of any dataset; `choice` says which. */
static void ask(grq_h5 *file, const char *name, uint8_t choice)
{
    const grq_h5_type type = (grq_h5_type)(choice % (GRQ_H5_F32 + 1));
    const uint32_t rank = choice / (GRQ_H5_F32 + 1) % (GRQ_H5_MAX_RANK + 2);
    uint64_t shape[GRQ_H5_MAX_RANK] = { 0 };
    void *data = NULL;
    grq_error err;
    if (!checked(grq_h5_read(file, name, type, rank, NULL, shape, &data, &err), &err)) return;
    size_t n_bytes = grq_h5_type_bytes(type);
    for (uint32_t i = 0; i < rank; i++) n_bytes *= shape[i];
    fuzz_touch(data, n_bytes);
    free(data);
}

static void read_attributes(grq_h5 *file)
{
    static const char *const names[] = { "format", "format_version", "row_dim", "absent" };
    static const char *const objects[] = { "/", "/ids", "/layers", "/absent" };
    grq_error err;
    for (int o = 0; o < 4; o++)
        for (int i = 0; i < 4; i++) {
            char *text;
            uint64_t u;
            int64_t s;
            double f;
            grq_h5_has_attribute(file, objects[o], names[i]);
            if (checked(grq_h5_get_string(file, objects[o], names[i], &text, &err), &err))
                fuzz_touch(text, strlen(text) + 1);
            free(text);
            checked(grq_h5_get_u64(file, objects[o], names[i], &u, &err), &err);
            checked(grq_h5_get_i64(file, objects[o], names[i], &s, &err), &err);
            checked(grq_h5_get_f64(file, objects[o], names[i], &f, &err), &err);
        }
}

static void list(grq_h5 *file, const char *group)
{
    char **names;
    size_t n;
    grq_error err;
    if (!checked(grq_h5_list(file, group, &names, &n, &err), &err)) return;
    for (size_t i = 1; i < n; i++) fuzz_require(strcmp(names[i - 1], names[i]) < 0, "names are not sorted");
    grq_h5_free_names(names, n);
}

static void read_by_hand(const char *path, uint8_t choice)
{
    static const char *const names[] = {
        "/", "/ids", "/hidden", "/sequence", "/positions/token", "/layers/1/lookups/row", "/missing"
    };
    grq_h5 *file;
    grq_error err;
    if (!checked(grq_h5_open(path, &file, &err), &err)) return;
    read_inputs(file);
    read_attributes(file);
    list(file, "/");
    list(file, "/layers");
    list(file, "/ids");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) ask(file, names[i], choice);
    grq_h5_close(file);
}

static void analyse(const grq_trace *trace)
{
    grq_premise premise;
    grq_layer_profile profile[GRQ_MAX_MEMORY_LAYERS];
    grq_ablation ablation;
    grq_error err;
    if (checked(grq_premise_run(trace, 2, 1, &premise, &err), &err)) grq_premise_free(&premise);
    checked(grq_profile_run(trace, 2, 1, profile, &err), &err);
    checked(grq_ablate_run(trace, 0.4, 2, 1, &ablation, &err), &err);
}

static void read_trace(const char *path, bool with_analyses)
{
    grq_trace trace;
    grq_error err;
    if (!checked(grq_trace_open(path, &trace, &err), &err)) return;
    fuzz_accepted = 1;
    const size_t n = trace.n_positions;
    fuzz_require(n > 0 && trace.n_layers > 0 && trace.row_dim > 0, "an empty trace");
    fuzz_touch(trace.token, n * sizeof *trace.token);
    fuzz_touch(trace.kind, n);
    for (uint32_t l = 0; l < trace.n_layers; l++) {
        const grq_trace_layer *const layer = &trace.layers[l];
        const size_t n_lookups = n * layer->n_columns;
        if (l) fuzz_require(trace.layers[l - 1].layer < layer->layer, "layers do not ascend");
        fuzz_touch(layer->gates_full, n * layer->n_branches * sizeof(float));
        fuzz_touch(layer->row, n_lookups * sizeof *layer->row);
        for (size_t i = 0; i < n_lookups; i++) {
            fuzz_require(layer->importance[i] >= 0, "an importance that is none");
            fuzz_require(layer->depth[i] >= 1 && layer->depth[i] <= GRQ_MAX_STAGES, "a depth that is none");
        }
    }
    if (with_analyses) analyse(&trace);
    grq_trace_free(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const path = fuzz_path();
    h5_generate(data, size, path);
    const id_mark before = mark_ids();
    const uint8_t choice = size ? data[0] : 0; /* the generator does not look at it */
    read_by_hand(path, choice);
    read_trace(path, choice % 2);
    require_all_closed(&before);
    return 0;
}
