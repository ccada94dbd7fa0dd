/* Trace files that are not what they must be: each is refused by name, and a writer that fails leaves nothing behind.
 */
#include "support.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "trace/trace_internal.h"

enum { N = 700, COLUMNS = 3, BRANCHES = 2, BLOCK = 256 };

static grq_trace_shape make_shape(size_t n_positions)
{
    return (grq_trace_shape){ .n_positions = n_positions,
                              .n_layers = 2,
                              .n_columns = COLUMNS,
                              .n_branches = BRANCHES,
                              .row_dim = 8,
                              .layer_ids = { 9, 10 }, /* by name "10" comes first */
                              .column_order = { 2, 3, 4 },
                              .budget = { 1, { 0.412 } } };
}

/* Values that tell every place of every dataset apart, within what the dataset may hold. */
static double value_for(const grq_trace_field *field, uint32_t layer, size_t t, size_t column, size_t width)
{
    const size_t i = (t * width + column) + 1000 * layer;
    if (!strcmp(field->name, "sequence")) return (double)(t / 10);
    if (!strcmp(field->name, "order")) return (double)(2 + column);
    if (!strcmp(field->name, "kind") || !strcmp(field->name, "head")) return (double)(i % 2);
    if (!strcmp(field->name, "depth")) return (double)(1 + i % 3);
    if (!strcmp(field->group, "gates")) return (double)(i % 97) / 97;
    if (!strcmp(field->name, "weighted_reduction")) return 0.5 - (double)(i % 7); /* may be negative */
    return (double)i;
}

static void put(const grq_trace_field *field, void *values, size_t i, double value)
{
    switch (field->type) {
    case GRQ_H5_U8: ((uint8_t *)values)[i] = (uint8_t)value; break;
    case GRQ_H5_I32: ((int32_t *)values)[i] = (int32_t)value; break;
    case GRQ_H5_U32: ((uint32_t *)values)[i] = (uint32_t)value; break;
    case GRQ_H5_I64: ((int64_t *)values)[i] = (int64_t)value; break;
    case GRQ_H5_U64: ((uint64_t *)values)[i] = (uint64_t)value; break;
    case GRQ_H5_F32: ((float *)values)[i] = (float)value; break;
    }
}

static void fill(grq_trace *block, size_t first)
{
    for (size_t f = 0; f < grq_n_position_fields; f++)
        for (size_t t = 0; t < block->n_positions; t++)
            put(&grq_position_fields[f], *grq_field_of_positions(block, &grq_position_fields[f]), t,
                value_for(&grq_position_fields[f], 0, first + t, 0, 1));
    for (uint32_t l = 0; l < block->n_layers; l++)
        for (size_t f = 0; f < grq_n_layer_fields; f++) {
            const grq_trace_field *field = &grq_layer_fields[f];
            const size_t width = grq_field_width(&block->layers[l], field);
            for (size_t i = 0; i < block->n_positions * width; i++)
                put(field, *grq_field_of_layer(&block->layers[l], field), i,
                    value_for(field, l, first + i / width, i % width, width));
        }
}

/* Writes the trace through the library, in blocks. */
static grq_status write_trace(const char *path, size_t n, grq_error *err)
{
    const grq_trace_shape shape = make_shape(n);
    const grq_metadata metadata[] = { { "gaterq.seed", "7" } };
    const grq_trace_info info = { metadata, 1 };
    grq_trace_writer *writer;
    grq_trace block;
    grq_status st = grq_trace_writer_open(path, &shape, &info, &writer, err);
    if (st != GRQ_OK) return st;
    st = grq_trace_new(&shape, BLOCK, &block, err);
    for (size_t first = 0; st == GRQ_OK && first < n; first += BLOCK) {
        block.n_positions = n - first < BLOCK ? n - first : BLOCK;
        fill(&block, first);
        st = grq_trace_writer_append(writer, &block, err);
    }
    grq_trace_free(&block);
    if (st == GRQ_OK) return grq_trace_writer_commit(writer, err);
    grq_trace_writer_discard(writer);
    return st;
}

