/* The streaming encoder: the same bytes however it is run, stopped, shared out or put together. */
#include "codec_support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "gaterq/encode.h"
#include "gaterq/safetensors.h"
#include "gaterq/verify.h"

enum { BLOCK = 4096, ROWS = 5 * BLOCK + 777, DIM = 32 };

static float *values;
static grq_table *table;

static grq_encode_job job_of(const char *encoder)
{
    static const grq_codes_origin origin = { "random", 14, "table.safetensors:rows", NULL };
    return (grq_encode_job){ .encoder = encoder_named(encoder), .n_stages = 3, .origin = &origin, .n_threads = 2 };
}

static void encode_to(const char *name, const grq_encode_job *job, grq_encode_result *result)
{
    grq_error err = { 0 };
    assert_ok(grq_encode_file(table, job, test_path(name), result, &err), &err);
}

static bool exists(const char *name)
{
    return grq_file_exists(test_path(name));
}

static void assert_same_file(const char *a, const char *b)
{
    size_t n_a, n_b;
    char *const x = file_bytes(test_path(a), &n_a), *const y = file_bytes(test_path(b), &n_b);
    if (n_a != n_b || memcmp(x, y, n_a)) fail_msg("%s and %s differ (%zu and %zu bytes)", a, b, n_a, n_b);
    free(x);
    free(y);
}

/* `whole`: the table coded at once by this encoder. */
static void make_whole(const char *encoder)
{
    grq_encode_result result;
    const grq_encode_job job = job_of(encoder);
    encode_to("whole", &job, &result);
    assert_true(result.complete);
    assert_int_equal(result.n_rows, ROWS);
    assert_int_equal(result.n_coded, ROWS);
    assert_false(exists("whole.partial") || exists("whole.journal"));
}

static void threads_and_memory_give_the_same_bytes(void **state)
{
    (void)state;
    for (size_t e = 0; grq_encoder_at(e); e++) {
        const char *const name = grq_encoder_at(e)->name;
        make_whole(name);
        for (uint32_t n = 1; n <= 3; n++) {
            grq_encode_job job = job_of(name);
            grq_encode_result result;
            job.n_threads = n;
            encode_to("threads", &job, &result);
            assert_same_file("whole", "threads");
        }
        grq_error err = { 0 };
        grq_codes *const codes = encode(encoder_named(name), values, ROWS, DIM, 3, 2);
        assert_ok(grq_codes_save(codes, test_path("saved"), &err), &err);
        grq_codes_close(codes);
        assert_same_file("whole", "saved");
    }
}

static void parts_join_to_the_whole(void **state)
{
    (void)state;
    static const uint64_t bound[] = { 0, BLOCK, 3 * BLOCK, ROWS };
    char *const part[] = { strdup(test_path("part0")), strdup(test_path("part1")), strdup(test_path("part2")) };
    grq_encode_job job = job_of("tcq-b");
    grq_encode_result result;
    grq_error err = { 0 };
    grq_codes *codes = NULL;
    make_whole("tcq-b");
    for (int i = 0; i < 3; i++) {
        job.first_row = bound[i];
        job.n_rows = i < 2 ? bound[i + 1] - bound[i] : 0;
        assert_ok(grq_encode_file(table, &job, part[i], &result, &err), &err);
        assert_int_equal(result.n_rows, bound[i + 1] - bound[i]);
        assert_refused(grq_codes_open(part[i], &codes, &err), GRQ_E_DATA, &err, "gaterq encode --join");
    }
    const char *const shuffled[] = { part[2], part[0], part[1] };
    assert_ok(grq_encode_join(shuffled, 3, test_path("joined"), NULL, &result, &err), &err);
    assert_same_file("whole", "joined");
    assert_false(exists("joined.partial"));

    assert_refused(grq_encode_join((const char *const *)part, 2, test_path("j"), NULL, &result, &err), GRQ_E_DATA, &err,
                   "no part holds rows 12288 to");
    const char *const twice[] = { part[0], part[1], part[1], part[2] }, *const late[] = { part[1], part[2] };
    assert_refused(grq_encode_join(twice, 4, test_path("j"), NULL, &result, &err), GRQ_E_DATA, &err,
                   "both hold row 4096");
    assert_refused(grq_encode_join(late, 2, test_path("j"), NULL, &result, &err), GRQ_E_DATA, &err,
                   "no part holds rows 0 to 4095");
    job.n_stages = 2;
    job.first_row = bound[1];
    job.n_rows = bound[2] - bound[1];
    assert_ok(grq_encode_file(table, &job, part[1], &result, &err), &err);
    assert_refused(grq_encode_join((const char *const *)part, 3, test_path("j"), NULL, &result, &err), GRQ_E_DATA, &err,
                   "stages");
    assert_false(exists("j") || exists("j.partial"));
    for (int i = 0; i < 3; i++) free(part[i]);
}

