/* The HDF5 wrapper: reproducible files, strict reading, nothing left behind. */
#include "support.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/h5.h"
#include "gaterq/digest.h"

static grq_error err;

enum { POSITIONS = 5000, COLUMNS = 24, BLOCK = 777 };

static float value(size_t position, size_t column)
{
    return (float)position * 0.5f - (float)(column * column);
}

/* A small trace: an axis of columns, ids per position, one value per look-up, appended in blocks. */
static grq_status fill(grq_h5 *file)
{
    static int32_t ids[POSITIONS];
    static float values[POSITIONS][COLUMNS];
    static uint8_t columns[COLUMNS];
    for (size_t i = 0; i < POSITIONS; i++) {
        ids[i] = (int32_t)(i * 37 % 1000) - 500;
        for (size_t c = 0; c < COLUMNS; c++) values[i][c] = value(i, c);
    }
    for (size_t c = 0; c < COLUMNS; c++) columns[c] = (uint8_t)c;
    const grq_h5_spec axis = { "/axes/column", GRQ_H5_U8, 1, { 0 }, 0, "1", "column of the memory layer" };
    const grq_h5_spec id = { "/positions/token", GRQ_H5_I32, 1, { 0 }, 0, "1", "token id" };
    const grq_h5_spec energy = { "/layers/1/lookups/energy", GRQ_H5_F32, 2, { 0, COLUMNS }, 100, "1", "squared norm" };
    grq_h5_dataset *column, *token, *lookup;
    grq_status st = grq_h5_write(file, &axis, COLUMNS, columns, &column, &err);
    if (st == GRQ_OK) st = grq_h5_make_scale(column, "column", &err);
    if (st == GRQ_OK) st = grq_h5_dataset_create(file, &id, &token, &err);
    if (st == GRQ_OK) st = grq_h5_make_scale(token, "position", &err);
    if (st == GRQ_OK) st = grq_h5_dataset_create(file, &energy, &lookup, &err);
    if (st == GRQ_OK) st = grq_h5_attach_scale(lookup, 0, token, &err);
    if (st == GRQ_OK) st = grq_h5_attach_scale(lookup, 1, column, &err);
    for (size_t i = 0; st == GRQ_OK && i < POSITIONS; i += BLOCK) {
        const size_t n = POSITIONS - i < BLOCK ? POSITIONS - i : BLOCK;
        st = grq_h5_append(token, n, &ids[i], &err);
        if (st == GRQ_OK) st = grq_h5_append(lookup, n, values[i], &err);
    }
    if (st == GRQ_OK) st = grq_h5_put_string(file, "/", "title", "r\xC3\xA9sum\xC3\xA9", &err);
    if (st == GRQ_OK) st = grq_h5_put_string(file, "/", "empty", "", &err);
    if (st == GRQ_OK) st = grq_h5_put_u64(file, "/layers/1", "n", UINT64_MAX, &err);
    if (st == GRQ_OK) st = grq_h5_put_i64(file, "/layers/1", "minus", -7, &err);
    if (st == GRQ_OK) st = grq_h5_put_f64(file, "/layers/1", "share", 0.412, &err);
    return st;
}