static void blocks_come_back_as_one(void **state)
{
    (void)state;
    grq_error err;
    grq_trace want, got;
    const grq_trace_shape shape = make_shape(N);
    assert_ok(write_trace(test_path("whole.h5"), N, &err), &err);
    assert_ok(grq_trace_open(test_path("whole.h5"), &got, &err), &err);
    assert_ok(grq_trace_new(&shape, N, &want, &err), &err);
    fill(&want, 0);
    assert_int_equal(got.n_positions, N);
    assert_int_equal(got.row_dim, 8);
    assert_int_equal(got.layers[0].layer, 9);
    assert_int_equal(got.layers[1].layer, 10);
    for (size_t f = 0; f < grq_n_position_fields; f++)
        assert_memory_equal(*grq_field_of_positions(&got, &grq_position_fields[f]),
                            *grq_field_of_positions(&want, &grq_position_fields[f]),
                            N * grq_h5_type_bytes(grq_position_fields[f].type));
    for (uint32_t l = 0; l < 2; l++)
        for (size_t f = 0; f < grq_n_layer_fields; f++) {
            const grq_trace_field *field = &grq_layer_fields[f];
            assert_memory_equal(*grq_field_of_layer(&got.layers[l], field), *grq_field_of_layer(&want.layers[l], field),
                                N * grq_field_width(&want.layers[l], field) * grq_h5_type_bytes(field->type));
        }
    grq_trace_free(&want);
    grq_trace_free(&got);
}

/* ---- damage: the same file written dataset by dataset, one of them wrong ---- */

typedef enum { MISSING, OTHER_TYPE, SHORTER, NARROWER, BAD_VALUE } damage_kind;

typedef struct {
    const char *name; /* of the dataset, in layer 10 where it is a layer's */
    damage_kind kind;
    double value; /* put at position 5, last column */
    const char *message;
} damage;

static void write_field(grq_h5 *file, const grq_trace_field *field, uint32_t layer, const damage *d)
{
    grq_error err;
    char path[GRQ_FIELD_PATH_BYTES];
    const bool hit = d && !strcmp(d->name, field->name) && layer != 9;
    size_t n = N, width = field->axes == GRQ_AXES_COLUMN ? COLUMNS : field->axes == GRQ_AXES_BRANCH ? BRANCHES : 1;
    grq_trace_field used = *field;
    grq_field_path(field, layer, path);
    if (hit && d->kind == MISSING) return;
    if (hit && d->kind == OTHER_TYPE) used.type = field->type == GRQ_H5_I64 ? GRQ_H5_U64 : GRQ_H5_I64;
    if (hit && d->kind == SHORTER) n--;
    if (hit && d->kind == NARROWER) width--;
    void *values = calloc(n * width, grq_h5_type_bytes(used.type));
    for (size_t i = 0; i < n * width; i++)
        put(&used, values, i, value_for(field, layer == 10, i / width, i % width, width));
    if (hit && d->kind == BAD_VALUE) put(&used, values, 5 * width + width - 1, d->value);
    const grq_h5_spec spec = { .name = path,
                               .type = used.type,
                               .rank = field->axes == GRQ_AXES_POSITION ? 1 : 2,
                               .shape = { 0, width },
                               .units = "1",
                               .description = "test" };
    assert_ok(grq_h5_write(file, &spec, n, values, NULL, &err), &err);
    free(values);
}

static const char *write_damaged(const char *name, const char *format, const damage *d)
{
    grq_error err;
    grq_h5 *file;
    const char *path = test_path(name);
    assert_ok(grq_h5_create(path, &file, &err), &err);
    assert_ok(grq_h5_put_string(file, "/", "format", format, &err), &err);
    assert_ok(grq_h5_put_u64(file, "/", "format_version", GRQ_TRACE_VERSION, &err), &err);
    assert_ok(grq_h5_put_u64(file, "/", "row_dim", 8, &err), &err);
    for (size_t f = 0; f < grq_n_position_fields; f++) write_field(file, &grq_position_fields[f], 0, d);
    for (uint32_t layer = 9; layer <= 10; layer++)
        for (size_t f = 0; f < grq_n_layer_fields; f++) write_field(file, &grq_layer_fields[f], layer, d);
    assert_ok(grq_h5_commit(file, &err), &err);
    return path;
}