static void a_damaged_part_is_not_joined(void **state)
{
    (void)state;
    char *const part[] = { strdup(test_path("half0")), strdup(test_path("half1")) };
    grq_encode_job job = job_of("integer");
    grq_encode_result result;
    grq_error err = { 0 };
    job.n_rows = 2 * BLOCK;
    assert_ok(grq_encode_file(table, &job, part[0], &result, &err), &err);
    job.first_row = 2 * BLOCK;
    job.n_rows = 0;
    assert_ok(grq_encode_file(table, &job, part[1], &result, &err), &err);
    size_t n;
    char *const bytes = file_bytes(part[0], &n);
    bytes[n / 3] ^= 4; /* among the codes */
    test_write("half0", bytes, n);
    free(bytes);
    assert_refused(grq_encode_join((const char *const *)part, 2, test_path("j"), NULL, &result, &err), GRQ_E_DATA, &err,
                   "do not have their digest");
    assert_false(exists("j") || exists("j.partial"));
    free(part[0]);
    free(part[1]);
}

/* Runs `job` in a process of its own; returns it. */
static pid_t start(const grq_encode_job *job, const char *path)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        grq_encode_result result;
        grq_error err = { 0 };
        const grq_status st = grq_encode_file(table, job, path, &result, &err);
        if (st != GRQ_OK) fprintf(stderr, "encode: %s\n", err.message);
        _exit(st == GRQ_OK ? 0 : 1);
    }
    return pid;
}

/* Killed at random moments, torn behind its back, and repeated until it is done. One thread: the OpenMP of a forked
 * process has no others. */
static void killed_runs_end_in_the_same_bytes(void **state)
{
    (void)state;
    grq_encode_job job = job_of("tcq-t8");
    uint64_t n_killed = 0;
    make_whole("tcq-t8");
    job.n_threads = 1;
    for (uint64_t delay_us = 20000; n_killed < 25;) {
        unlink(test_path("killed"));
        for (;;) {
            int how;
            const pid_t pid = start(&job, test_path("killed"));
            usleep((useconds_t)(500 + grq_rng_below(&rng, delay_us)));
            kill(pid, SIGKILL);
            waitpid(pid, &how, 0);
            if (WIFEXITED(how)) {
                assert_int_equal(WEXITSTATUS(how), 0);
                break;
            }
            n_killed++;
            if (exists("killed")) assert_same_file("whole", "killed");     /* only its journal is left to remove */
            if (exists("killed.journal") && grq_rng_below(&rng, 3) == 0) { /* a record cut short */
                struct stat info;
                assert_int_equal(stat(test_path("killed.journal"), &info), 0);
                assert_int_equal(truncate(test_path("killed.journal"), info.st_size - info.st_size / 7), 0);
            }
            if (delay_us < 400000) delay_us += 5000;
        }
        assert_same_file("whole", "killed");
        assert_false(exists("killed.partial") || exists("killed.journal"));
        delay_us = 20000;
    }
    print_message("%llu kills\n", (unsigned long long)n_killed);
}

/* A stop asked for after some blocks, as Ctrl-C does. */
static int stop_after(void *context)
{
    int *const left = context;
    return (*left)-- <= 0;
}

static void interrupt(const char *name, const grq_encode_job *like, int n_blocks)
{
    grq_progress progress = { .stop_requested = stop_after, .context = &n_blocks };
    grq_encode_job job = *like;
    grq_encode_result result;
    grq_error err = { 0 };
    job.progress = &progress;
    job.n_threads = 1;
    assert_int_equal(grq_encode_file(table, &job, test_path(name), &result, &err), GRQ_E_INTERRUPTED);
    assert_false(exists(name));
}

