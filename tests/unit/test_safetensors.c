/* Safetensors: what we write reads back, and what is not exactly a safetensors file is refused by name. */
#include "support.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "gaterq/safetensors.h"

static grq_error err;

/* Writes a file from a header's text and a number of data bytes. */
static const char *write_raw(const char *header, size_t n_data_bytes)
{
    const uint64_t n = strlen(header);
    char *const bytes = calloc(1, 8 + n + n_data_bytes);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (char)(n >> 8 * i);
    memcpy(bytes + 8, header, n);
    for (size_t i = 0; i < n_data_bytes; i++) bytes[8 + n + i] = (char)i;
    const char *const path = test_write("raw.safetensors", bytes, 8 + n + n_data_bytes);
    free(bytes);
    return path;
}

static void a_written_file_reads_back(void **state)
{
    (void)state;
    static const float table[32] = { 1, -2.5f, 3e-8f };
    static const uint8_t codes[5] = { 1, 2, 3, 4, 255 };
    static const int64_t ids[2] = { INT64_MIN, 7 };
    const grq_tensor tensors[] = {
        { "table \"\xC3\xA9\"", GRQ_F32, 2, { 16, 2 }, sizeof table, table },
        { "empty", GRQ_F16, 2, { 0, 9 }, 0, NULL },
        { "ids", GRQ_I64, 1, { 2 }, sizeof ids, ids },
        { "codes", GRQ_U8, 1, { 5 }, sizeof codes, codes },
        { "scalar", GRQ_BOOL, 0, { 0 }, 1, codes },
    };
    const grq_metadata metadata[] = { { "family", "engram-v1" }, { "config", "{\"a\": \"\n\"}" } };
    const char *const path = test_path("w.safetensors");
    assert_ok(grq_safetensors_write(path, tensors, ARRAY_LEN(tensors), metadata, ARRAY_LEN(metadata), &err), &err);
    grq_safetensors *file;
    assert_ok(grq_safetensors_open(path, &file, &err), &err);
    assert_int_equal(grq_safetensors_count(file), ARRAY_LEN(tensors));
    assert_null(grq_safetensors_at(file, ARRAY_LEN(tensors)));
    assert_string_equal(grq_safetensors_path(file), path);
    assert_int_equal((uintptr_t)grq_safetensors_at(file, 0)->data % 64, 0);
    for (size_t i = 0; i < ARRAY_LEN(tensors); i++) {
        const grq_tensor *const in = &tensors[i], *const out = grq_safetensors_at(file, i), *got;
        assert_string_equal(out->name, in->name);
        assert_ptr_equal(grq_safetensors_find(file, in->name), out);
        assert_ok(grq_safetensors_get(file, in->name, in->dtype, in->rank, in->shape, &got, &err), &err);
        assert_ptr_equal(got, out);
        assert_int_equal(out->rank, in->rank);
        assert_int_equal(out->n_bytes, in->n_bytes);
        if (in->n_bytes) assert_memory_equal(out->data, in->data, in->n_bytes);
    }
    assert_string_equal(grq_safetensors_metadata(file, "config"), metadata[1].value);
    assert_null(grq_safetensors_metadata(file, "none"));
    const grq_tensor *got;
    assert_refused(grq_safetensors_get(file, "nil", GRQ_F32, 0, NULL, &got, &err), GRQ_E_DATA, &err,
                   "tensor \"nil\" is missing");
    assert_refused(grq_safetensors_get(file, "ids", GRQ_F32, 0, NULL, &got, &err), GRQ_E_DATA, &err,
                   "w.safetensors: tensor \"ids\" must be F32 of any shape, is I64 (2)");
    assert_refused(grq_safetensors_get(file, "ids", GRQ_I64, 2, (const uint64_t[]){ 2, 3 }, &got, &err), GRQ_E_DATA,
                   &err, "must be I64 (2, 3), is I64 (2)");
    grq_safetensors_close(file);
    grq_safetensors_close(NULL);
}

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
    const char *header;
    size_t n_data_bytes;
    const char *message; /* NULL: must be accepted */
} headers[] = {
    { "{}", 0, NULL },
    { "{\"a\":" T("F32", "[2]", "[0,8]") "}   ", 8, NULL },
    { "{\"b\":" T("U8", "[3]", "[4,7]") ",\"a\":" T("F32", "[]", "[0,4]") "}", 7, NULL }, /* any order of names */
    { "{\"a\":" T("U8", "[3]", "[0,3]") ",\"e\":" T("F64", "[0]", "[3,3]") "}", 3, NULL },
    { "{\"__metadata__\":{\"k\":\"v\"},\"a\":" T("F8_E8M0", "[1]", "[0,1]") "}", 1, NULL },
    { "{}", 1, "1 bytes after the last tensor" },
    { " {}", 0, "does not start with {" },
    { "[]", 0, "does not start with {" },
    { "", 0, "does not start with {" },
    { "{\"a\":" T("F32", "[2]", "[0,8]") "}\n1", 8, "text after the end" },
    { "{\"a\":" T("F32", "[2]", "[0,8]") ",\"a\":" T("F32", "[2]", "[8,16]") "}", 16, "a: appears twice" },
    { "{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[2]", "[4,12]") "}", 12,
      "b: begins at 4, inside a, which ends at 8" },
    { "{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[2]", "[12,20]") "}", 20,
      "b: begins at 12, which leaves a hole of 4" },
    { "{\"a\":" T("F32", "[2]", "[4,12]") "}", 12, "a: begins at 4, which leaves a hole of 4" },
    { "{\"a\":" T("F32", "[2]", "[0,8]") "}", 9, "1 bytes after the last tensor" },
    { "{\"a\":" T("F32", "[2]", "[0,8]") "}", 7, "a.data_offsets[1]: must be from 0 to 7, is 8" },
    { "{\"a\":" T("F32", "[2]", "[8,0]") "}", 8, "begin 8 lies behind end 0" },
    { "{\"a\":" T("F32", "[2]", "[0,7]") "}", 7, "a.data_offsets: 7 bytes, but F32 (2) needs 8" },
    { "{\"a\":" T("F31", "[2]", "[0,8]") "}", 8, "a: unknown dtype \"F31\"" },
    { "{\"a\":" T("f32", "[2]", "[0,8]") "}", 8, "unknown dtype \"f32\"" },
    { "{\"a\":" T("U8", "[-1]", "[0,8]") "}", 8, "a.shape[0]: must be from 0" },
    { "{\"a\":" T("U8", "[\"8\"]", "[0,8]") "}", 8, "a.shape[0]: must be a number" },
    { "{\"a\":" T("U8", "[8.5]", "[0,8]") "}", 8, "must be a whole number" },
    { "{\"a\":" T("U8", "[4294967296,4294967296,8]", "[0,0]") "}", 0, "a.shape: more than 2^64 bytes" },
    { "{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "9 axes; at most 8" },
    { "{\"a\":" T("U8", "8", "[0,8]") "}", 8, "a.shape: must be an array" },
    { "{\"a\":" T("U8", "[8]", "[0,8,9]") "}", 8, "must hold begin and end" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "a: the key \"data_offsets\" is missing" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1, "a.x: unknown key" },
    { "{\"a\":7}", 0, "a: must be an object" },
    { "{\"__metadata__\":{\"k\":1}}", 0, "__metadata__.k: must be a string" },
    { "{\"__metadata__\":[]}", 0, "__metadata__: must be an object" },
    { "{\"\xFF\":" T("U8", "[0]", "[0,0]") "}", 0, "not UTF-8" },
};