static void damaged_traces_are_refused_by_name(void **state)
{
    (void)state;
    static const damage cases[] = {
        { "token", MISSING, 0, "/positions/token" },
        { "kind", MISSING, 0, "/positions/kind" },
        { "stage1", MISSING, 0, "/layers/10/gates/stage1" },
        { "prior", MISSING, 0, "/layers/10/lookups/prior" },
        { "token", OTHER_TYPE, 0, "/positions/token" },
        { "row", OTHER_TYPE, 0, "/layers/10/lookups/row" },
        { "depth", OTHER_TYPE, 0, "/layers/10/lookups/depth" },
        { "sequence", SHORTER, 0, "/positions/sequence" },
        { "injected_reduction", SHORTER, 0, "/layers/10/lookups/injected_reduction" },
        { "full", NARROWER, 0, "/layers/10/gates/full" },
        { "importance", NARROWER, 0, "/layers/10/lookups/importance" },
        { "full", BAD_VALUE, NAN, "/layers/10/gates/full[5, 1] is nan" },
        { "stage1", BAD_VALUE, 1.5, "/layers/10/gates/stage1[5, 1] is 1.5" },
        { "importance", BAD_VALUE, NAN, "/layers/10/lookups/importance[5, 2] is nan" },
        { "weighted_reduction", BAD_VALUE, INFINITY, "/layers/10/lookups/weighted_reduction[5, 2] is inf" },
        { "row_energy", BAD_VALUE, -1, "/layers/10/lookups/row_energy[5, 2] is -1" },
        { "row", BAD_VALUE, -3, "/layers/10/lookups/row[5, 2] is -3" },
        { "depth", BAD_VALUE, 0, "/layers/10/lookups/depth[5, 2] is 0" },
        { "kind", BAD_VALUE, 200, "/positions/kind[5] is 200" },
        { "order", BAD_VALUE, 3, "/layers/10/lookups/order[5, 2] is 3" }, /* the column's order is 4 */
        { "sequence", BAD_VALUE, 1, "/positions/sequence[6] is 0 after 1" },
    };
    grq_error err = { 0 };
    grq_trace trace;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *path = write_damaged("damaged.h5", GRQ_TRACE_FORMAT, &cases[i]);
        assert_refused(grq_trace_open(path, &trace, &err), GRQ_E_DATA, &err, cases[i].message);
        assert_non_null(strstr(err.message, "damaged.h5"));
        assert_null(trace.token);
    }
    assert_ok(grq_trace_open(write_damaged("sound.h5", GRQ_TRACE_FORMAT, NULL), &trace, &err), &err); /* none: sound */
    grq_trace_free(&trace);
    assert_refused(grq_trace_open(write_damaged("other.h5", "recipe-book", NULL), &trace, &err), GRQ_E_DATA, &err,
                   "format is \"recipe-book\"");
}

/* ---- writers that fail ---- */

static void a_bad_value_stops_the_writer(void **state)
{
    (void)state;
    grq_error err;
    grq_trace_writer *writer;
    grq_trace block;
    const grq_trace_shape shape = make_shape(BLOCK);
    assert_ok(grq_trace_writer_open(test_path("nan.h5"), &shape, NULL, &writer, &err), &err);
    assert_ok(grq_trace_new(&shape, BLOCK, &block, &err), &err);
    fill(&block, 0);
    block.layers[1].gates_full[7] = NAN;
    assert_refused(grq_trace_writer_append(writer, &block, &err), GRQ_E_DATA, &err, "/layers/10/gates/full[3, 1]");
    grq_trace_writer_discard(writer);
    grq_trace_free(&block);
    assert_int_equal(test_count_files("nan.h5"), 0);
}

static void missing_positions_are_no_trace(void **state)
{
    (void)state;
    grq_error err;
    grq_trace_writer *writer;
    const grq_trace_shape shape = make_shape(BLOCK);
    assert_ok(grq_trace_writer_open(test_path("short.h5"), &shape, NULL, &writer, &err), &err);
    assert_refused(grq_trace_writer_commit(writer, &err), GRQ_E_USAGE, &err, "0 of 256 positions");
    assert_int_equal(test_count_files("short.h5"), 0);
}

/* A full disk, as far as a process can have one to itself: no file of this child may grow past `limit` bytes. */
static int write_within(const char *path, rlim_t limit)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit size = { limit, limit };
        grq_error err = { 0 };
        signal(SIGXFSZ, SIG_IGN); /* then write() fails with EFBIG */
        setrlimit(RLIMIT_FSIZE, &size);
        const grq_status st = write_trace(path, N, &err);
        _exit(st == GRQ_OK ? 0 : strstr(err.message, "full.h5") ? 40 + (int)st : 99);
    }
    int status = -1;
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    grq_error err;
    struct stat info;
    const char *path = test_path("full.h5");
    assert_ok(write_trace(path, N, &err), &err);
    assert_int_equal(stat(path, &info), 0);
    for (int part = 0; part < 12; part++) {
        remove(path);
        const rlim_t limit = (rlim_t)(info.st_size * part / 12);
        const int code = write_within(path, limit);
        if (code != 40 + GRQ_E_IO) fail_msg("within %llu bytes: exit %d", (unsigned long long)limit, code);
        if (test_count_files("full.h5") != 0)
            fail_msg("within %llu bytes: something is left", (unsigned long long)limit);
    }
    assert_int_equal(write_within(path, 2 * (rlim_t)info.st_size), 0); /* HDF5 writes past the end before it trims */
    grq_trace trace;
    assert_ok(grq_trace_open(path, &trace, &err), &err);
    grq_trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_back_as_one),      cmocka_unit_test(damaged_traces_are_refused_by_name),
        cmocka_unit_test(a_bad_value_stops_the_writer), cmocka_unit_test(missing_positions_are_no_trace),
        cmocka_unit_test(a_full_disk_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