static void interrupted_runs_go_on(void **state)
{
    (void)state;
    const grq_encode_job job = job_of("integer");
    grq_encode_result result;
    make_whole("integer");
    interrupt("stopped", &job, 2);
    encode_to("stopped", &job, &result);
    assert_int_equal(result.n_resumed, 3 * BLOCK);
    assert_int_equal(result.n_coded, ROWS - 3 * BLOCK);
    assert_same_file("whole", "stopped");
}

/* Killed when the file had its name, but the journal was not removed yet. */
static void an_ended_run_is_not_repeated(void **state)
{
    (void)state;
    const grq_encode_job job = job_of("integer");
    grq_encode_result result;
    size_t n;
    make_whole("integer");
    interrupt("ended", &job, 5);
    char *const journal = file_bytes(test_path("ended.journal"), &n);
    encode_to("ended", &job, &result);
    test_write("ended.journal", journal, n);
    free(journal);
    encode_to("ended", &job, &result);
    assert_int_equal(result.n_resumed, ROWS);
    assert_int_equal(result.n_coded, 0);
    assert_int_equal(strlen(result.digest), 64);
    assert_true(result.complete);
    assert_same_file("whole", "ended");
    assert_false(exists("ended.partial") || exists("ended.journal"));
}

/* The journal says that a block is done, but its bytes never reached the disk. */
static void lost_bytes_are_coded_again(void **state)
{
    (void)state;
    const grq_encode_job job = job_of("integer");
    grq_encode_result result;
    make_whole("integer");
    interrupt("lost", &job, 3);
    const int fd = open(test_path("lost.partial"), O_RDWR);
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(ftruncate(fd, info.st_size), 0);
    close(fd);
    encode_to("lost", &job, &result);
    assert_int_equal(result.n_resumed, 0);
    assert_same_file("whole", "lost");
}

/* A journal that was harmed ends where it was: what follows is coded again, whatever part of a record it is. */
static void harmed_journals_are_cut(void **state)
{
    (void)state;
    enum { HEADING = 40, RECORD = 80 };
    const grq_encode_job job = job_of("integer");
    grq_encode_result result;
    make_whole("integer");
    for (size_t byte = 0; byte < RECORD; byte += 5) {
        size_t n;
        interrupt("harmed", &job, 3);
        char *const journal = file_bytes(test_path("harmed.journal"), &n);
        assert_int_equal(n, HEADING + 4 * RECORD);
        journal[HEADING + 2 * RECORD + byte] ^= 16;
        test_write("harmed.journal", journal, n);
        free(journal);
        encode_to("harmed", &job, &result);
        assert_int_equal(result.n_resumed, 2 * BLOCK);
        assert_same_file("whole", "harmed");
        unlink(test_path("harmed"));
    }
}

static void another_run_is_not_taken_up(void **state)
{
    (void)state;
    const grq_encode_job job = job_of("integer");
    grq_encode_job other = job;
    grq_encode_result result;
    grq_error err = { 0 };
    interrupt("other", &job, 2);
    other.n_stages = 2;
    assert_refused(grq_encode_file(table, &other, test_path("other"), &result, &err), GRQ_E_DATA, &err,
                   "other settings or of another table");
    const float kept = values[0];
    values[0] = kept + 1;
    assert_refused(grq_encode_file(table, &job, test_path("other"), &result, &err), GRQ_E_DATA, &err,
                   "other settings or of another table");
    values[0] = kept;
    const char *const part = test_path("other");
    assert_refused(grq_encode_join(&part, 1, test_path("other"), NULL, &result, &err), GRQ_E_IO, &err, "other");
    encode_to("other", &job, &result); /* refusals lost nothing */
    assert_int_equal(result.n_resumed, 3 * BLOCK);
    test_write("foreign.journal", "something else, of another program, longer than a heading", 56);
    assert_refused(grq_encode_file(table, &job, test_path("foreign"), &result, &err), GRQ_E_DATA, &err,
                   "not a journal of gaterq encode");
}

static void ranks_share_a_file(void **state)
{
    (void)state;
    make_whole("integer");
    for (uint32_t n = 1; n <= 8; n = n < 3 ? n + 1 : n + 5) {
        pid_t pid[8];
        for (uint32_t r = n; r-- > 0;) {
            grq_encode_job job = job_of("integer");
            job.rank = r;
            job.n_ranks = n;
            job.n_threads = 1;
            pid[r] = start(&job, test_path("ranks"));
        }
        for (uint32_t r = 0; r < n; r++) {
            int how;
            waitpid(pid[r], &how, 0);
            if (!WIFEXITED(how) || WEXITSTATUS(how)) fail_msg("rank %u of %u failed", r, n);
        }
        assert_same_file("whole", "ranks");
        assert_false(exists("ranks.partial"));
    }
}

