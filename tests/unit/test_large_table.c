/* A table of 39 GiB, more than this machine's memory may be: rows are found where they lie, behind 2^32 bytes and 2^32
 * values too, and only what is read takes memory. The file is made of holes but for a few rows. */
#include "checkpoint_support.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "gaterq/checkpoint.h"

enum { DIM = 256, N_SCALES = 8, N_COLUMNS = 4, RESIDENT_MIB = 64 };

static grq_error err;
static test_checkpoint c;
static uint64_t n_rows;
static off_t n_header, n_bytes;
static int fd;

/* Four heads of 40 million rows each: DeepSeek-V4.1 has 24 of 16 million. */
static const char geometry[] =
    "{\"family\": \"large\", \"layer_ids\": [1], \"min_order\": 2, \"max_order\": 3, \"n_heads\": 2, \"row_dim\": 256, "
    "\"width\": 8, \"n_branches\": 1, \"prime_start\": 40000000, \"n_ids\": 99092, \"pad_id\": 2, "
    "\"multiplier_seed\": 10007, \"norm_eps\": 1e-20, \"gate_clamp\": 1e-6}";

static off_t place_of_row(uint64_t row)
{
    return n_header + (off_t)(row * DIM);
}

static off_t place_of_scales(uint64_t row)
{
    return n_header + (off_t)(n_rows * DIM + row * N_SCALES);
}

/* A row's bytes follow from its number, so that a row in a wrong place is noticed. */
static void row_bytes(uint64_t row, uint8_t values[DIM], uint8_t scales[N_SCALES])
{
    grq_rng rng;
    grq_rng_seed(&rng, row);
    for (int i = 0; i < DIM; i++) values[i] = (uint8_t)(grq_rng_below(&rng, 0x7F) | grq_rng_below(&rng, 2) << 7);
    for (int i = 0; i < N_SCALES; i++) scales[i] = (uint8_t)(100 + grq_rng_below(&rng, 40));
}

static void put_row(uint64_t row)
{
    uint8_t values[DIM], scales[N_SCALES];
    row_bytes(row, values, scales);
    if (pwrite(fd, values, DIM, place_of_row(row)) != DIM ||
        pwrite(fd, scales, N_SCALES, place_of_scales(row)) != N_SCALES)
        fail_msg("row %" PRIu64 ": %s", row, strerror(errno));
}

static void check_row(uint64_t row, bool written, const float *got)
{
    uint8_t values[DIM] = { 0 }, scales[N_SCALES] = { 0 };
    if (written) row_bytes(row, values, scales);
    for (int i = 0; i < DIM; i++) {
        const float want = ldexpf(grq_f32_from_e4m3(values[i]), scales[i / 32] - 127);
        if (memcmp(&want, &got[i], sizeof want))
            fail_msg("row %" PRIu64 ", column %d: %a instead of %a", row, i, (double)got[i], (double)want);
    }
}

static double resident_mib(void)
{
    FILE *const f = fopen("/proc/self/status", "r");
    char line[256];
    double kib = NAN;
    while (f && fgets(line, sizeof line, f)) sscanf(line, "VmRSS: %lf", &kib);
    if (f) fclose(f);
    if (isnan(kib)) fail_msg("/proc/self/status has no VmRSS");
    return kib / 1024;
}

static double most_resident_mib(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (double)usage.ru_maxrss / 1024;
}

static grq_table *open_table(grq_checkpoint **open)
{
    grq_table *t = NULL;
    assert_ok(grq_checkpoint_open(c.folder, NULL, open, &err), &err);
    assert_ok(grq_checkpoint_table(*open, 0, &t, &err), &err);
    assert_int_equal(grq_table_n_rows(t), n_rows);
    return t;
}