static const char *written(const char *name)
{
    const char *const path = test_path(name);
    grq_h5 *file;
    assert_ok(grq_h5_create(path, &file, &err), &err);
    assert_ok(fill(file), &err);
    assert_false(grq_file_exists(path));
    assert_ok(grq_h5_commit(file, &err), &err);
    assert_true(grq_file_exists(path));
    return path;
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    grq_h5 *file;
    assert_ok(grq_h5_open(written("t.h5"), &file, &err), &err);
    uint64_t shape[2];
    const uint64_t expected[2] = { GRQ_H5_ANY, COLUMNS };
    void *data;
    assert_ok(grq_h5_read(file, "/layers/1/lookups/energy", GRQ_H5_F32, 2, expected, shape, &data, &err), &err);
    assert_int_equal(shape[0], POSITIONS);
    for (size_t i = 0; i < POSITIONS * COLUMNS; i++) assert_true(((float *)data)[i] == value(i / COLUMNS, i % COLUMNS));
    free(data);
    float rows[2][COLUMNS];
    assert_ok(grq_h5_read_rows(file, "/layers/1/lookups/energy", GRQ_H5_F32, 2, expected, POSITIONS - 2, 2, rows, &err),
              &err);
    assert_true(rows[1][3] == value(POSITIONS - 1, 3));
    assert_refused(
        grq_h5_read_rows(file, "/layers/1/lookups/energy", GRQ_H5_F32, 2, NULL, POSITIONS - 1, 2, rows, &err),
        GRQ_E_DATA, &err, "has 5000 rows");
    assert_ok(grq_h5_read(file, "/positions/token", GRQ_H5_I32, 1, NULL, NULL, &data, &err), &err);
    assert_int_equal(((int32_t *)data)[1], 37 - 500);
    free(data);

    char *text;
    assert_ok(grq_h5_get_string(file, "/", "title", &text, &err), &err);
    assert_string_equal(text, "r\xC3\xA9sum\xC3\xA9");
    free(text);
    assert_ok(grq_h5_get_string(file, "/", "empty", &text, &err), &err);
    assert_string_equal(text, "");
    free(text);
    assert_ok(grq_h5_get_string(file, "/positions/token", "units", &text, &err), &err);
    assert_string_equal(text, "1");
    free(text);
    uint64_t u = 0;
    int64_t i = 0;
    double x = 0;
    assert_ok(grq_h5_get_u64(file, "/layers/1", "n", &u, &err), &err);
    assert_ok(grq_h5_get_i64(file, "/layers/1", "minus", &i, &err), &err);
    assert_ok(grq_h5_get_f64(file, "/layers/1", "share", &x, &err), &err);
    assert_true(u == UINT64_MAX && i == -7 && x == 0.412);
    assert_refused(grq_h5_get_u64(file, "/layers/1", "minus", &u, &err), GRQ_E_DATA, &err,
                   "\"minus\" must be 0 or more");
    assert_refused(grq_h5_get_i64(file, "/layers/1", "n", &i, &err), GRQ_E_DATA, &err, "below 2^63");
    assert_refused(grq_h5_get_u64(file, "/layers/1", "share", &u, &err), GRQ_E_DATA, &err, "must be an integer");
    assert_refused(grq_h5_get_string(file, "/layers/1", "share", &text, &err), GRQ_E_DATA, &err, "must be a string");
    assert_refused(grq_h5_get_f64(file, "/", "title", &x, &err), GRQ_E_DATA, &err, "must be a number");
    assert_refused(grq_h5_get_f64(file, "/nowhere", "x", &x, &err), GRQ_E_DATA, &err,
                   "/nowhere: attribute \"x\" is missing");

    char **names;
    size_t n;
    assert_ok(grq_h5_list(file, "/", &names, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_string_equal(names[0], "axes");
    assert_string_equal(names[2], "positions");
    grq_h5_free_names(names, n);
    assert_refused(grq_h5_list(file, "/nowhere", &names, &n, &err), GRQ_E_DATA, &err, "/nowhere: the group is missing");
    assert_refused(grq_h5_list(file, "/axes/column", &names, &n, &err), GRQ_E_IO, &err, "is not a group");
    assert_true(grq_h5_exists(file, "/") && grq_h5_exists(file, "/layers/1"));
    assert_false(grq_h5_exists(file, "/layers/2/gates"));
    grq_h5_close(file);
}

static void wrong_datasets_are_refused_by_name(void **state)
{
    (void)state;
    grq_h5 *file;
    assert_ok(grq_h5_open(written("w.h5"), &file, &err), &err);
    const char *const energy = "/layers/1/lookups/energy";
    uint64_t shape[4];
    assert_refused(grq_h5_shape(file, "/layers/2/row", GRQ_H5_I64, 2, NULL, shape, &err), GRQ_E_DATA, &err,
                   "w.h5: /layers/2/row: the dataset (int64) is missing");
    assert_refused(grq_h5_shape(file, energy, GRQ_H5_I32, 2, NULL, shape, &err), GRQ_E_DATA, &err,
                   "must be int32, is float32");
    assert_refused(grq_h5_shape(file, "/positions/token", GRQ_H5_U32, 1, NULL, shape, &err), GRQ_E_DATA, &err,
                   "must be uint32, is int32");
    assert_refused(grq_h5_shape(file, "/positions/token", GRQ_H5_I64, 1, NULL, shape, &err), GRQ_E_DATA, &err,
                   "must be int64, is int32");
    assert_refused(grq_h5_shape(file, energy, GRQ_H5_F32, 3, NULL, shape, &err), GRQ_E_DATA, &err,
                   "must have the shape (any, any, any), has (5000, 24)");
    assert_refused(grq_h5_shape(file, energy, GRQ_H5_F32, 2, (const uint64_t[]){ GRQ_H5_ANY, 16 }, shape, &err),
                   GRQ_E_DATA, &err, "must have the shape (any, 16), has (5000, 24)");
    assert_refused(grq_h5_shape(file, "/layers", GRQ_H5_F32, 2, NULL, shape, &err), GRQ_E_IO, &err, "not a dataset");
    grq_h5_close(file);
}

static void wrong_files_are_refused_by_name(void **state)
{
    (void)state;
    grq_h5 *file;
    assert_refused(grq_h5_open("missing.h5", &file, &err), GRQ_E_IO, &err, "missing.h5: no such file");
    assert_refused(grq_h5_open(test_write_text("text.h5", "hello"), &file, &err), GRQ_E_DATA, &err,
                   "text.h5: is not an HDF5 file");
    assert_refused(grq_h5_open(test_write("none.h5", "", 0), &file, &err), GRQ_E_DATA, &err,
                   "none.h5: is not an HDF5 file");
    assert_refused(grq_h5_open(test_folder(), &file, &err), GRQ_E_IO, &err, test_folder());
    assert_refused(grq_h5_create("no/such/folder.h5", &file, &err), GRQ_E_IO, &err, "no/such/folder.h5");
    assert_refused(grq_h5_create("/dev/null", &file, &err), GRQ_E_IO, &err, "not a regular file");
    char *bytes;
    size_t n;
    assert_ok(grq_file_read(written("whole.h5"), 0, &bytes, &n, &err), &err);
    assert_refused(grq_h5_open(test_write("cut.h5", bytes, n / 2), &file, &err), GRQ_E_IO, &err, "cut.h5: ");
    free(bytes);
}

static void the_same_calls_give_the_same_bytes(void **state)
{
    (void)state;
    char first[GRQ_SHA256_HEX], second[GRQ_SHA256_HEX];
    assert_ok(grq_sha256_file(written("a.h5"), first, &err), &err);
    sleep(2); /* HDF5's times have seconds */
    assert_ok(grq_sha256_file(written("b.h5"), second, &err), &err);
    assert_string_equal(first, second);
}

static void specs_are_checked(void **state)
{
    (void)state;
    grq_h5 *file;
    assert_ok(grq_h5_create(test_path("spec.h5"), &file, &err), &err);
    const grq_h5_spec flat = { "/x", GRQ_H5_F32, 2, { 0, 0 }, 0, "1", "no width" },
                      bare = { "/x", GRQ_H5_F32, 1, { 0 }, 0, NULL, "x" };
    assert_refused(grq_h5_dataset_create(file, &flat, NULL, &err), GRQ_E_DATA, &err, "/x: needs");
    assert_refused(grq_h5_dataset_create(file, &bare, NULL, &err), GRQ_E_DATA, &err, "/x: needs");
    const grq_h5_spec good = { "/x", GRQ_H5_F32, 2, { 0, 3 }, 0, "1", "x" };
    grq_h5_dataset *x;
    assert_ok(grq_h5_dataset_create(file, &good, &x, &err), &err);
    assert_refused(grq_h5_dataset_create(file, &good, NULL, &err), GRQ_E_IO, &err, "/x: cannot be created");
    assert_refused(grq_h5_make_scale(x, "x", &err), GRQ_E_DATA, &err, "a scale has one axis");
    assert_refused(grq_h5_attach_scale(x, 1, x, &err), GRQ_E_DATA, &err, "cannot be the scale");
    char *const large = malloc(200001); /* a configuration may be longer than HDF5's old limit of 64 KiB */
    assert_non_null(large);
    memset(large, 'x', 200000);
    large[200000] = '\0';
    assert_ok(grq_h5_put_string(file, "/", "large", large, &err), &err);
    char *back;
    assert_ok(grq_h5_get_string(file, "/", "large", &back, &err), &err);
    assert_string_equal(back, large);
    free(back);
    free(large);
    grq_h5_close(file); /* discards */
    assert_int_equal(test_count_files("spec.h5"), 0);
    grq_h5_close(NULL);
    assert_ok(grq_h5_commit(NULL, &err), &err);
}

/* A limit on the file's size stands for a full disk; in a child, which must also end by itself. */
static int write_beyond_a_limit(const char *path, rlim_t n_bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    alarm(60);
    const struct rlimit limit = { n_bytes, n_bytes };
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    grq_h5 *file;
    grq_status st = grq_h5_create(path, &file, &err);
    if (st == GRQ_OK) {
        st = fill(file);
        if (st == GRQ_OK) st = grq_h5_commit(file, &err);
        else grq_h5_close(file);
    }
    fprintf(stderr, "limit %llu: %s\n", (unsigned long long)n_bytes, err.message);
    if (st != GRQ_E_IO) return 3;
    return strstr(err.message, path) ? 0 : 4;
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    static const rlim_t limits[] = { 0, 300, 5000, 30000 };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        const char *const path = test_path("full.h5");
        const pid_t child = fork();
        if (child == 0) exit(write_beyond_a_limit(path, limits[i])); /* exit: HDF5's own end is part of the test */
        int status = -1;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("limit %d: child ended with %#x", (int)limits[i], status);
        assert_int_equal(test_count_files("full"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(wrong_datasets_are_refused_by_name),
        cmocka_unit_test(wrong_files_are_refused_by_name),
        cmocka_unit_test(the_same_calls_give_the_same_bytes),
        cmocka_unit_test(specs_are_checked),
        cmocka_unit_test(a_full_disk_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