static void ranges_and_ranks_are_checked(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, n;
        uint32_t rank, n_ranks;
        const char *text;
    } cases[] = {
        { ROWS, 0, 0, 0, "is not in table.safetensors:rows" },
        { 0, ROWS + 1, 0, 0, "has 21257 rows" },
        { 1, 0, 0, 0, "multiple of 4096" },
        { 0, 100, 0, 0, "multiple of 4096" },
        { BLOCK, 2 * BLOCK - 1, 0, 0, "multiple of 4096" },
        { 0, 0, 2, 2, "rank 2 of 2" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        grq_encode_job job = job_of("integer");
        grq_encode_result result;
        grq_error err = { 0 };
        job.first_row = cases[i].first;
        job.n_rows = cases[i].n;
        job.rank = cases[i].rank;
        job.n_ranks = cases[i].n_ranks;
        assert_refused(grq_encode_file(table, &job, test_path("range"), &result, &err), GRQ_E_USAGE, &err,
                       cases[i].text);
        assert_false(exists("range") || exists("range.partial") || exists("range.journal"));
    }
}

static void a_bad_row_leaves_nothing_behind(void **state)
{
    (void)state;
    const grq_encode_job job = job_of("integer");
    grq_encode_result result;
    grq_error err = { 0 };
    const float kept = values[(BLOCK + 5) * DIM + 3];
    values[(BLOCK + 5) * DIM + 3] = NAN;
    test_write("kept", "what was there", 14);
    assert_refused(grq_encode_file(table, &job, test_path("kept"), &result, &err), GRQ_E_DATA, &err,
                   "row 4101, column 3");
    values[(BLOCK + 5) * DIM + 3] = kept;
    assert_false(exists("kept.partial") || exists("kept.journal"));
    size_t n;
    char *const bytes = file_bytes(test_path("kept"), &n);
    assert_true(n == 14 && !memcmp(bytes, "what was there", n));
    free(bytes);
    assert_refused(grq_encode_file(table, &job, test_path("."), &result, &err), GRQ_E_IO, &err, "is a folder");
    assert_refused(grq_encode_file(table, &job, test_path("no/such/folder/c"), &result, &err), GRQ_E_IO, &err,
                   "folder");
    mkfifo(test_path("pipe.partial"), 0600);
    assert_refused(grq_encode_file(table, &job, test_path("pipe"), &result, &err), GRQ_E_IO, &err, "pipe.partial");
}

/* ---- verifying ---- */

static bool passes(const char *path, const char *failed_check)
{
    const grq_verify_options options = { .n_sample = 500, .seed = 1, .n_threads = 2 };
    grq_verify_report report;
    grq_error err = { 0 };
    grq_codes *codes = NULL;
    if (grq_codes_open(path, &codes, &err) != GRQ_OK) return false;
    assert_ok(grq_codes_verify(codes, table, &options, &report, &err), &err);
    grq_codes_close(codes);
    for (size_t i = 0; failed_check && i < report.n_checks; i++)
        if (report.checks[i].passed == !strcmp(report.checks[i].name, failed_check))
            fail_msg("%s: %s: %s", failed_check, report.checks[i].name, report.checks[i].detail);
    return report.passed;
}

static void every_encoder_verifies(void **state)
{
    (void)state;
    for (size_t e = 0; grq_encoder_at(e); e++) {
        make_whole(grq_encoder_at(e)->name);
        if (!passes(test_path("whole"), "none of them")) fail_msg("%s is refused", grq_encoder_at(e)->name);
    }
}