static void rows_are_found_anywhere(void **state)
{
    (void)state;
    const double before = resident_mib(), most_before = most_resident_mib();
    const uint64_t behind_4gib = UINT64_C(0x100000000) / DIM, middle = n_rows / 2;
    const uint64_t written[] = { 0,      1,          behind_4gib - 1,       behind_4gib, behind_4gib * 8 - 1,
                                 middle, middle + 1, behind_4gib * 8 + 777, n_rows - 2,  n_rows - 1 };
    for (size_t i = 0; i < ARRAY_LEN(written); i++) put_row(written[i]);
    grq_checkpoint *open;
    grq_table *const t = open_table(&open);
    float *const got = malloc((size_t)DIM * N_COLUMNS * 64 * sizeof *got);
    int64_t rows[64 * N_COLUMNS];
    for (size_t i = 0; i < ARRAY_LEN(written); i++) rows[i] = (int64_t)written[ARRAY_LEN(written) - 1 - i];
    assert_ok(grq_table_fetch(t, 5, 2, rows, got, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(written); i++) check_row((uint64_t)rows[i], true, got + i * DIM);
    /* As a sequence reads it: 4 rows a token, anywhere. Holes are zeros. */
    grq_rng rng;
    grq_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) rows[i] = (int64_t)grq_rng_below(&rng, n_rows);
    assert_ok(grq_table_fetch(t, 64, N_COLUMNS, rows, got, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool is_written = false;
        for (size_t k = 0; k < ARRAY_LEN(written); k++) is_written |= written[k] == (uint64_t)rows[i];
        check_row((uint64_t)rows[i], is_written, got + i * DIM);
    }
    rows[0] = (int64_t)n_rows;
    assert_refused(grq_table_fetch(t, 1, 1, rows, got, &err), GRQ_E_DATA, &err,
                   "memory.safetensors:memory.1.table: position 0, head 0: row ");
    const double now = resident_mib(), most = most_resident_mib();
    fprintf(stderr, "resident %.1f MiB before, %.1f MiB after, %.1f MiB at most; the file has %.1f GiB\n", before, now,
            most, (double)n_bytes / (1 << 30));
    if (now - before > RESIDENT_MIB || most - most_before > RESIDENT_MIB)
        fail_msg("resident memory grew from %.1f to %.1f MiB, at most %.1f", before, now, most);
    free(got);
    grq_table_free(t);
    grq_checkpoint_close(open);
}

/* A NaN code in the last row is found by its number, 39 GiB in. */
static void the_last_row_is_refused_by_number(void **state)
{
    (void)state;
    char text[100];
    float got[DIM];
    put_row(n_rows - 1);
    assert_int_equal(pwrite(fd, "\xFF", 1, place_of_row(n_rows - 1) + DIM - 1), 1);
    grq_checkpoint *open;
    grq_table *const t = open_table(&open);
    snprintf(text, sizeof text, "row %" PRIu64 ", column 255: code 0xFF", n_rows - 1);
    assert_refused(grq_table_fetch(t, 1, 1, (const int64_t[]){ (int64_t)n_rows - 1 }, got, &err), GRQ_E_DATA, &err,
                   text);
    grq_table_free(t);
    grq_checkpoint_close(open);
}

static void a_byte_too_few_or_too_many_is_refused_at_once(void **state)
{
    (void)state;
    for (int by = -1; by <= 1; by += 2) {
        grq_checkpoint *open;
        assert_int_equal(ftruncate(fd, n_bytes + by), 0);
        assert_refused(grq_checkpoint_open(c.folder, NULL, &open, &err), GRQ_E_DATA, &err, "memory.safetensors");
    }
    assert_int_equal(ftruncate(fd, n_bytes), 0);
}

/* The header by hand: the writer would write every byte of the data. */
static void make_file(void)
{
    grq_geometry g;
    char path[PATH_MAX + 80], text[512];
    test_checkpoint_new(&c, "large");
    test_save_text(&c, "memory.json", geometry);
    snprintf(path, sizeof path, "%s/memory.json", c.folder);
    if (grq_geometry_open(path, &g, &err) != GRQ_OK) fail_msg("%s", err.message);
    n_rows = g.n_rows[0];
    const uint64_t n_table = n_rows * DIM, n_scales = n_rows * N_SCALES;
    uint64_t n = (uint64_t)snprintf(text, sizeof text,
                                    "{\"memory.1.table\":{\"dtype\":\"F8_E4M3\",\"shape\":[%" PRIu64
                                    ",256],\"data_offsets\":[0,%" PRIu64
                                    "]},\"memory.1.table_scale\":{\"dtype\":\"F8_E8M0\",\"shape\":[%" PRIu64
                                    ",8],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}}",
                                    n_rows, n_table, n_rows, n_table, n_table + n_scales);
    n_header = (off_t)(sizeof n + n);
    n_bytes = n_header + (off_t)(n_table + n_scales);
    snprintf(path, sizeof path, "%s/memory.safetensors", c.folder);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || pwrite(fd, &n, sizeof n, 0) != sizeof n || pwrite(fd, text, n, sizeof n) != (ssize_t)n)
        fail_msg("%s: %s", path, strerror(errno));
}

int main(void)
{
    make_file();
    struct stat info;
    if (ftruncate(fd, n_bytes) != 0 || fstat(fd, &info) != 0 || info.st_blocks > 2048) {
        fprintf(stderr, "%s: %s\n", c.folder, strerror(errno));
        test_skip("the file system of TMPDIR holds no sparse file of 40 GiB; name another in TMPDIR");
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_anywhere),
        cmocka_unit_test(the_last_row_is_refused_by_number),
        cmocka_unit_test(a_byte_too_few_or_too_many_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