static void the_header_is_read_strictly(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        grq_safetensors *file = NULL;
        const grq_status st = grq_safetensors_open(write_raw(headers[i].header, headers[i].n_data_bytes), &file, &err);
        const char *const wanted = headers[i].message;
        if (wanted ? st != GRQ_E_DATA || !strstr(err.message, wanted) || !strstr(err.message, "raw.safetensors")
                   : st != GRQ_OK)
            fail_msg("%s: %s (instead of %s)", headers[i].header, st ? err.message : "accepted",
                     wanted ? wanted : "accepted");
        grq_safetensors_close(file);
    }
}

static void the_length_is_read_strictly(void **state)
{
    (void)state;
    grq_safetensors *file;
    assert_refused(grq_safetensors_open("missing", &file, &err), GRQ_E_IO, &err, "missing: No such file");
    assert_refused(grq_safetensors_open("/", &file, &err), GRQ_E_IO, &err, "not a regular file");
    assert_refused(grq_safetensors_open("/dev/null", &file, &err), GRQ_E_IO, &err, "not a regular file");
    assert_refused(grq_safetensors_open(test_write("s", "", 0), &file, &err), GRQ_E_DATA, &err, "only 0 bytes");
    assert_refused(grq_safetensors_open(test_write("s", "\2\0\0\0\0\0\0", 7), &file, &err), GRQ_E_DATA, &err,
                   "only 7 bytes");
    assert_refused(grq_safetensors_open(test_write("s", "\3\0\0\0\0\0\0\0{}", 10), &file, &err), GRQ_E_DATA, &err,
                   "a header of 3 bytes in a file that has 2");
    assert_refused(grq_safetensors_open(test_write("s", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10), &file, &err),
                   GRQ_E_DATA, &err, "18446744073709551615 bytes, above the limit");
    assert_refused(grq_safetensors_open(test_write("s", "\x01\xE1\xF5\x05\0\0\0\0{}", 10), &file, &err), GRQ_E_DATA,
                   &err, "100000001 bytes, above the limit");
    assert_refused(grq_safetensors_open(test_write("s", "\x00\xE1\xF5\x05\0\0\0\0{}", 10), &file, &err), GRQ_E_DATA,
                   &err, "100000000 bytes in a file that has 2");
}