/* Every bit of the header, and bits all over the rest. */
static void a_flipped_bit_fails(void **state)
{
    (void)state;
    grq_encode_job job = job_of("tcq-b");
    grq_encode_result result;
    size_t n;
    job.n_stages = 2;
    encode_to("flip", &job, &result);
    char *const bytes = file_bytes(test_path("flip"), &n);
    uint64_t n_header = 0;
    memcpy(&n_header, bytes, sizeof n_header);
    const int fd = open(test_path("flip"), O_RDWR);
    for (uint64_t k = 0; k < 1200; k++) {
        const uint64_t at = k % 3 ? grq_rng_below(&rng, 8 + n_header) : grq_rng_below(&rng, n);
        const char flipped = (char)(bytes[at] ^ 1 << grq_rng_below(&rng, 8));
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        if (passes(test_path("flip"), NULL))
            fail_msg("byte %llu of %zu may be 0x%02X", (unsigned long long)at, n, flipped & 255);
        assert_int_equal(pwrite(fd, &bytes[at], 1, (off_t)at), 1);
    }
    close(fd);
    free(bytes);
    assert_true(passes(test_path("flip"), "none of them"));
}

static void each_check_finds_its_fault(void **state)
{
    (void)state;
    make_whole("integer");
    const float kept = values[3 * DIM];
    values[3 * DIM] = kept + 1; /* another table than the coded one */
    assert_false(passes(test_path("whole"), "source"));
    values[3 * DIM] = kept;

    grq_error err = { 0 };
    grq_codes *codes = NULL;
    grq_verify_report report;
    grq_verify_options options = { .n_sample = ROWS, .limit = { 0.3, 0, 0 } };
    assert_ok(grq_codes_open(test_path("whole"), &codes, &err), &err);
    assert_ok(grq_codes_verify(codes, table, &options, &report, &err), &err);
    assert_false(report.passed);
    for (size_t i = 0; i < report.n_checks; i++)
        assert_int_equal(report.checks[i].passed, strcmp(report.checks[i].name, "distortion") != 0);
    grq_codes_close(codes);

    /* Honest digests of codes that belong to the rows before them. */
    float *const shifted = malloc((size_t)ROWS * DIM * sizeof *shifted);
    memcpy(shifted, values + DIM, (size_t)(ROWS - 1) * DIM * sizeof *shifted);
    memcpy(shifted + (size_t)(ROWS - 1) * DIM, values, DIM * sizeof *shifted);
    grq_codes *const made = encode(encoder_named("integer"), shifted, ROWS, DIM, 3, 2);
    assert_ok(grq_codes_save(made, test_path("shifted"), &err), &err);
    grq_codes_close(made);
    assert_ok(grq_codes_open(test_path("shifted"), &codes, &err), &err);
    options = (grq_verify_options){ .n_sample = 2000, .seed = 3 };
    assert_ok(grq_codes_verify(codes, table, &options, &report, &err), &err);
    for (size_t i = 0; i < report.n_checks; i++)
        if (!strcmp(report.checks[i].name, "source") || !strcmp(report.checks[i].name, "distortion"))
            assert_false(report.checks[i].passed);
    grq_codes_close(codes);
    free(shifted);
}

/* ---- a table larger than memory ---- */

static uint64_t memory_kib(const char *field)
{
    char line[256];
    unsigned long kib = 0;
    FILE *const f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, field, strlen(field))) sscanf(line + strlen(field), " %lu", &kib);
    fclose(f);
    return kib;
}

/* The first rows of a part have the codes that the same rows have in a table of their own: stage 1's plane comes first.
 */
static void expect_same_codes(const char *part, const float *rows, uint64_t n_rows, uint32_t row_dim)
{
    grq_error err = { 0 };
    grq_codes *const alone = encode(encoder_named("integer"), rows, n_rows, row_dim, 3, 2);
    assert_ok(grq_codes_save(alone, test_path("alone"), &err), &err);
    grq_codes_close(alone);
    const char *const names[] = { part, "alone" };
    char *bytes[2];
    uint64_t n_header[2];
    for (int i = 0; i < 2; i++) {
        size_t n;
        bytes[i] = file_bytes(test_path(names[i]), &n);
        memcpy(&n_header[i], bytes[i], sizeof n_header[i]);
    }
    assert_memory_equal(bytes[0] + 8 + n_header[0], bytes[1] + 8 + n_header[1], n_rows * row_dim / 8);
    free(bytes[0]);
    free(bytes[1]);
}

