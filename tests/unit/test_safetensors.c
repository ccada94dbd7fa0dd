/* safetensors: what is written reads back; what does not fit together is refused by name. */
#include "support.h"

#include <signal.h>
#include <sys/resource.h>

#include "gaterq/rng.h"
#include "gaterq/safetensors.h"

static const char *write_raw(const char *name, const char *header, const void *data, size_t n_data)
{
    const size_t n = strlen(header);
    char *bytes = malloc(8 + n + n_data);
    for (size_t i = 0; i < 8; i++) bytes[i] = (char)(n >> (8 * i));
    memcpy(bytes + 8, header, n);
    if (n_data) memcpy(bytes + 8 + n, data, n_data);
    const char *path = test_write(name, bytes, 8 + n + n_data);
    free(bytes);
    return path;
}

static void files_come_back(void **state)
{
    (void)state;
    grq_error err;
    grq_safetensors *file;
    const grq_tensor *t;
    static const float a[6] = { 1, 2, 3, 4, 5, 6 };
    static const uint8_t b[5] = { 9, 8, 7, 6, 5 };
    const grq_tensor tensors[] = {
        { .name = "a", .dtype = GRQ_F32, .rank = 2, .shape = { 2, 3 }, .n_bytes = sizeof a, .data = a },
        { .name = "b", .dtype = GRQ_U8, .rank = 1, .shape = { 5 }, .n_bytes = sizeof b, .data = b },
        { .name = "none", .dtype = GRQ_I64, .rank = 1, .shape = { 0 }, .n_bytes = 0, .data = b },
    };
    const grq_metadata metadata[] = { { "format", "test" }, { "text", "quote \" and \xC3\xA9" } };
    const char *path = test_path("ok.safetensors");
    assert_ok(grq_safetensors_write(path, tensors, 3, metadata, 2, &err), &err);
    assert_ok(grq_safetensors_open(path, &file, &err), &err);
    assert_int_equal(grq_safetensors_count(file), 3);
    assert_string_equal(grq_safetensors_metadata(file, "text"), metadata[1].value);
    assert_null(grq_safetensors_metadata(file, "nothing"));
    assert_ok(grq_safetensors_get(file, "a", GRQ_F32, 2, (const uint64_t[]){ 2, 3 }, &t, &err), &err);
    assert_memory_equal(t->data, a, sizeof a);
    assert_int_equal((uintptr_t)t->data % 64, 0);
    assert_refused(grq_safetensors_get(file, "a", GRQ_F16, 2, (const uint64_t[]){ 2, 3 }, &t, &err), GRQ_E_DATA, &err,
                   "a");
    assert_refused(grq_safetensors_get(file, "a", GRQ_F32, 2, (const uint64_t[]){ 3, 2 }, &t, &err), GRQ_E_DATA, &err,
                   "a");
    assert_refused(grq_safetensors_get(file, "c", GRQ_F32, 0, NULL, &t, &err), GRQ_E_DATA, &err, "c");
    grq_safetensors_close(file);
}

static void headers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header, *message;
    } cases[] = {
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "a" }, /* shape wants 8 bytes */
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,12]}}", "a" },
        { "{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]}}", "F99" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "" }, /* a hole at the start */
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "" }, /* trailing bytes */
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
          "\"data_offsets\":[4,8]}}",
          "" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "a" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,8],\"data_offsets\":[0,8]}}", "a" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,8]}}", "a" },
        { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "a" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"extra\":1}}", "a" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"F32\",\"shape\":[0],"
          "\"data_offsets\":[8,8]}}",
          "a" },
        { "{\"__metadata__\":{\"x\":1},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "metadata" },
        { "[]", "" },
        { "{\"a\":", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        grq_error err;
        grq_safetensors *file = NULL;
        static const uint8_t data[8] = { 0 };
        const char *path = write_raw("bad.safetensors", cases[i].header, data, sizeof data);
        assert_refused(grq_safetensors_open(path, &file, &err), GRQ_E_DATA, &err, "bad.safetensors");
        if (!strstr(err.message, cases[i].message)) fail_msg("%s -> %s", cases[i].header, err.message);
        assert_null(file);
    }
    grq_error err;
    grq_safetensors *file;
    static const uint8_t huge[16] = { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F };
    assert_refused(grq_safetensors_open(test_write("huge", huge, sizeof huge), &file, &err), GRQ_E_DATA, &err, "huge");
    assert_refused(grq_safetensors_open(test_write("short", huge, 5), &file, &err), GRQ_E_DATA, &err, "short");
    assert_refused(grq_safetensors_open(test_write("empty", huge, 0), &file, &err), GRQ_E_DATA, &err, "empty");
    assert_refused(grq_safetensors_open(test_path("missing"), &file, &err), GRQ_E_IO, &err, "missing");
}

static void damaged_bytes_never_crash(void **state)
{
    (void)state;
    grq_error err;
    static const float a[40] = { 1 };
    const grq_tensor tensor = {
        .name = "a", .dtype = GRQ_F32, .rank = 1, .shape = { 40 }, .n_bytes = sizeof a, .data = a
    };
    const char *path = test_path("whole.safetensors");
    char *bytes;
    size_t n;
    assert_ok(grq_safetensors_write(path, &tensor, 1, &(const grq_metadata){ "k", "v" }, 1, &err), &err);
    assert_ok(grq_file_read(path, 0, &bytes, &n, &err), &err);
    for (size_t cut = 0; cut < n; cut++) {
        grq_safetensors *file;
        if (grq_safetensors_open(test_write("cut", bytes, cut), &file, &err) == GRQ_OK)
            fail_msg("accepted the first %zu bytes", cut);
    }
    grq_rng rng;
    grq_rng_seed(&rng, test_seed());
    for (int round = 0; round < 1500; round++) {
        char *copy = malloc(n);
        grq_safetensors *file = NULL;
        memcpy(copy, bytes, n);
        copy[grq_rng_below(&rng, n - sizeof a)] = (char)grq_rng_below(&rng, 256);
        if (grq_safetensors_open(test_write("flipped", copy, n), &file, &err) == GRQ_OK)
            for (size_t i = 0; i < grq_safetensors_count(file); i++) {
                const grq_tensor *t = grq_safetensors_at(file, i);
                volatile uint8_t sum = 0;
                for (uint64_t k = 0; k < t->n_bytes; k++) sum = (uint8_t)(sum + ((const uint8_t *)t->data)[k]);
            }
        grq_safetensors_close(file);
        free(copy);
    }
    free(bytes);
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    grq_error err;
    static const float a[65536] = { 1 };
    const grq_tensor tensor = {
        .name = "a", .dtype = GRQ_F32, .rank = 1, .shape = { 65536 }, .n_bytes = sizeof a, .data = a
    };
    const struct rlimit small = { 4096, RLIM_INFINITY };
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const grq_status st = grq_safetensors_write(test_path("full.safetensors"), &tensor, 1, NULL, 0, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(st, GRQ_E_IO);
    assert_non_null(strstr(err.message, "full.safetensors"));
    assert_int_equal(test_count_files("full.safetensors"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(headers_that_do_not_fit_are_refused),
        cmocka_unit_test(damaged_bytes_never_crash),
        cmocka_unit_test(a_full_disk_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