static void crooked_data_are_not_handed_out(void **state)
{
    (void)state;
    grq_safetensors *file;
    const grq_tensor *t;
    const char *const header = "{\"c\":" T("U8", "[1]", "[0,1]") ",\"x\":" T("F32", "[1]", "[1,5]") "}";
    assert_ok(grq_safetensors_open(write_raw(header, 5), &file, &err), &err);
    assert_refused(grq_safetensors_get(file, "x", GRQ_F32, 0, NULL, &t, &err), GRQ_E_DATA, &err,
                   "no multiple of its 4-byte");
    grq_safetensors_close(file);
}

static void the_writer_refuses_what_cannot_be_read_back(void **state)
{
    (void)state;
    static const uint8_t byte = 1;
    const char *const path = test_path("refused.safetensors");
    const grq_tensor good = { "a", GRQ_U8, 1, { 1 }, 1, &byte };
    static const struct {
        grq_tensor tensor;
        const char *message;
    } cases[] = {
        { { "a", GRQ_U8, 1, { 1 }, 1, &byte }, "tensor \"a\" appears twice" },
        { { "\xFF", GRQ_U8, 1, { 1 }, 1, &byte }, "not UTF-8" },
        { { NULL, GRQ_U8, 1, { 1 }, 1, &byte }, "has no name" },
        { { "__metadata__", GRQ_U8, 1, { 1 }, 1, &byte }, "must not be called" },
        { { "b", GRQ_U8, 1, { 2 }, 1, &byte }, "b: 1 bytes at hand do not make U8 (2)" },
        { { "b", GRQ_U8, 1, { 1 }, 1, NULL }, "bytes at NULL" },
        { { "b", GRQ_U8, 9, { 1 }, 1, &byte }, "9 axes" },
        { { "b", GRQ_F64, 2, { UINT64_MAX, 2 }, 1, &byte }, "do not make" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_refused(grq_safetensors_write(path, (const grq_tensor[]){ good, cases[i].tensor }, 2, NULL, 0, &err),
                       GRQ_E_DATA, &err, cases[i].message);
    const grq_metadata twice[] = { { "k", "1" }, { "k", "2" } }, broken = { "k", "\xFF" }, none = { "k", NULL };
    assert_refused(grq_safetensors_write(path, &good, 1, twice, 2, &err), GRQ_E_DATA, &err,
                   "metadata \"k\" appears twice");
    assert_refused(grq_safetensors_write(path, &good, 1, &broken, 1, &err), GRQ_E_DATA, &err,
                   "metadata \"k\" is not UTF-8");
    assert_refused(grq_safetensors_write(path, &good, 1, &none, 1, &err), GRQ_E_DATA, &err,
                   "metadata \"k\" is not UTF-8");
    assert_int_equal(test_count_files("refused"), 0);
}

/* A limit on the file's size stands for a full disk. */
static int write_beyond_a_limit(const char *path)
{
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = { 100000, 100000 };
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    static uint8_t bytes[200000];
    const grq_tensor t = { "a", GRQ_U8, 1, { sizeof bytes }, sizeof bytes, bytes };
    grq_error e = { 0 };
    if (grq_safetensors_write(path, &t, 1, NULL, 0, &e) != GRQ_E_IO) return 3;
    return strstr(e.message, path) ? 0 : 4;
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    const char *const path = test_path("full.safetensors");
    const pid_t child = fork();
    if (child == 0) _exit(write_beyond_a_limit(path));
    int status = -1;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("child ended with %#x", status);
    assert_int_equal(test_count_files("full"), 0);
}

/* 200,000 tensors: quadratic work would take minutes. */
static void many_tensors_take_no_time(void **state)
{
    (void)state;
    enum { N = 200000, NAME = 16 };
    grq_tensor *const tensors = calloc(N, sizeof *tensors);
    char(*const names)[NAME] = calloc(N, NAME);
    uint8_t *const bytes = calloc(1, N);
    assert_true(tensors && names && bytes);
    for (int i = 0; i < N; i++) {
        snprintf(names[i], NAME, "t%d", (int)(i * INT64_C(7919) % N));
        tensors[i] = (grq_tensor){ names[i], GRQ_U8, 1, { 1 }, 1, bytes + i };
    }
    const clock_t begin = clock();
    const char *const path = test_path("many.safetensors");
    assert_ok(grq_safetensors_write(path, tensors, N, NULL, 0, &err), &err);
    grq_safetensors *file;
    assert_ok(grq_safetensors_open(path, &file, &err), &err);
    assert_int_equal(grq_safetensors_count(file), N);
    for (int i = 0; i < N; i++)
        assert_ptr_equal(grq_safetensors_find(file, names[i]), grq_safetensors_at(file, (size_t)i));
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > 30) fail_msg("%.1f s", seconds);
    grq_safetensors_close(file);
    free(bytes);
    free(names);
    free(tensors);
}

/* Over 4 GiB, of which only the pages with something in them take memory. Writes as much to the disk, so only on
 * request. */
static void more_than_4_gib(void **state)
{
    (void)state;
    if (!getenv("GATERQ_TEST_LARGE")) {
        fprintf(stderr, "SKIPPED: a tensor above 4 GiB; set GATERQ_TEST_LARGE=1 (needs 4.1 GiB of disk)\n");
        skip();
    }
    const size_t n = (UINT64_C(1) << 32) + 4097;
    uint8_t *const bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(bytes != MAP_FAILED);
    bytes[n - 1] = 77;
    static const uint8_t last = 5;
    const grq_tensor tensors[] = { { "large", GRQ_U8, 1, { n }, n, bytes }, { "last", GRQ_U8, 1, { 1 }, 1, &last } };
    const char *const path = test_path("large.safetensors");
    assert_ok(grq_safetensors_write(path, tensors, 2, NULL, 0, &err), &err);
    munmap(bytes, n);
    grq_safetensors *file;
    assert_ok(grq_safetensors_open(path, &file, &err), &err);
    const grq_tensor *const large = grq_safetensors_find(file, "large");
    assert_true(large->n_bytes == n && ((const uint8_t *)large->data)[n - 1] == 77);
    assert_int_equal(*(const uint8_t *)grq_safetensors_find(file, "last")->data, 5);
    grq_safetensors_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_file_reads_back),
        cmocka_unit_test(the_header_is_read_strictly),
        cmocka_unit_test(the_length_is_read_strictly),
        cmocka_unit_test(crooked_data_are_not_handed_out),
        cmocka_unit_test(the_writer_refuses_what_cannot_be_read_back),
        cmocka_unit_test(a_full_disk_leaves_nothing),
        cmocka_unit_test(many_tensors_take_no_time),
        cmocka_unit_test(more_than_4_gib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