/* 40 GiB of rows of which few are on the disk: a range in its middle is coded in little memory. */
static void a_sparse_table_of_40_gib(void **state)
{
    (void)state;
    enum { WIDE = 256, FILLED = 5000 };
    const uint64_t n_rows = 40ull << 30 >> 10, first = n_rows / 2;
    const size_t n_bytes = n_rows * WIDE * sizeof(float);
    char header[512];
    const int n_text = snprintf(header + 8, sizeof header - 8,
                                "{\"rows\":{\"dtype\":\"F32\",\"shape\":[%llu,%d],\"data_offsets\":[0,%zu]}}",
                                (unsigned long long)n_rows, WIDE, n_bytes);
    const uint64_t n_header = ((uint64_t)n_text + 8 + 63) / 64 * 64 - 8;
    memset(header + 8 + n_text, ' ', n_header - (uint64_t)n_text);
    memcpy(header, &n_header, sizeof n_header);
    const int fd = open(test_path("sparse.safetensors"), O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(fd, header, 8 + n_header), 8 + n_header);
    if (ftruncate(fd, (off_t)(8 + n_header + n_bytes)) != 0) {
        close(fd);
        print_message("SKIPPED: no sparse file of 40 GiB here: %s\n", strerror(errno));
        skip();
    }
    float *const rows = gaussian_table(FILLED, WIDE, 0);
    assert_int_equal(
        pwrite(fd, rows, FILLED * WIDE * sizeof *rows, (off_t)(8 + n_header + first * WIDE * sizeof *rows)),
        FILLED * WIDE * sizeof *rows);
    close(fd);
    grq_error err = { 0 };
    grq_safetensors *file = NULL;
    grq_table *sparse = NULL;
    assert_ok(grq_safetensors_open(test_path("sparse.safetensors"), &file, &err), &err);
    const void *const pieces[] = { grq_safetensors_at(file, 0)->data };
    const grq_table_layout layout = { .format = GRQ_ROWS_F32,
                                      .n_rows = n_rows,
                                      .row_dim = WIDE,
                                      .rows_per_piece = n_rows,
                                      .values = pieces,
                                      .name = "sparse" };
    assert_ok(grq_table_new(&layout, &sparse, &err), &err);
    grq_encode_job job = job_of("integer");
    grq_encode_result result;
    job.first_row = first;
    job.n_rows = 32 * BLOCK;
    const uint64_t before = memory_kib("RssAnon:");
    assert_ok(grq_encode_file(sparse, &job, test_path("range"), &result, &err), &err);
    const uint64_t grown = memory_kib("VmHWM:");
    print_message("131072 rows of a table of 40 GiB: anonymous memory %llu -> %llu KiB, most resident %llu KiB\n",
                  (unsigned long long)before, (unsigned long long)memory_kib("RssAnon:"), (unsigned long long)grown);
    assert_true(grown < 1u << 20); /* 1 GiB, page cache included */
    grq_table_free(sparse);
    grq_safetensors_close(file);
    expect_same_codes("range", rows, FILLED, WIDE);
    free(rows);
}

static int make_table(void **state)
{
    (void)state;
    values = gaussian_table(ROWS, DIM, 0.5);
    for (uint32_t i = 0; i < DIM; i++) values[77 * DIM + i] = 0;
    table = table_of(values, ROWS, DIM);
    return 0;
}

static int free_table(void **state)
{
    (void)state;
    grq_table_free(table);
    free(values);
    return 0;
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_runs_end_in_the_same_bytes),
        cmocka_unit_test(ranks_share_a_file),
        cmocka_unit_test(threads_and_memory_give_the_same_bytes),
        cmocka_unit_test(parts_join_to_the_whole),
        cmocka_unit_test(a_damaged_part_is_not_joined),
        cmocka_unit_test(interrupted_runs_go_on),
        cmocka_unit_test(an_ended_run_is_not_repeated),
        cmocka_unit_test(lost_bytes_are_coded_again),
        cmocka_unit_test(harmed_journals_are_cut),
        cmocka_unit_test(another_run_is_not_taken_up),
        cmocka_unit_test(ranges_and_ranks_are_checked),
        cmocka_unit_test(a_bad_row_leaves_nothing_behind),
        cmocka_unit_test(every_encoder_verifies),
        cmocka_unit_test(a_flipped_bit_fails),
        cmocka_unit_test(each_check_finds_its_fault),
        cmocka_unit_test(a_sparse_table_of_40_gib),
    };
    return cmocka_run_group_tests(tests, make_table, free_table);
}
