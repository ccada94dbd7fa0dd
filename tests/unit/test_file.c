/* Whole files in, and files out that are complete or not there at all. */
#include "support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static grq_error err;

static void reading_gives_every_byte_and_a_nul(void **state)
{
    (void)state;
    static const char content[] = "a\0b\n\xFF";
    const char *const path = test_write("bytes", content, sizeof content - 1);
    char *bytes;
    size_t n;
    assert_ok(grq_file_read(path, 0, &bytes, &n, &err), &err);
    assert_int_equal(n, sizeof content - 1);
    assert_memory_equal(bytes, content, sizeof content); /* the NUL too */
    free(bytes);
    assert_ok(grq_file_read(path, n, &bytes, &n, &err), &err); /* exactly the limit */
    free(bytes);
    assert_ok(grq_file_read("/dev/null", 0, &bytes, &n, &err), &err);
    assert_true(n == 0 && bytes[0] == '\0');
    free(bytes);
    assert_ok(grq_file_read("/proc/self/status", 0, &bytes, &n, &err), &err); /* has size 0, and content */
    assert_true(n > 0 && strncmp(bytes, "Name:", 5) == 0);
    free(bytes);
}

static void reading_refuses_by_name(void **state)
{
    (void)state;
    char *bytes = (char *)1;
    size_t n;
    assert_refused(grq_file_read("no/such/file", 0, &bytes, &n, &err), GRQ_E_IO, &err, "no/such/file: No such file");
    assert_null(bytes);
    assert_refused(grq_file_read("/", 0, &bytes, &n, &err), GRQ_E_IO, &err, "is a folder");
    const char *const path = test_write_text("long", "0123456789");
    assert_refused(grq_file_read(path, 9, &bytes, &n, &err), GRQ_E_DATA, &err, "larger than the 9 bytes");
    assert_refused(grq_file_read("/dev/zero", 300000, &bytes, &n, &err), GRQ_E_DATA, &err, "/dev/zero: larger than");
}

/* A pipe has no size; the reader must go on until its end. */
static void reading_follows_a_pipe_to_its_end(void **state)
{
    (void)state;
    enum { N = 300000 };
    const char *const path = test_path("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    const pid_t child = fork();
    if (child == 0) {
        FILE *const f = fopen(path, "wb");
        for (int i = 0; f && i < N; i++) fputc(i % 251, f);
        _exit(f && fclose(f) == 0 ? 0 : 1);
    }
    char *bytes;
    size_t n;
    assert_ok(grq_file_read(path, 0, &bytes, &n, &err), &err);
    assert_int_equal(n, N);
    for (int i = 0; i < N; i++) assert_int_equal((unsigned char)bytes[i], i % 251);
    free(bytes);
    waitpid(child, NULL, 0);
}

static void assert_content(const char *path, const char *expected)
{
    char *bytes;
    size_t n;
    assert_ok(grq_file_read(path, 0, &bytes, &n, &err), &err);
    assert_string_equal(bytes, expected);
    free(bytes);
}

static void a_file_appears_at_commit_only(void **state)
{
    (void)state;
    const char *const path = test_path("out");
    grq_outfile *file;
    assert_ok(grq_outfile_open(path, &file, &err), &err);
    fputs("hello", grq_outfile_stream(file));
    assert_false(grq_file_exists(path));
    assert_true(grq_file_exists(grq_outfile_temporary(file)));
    const mode_t mask = umask(027);
    umask(mask);
    assert_ok(grq_outfile_commit(file, &err), &err);
    assert_content(path, "hello");
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
    assert_int_equal(test_count_files(".tmp-"), 0);

    assert_ok(grq_outfile_open(path, &file, &err), &err);
    fputs("never", grq_outfile_stream(file));
    grq_outfile_discard(file);
    assert_content(path, "hello"); /* the old one stays */
    assert_int_equal(test_count_files(".tmp-"), 0);
    grq_outfile_discard(NULL);
    assert_ok(grq_outfile_commit(NULL, &err), &err);
}

static void two_writers_of_one_file_do_not_mix(void **state)
{
    (void)state;
    const char *const path = test_path("both");
    grq_outfile *a, *b;
    assert_ok(grq_outfile_open(path, &a, &err), &err);
    assert_ok(grq_outfile_open(path, &b, &err), &err);
    fputs("first", grq_outfile_stream(a));
    fputs("second", grq_outfile_stream(b));
    assert_ok(grq_outfile_commit(a, &err), &err);
    assert_content(path, "first");
    assert_ok(grq_outfile_commit(b, &err), &err);
    assert_content(path, "second");
}

static void writing_refuses_what_a_rename_would_destroy(void **state)
{
    (void)state;
    grq_outfile *file;
    assert_refused(grq_outfile_open("/dev/null", &file, &err), GRQ_E_IO, &err, "/dev/null: is not a regular file");
    assert_refused(grq_outfile_open(test_folder(), &file, &err), GRQ_E_IO, &err, "is a folder");
    assert_refused(grq_outfile_open("no/such/folder/x", &file, &err), GRQ_E_IO, &err,
                   "no/such/folder/x: cannot be written");
    assert_refused(grq_outfile_open("", &file, &err), GRQ_E_USAGE, &err, "empty");
    const char *const plain = test_write_text("plain", "x");
    char below[PATH_MAX + 300];
    snprintf(below, sizeof below, "%s/below", plain);
    assert_refused(grq_outfile_open(below, &file, &err), GRQ_E_IO, &err, "Not a directory");
}

static void a_link_stays_a_link(void **state)
{
    (void)state;
    const char *const target = test_write_text("target", "old"), *const link = test_path("link");
    assert_int_equal(symlink(target, link), 0);
    grq_outfile *file;
    assert_ok(grq_outfile_open(link, &file, &err), &err);
    fputs("new", grq_outfile_stream(file));
    assert_ok(grq_outfile_commit(file, &err), &err);
    struct stat info;
    assert_true(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    assert_content(target, "new");
}

/* A limit on the file's size fails writes as a full disk does, with another errno. In a child, since it is for good. */
static int write_beyond_a_limit(const char *path, size_t n_bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = { 10000, 10000 };
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    grq_outfile *file;
    grq_error e = { 0 };
    if (grq_outfile_open(path, &file, &e) != GRQ_OK) return 3;
    char *const bytes = calloc(1, n_bytes);
    fwrite(bytes, 1, n_bytes, grq_outfile_stream(file));
    free(bytes);
    if (grq_outfile_commit(file, &e) != GRQ_E_IO) return 4;
    if (!strstr(e.message, path) || !strstr(e.message, "not written") || !strstr(e.message, "bytes are free")) return 5;
    return grq_file_exists(path) ? 6 : 0;
}

static void a_short_write_leaves_nothing(void **state)
{
    (void)state;
    static const size_t sizes[] = { 10001, 13000, 5000000 };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const char *const path = test_path("too-large");
        const pid_t child = fork();
        if (child == 0) _exit(write_beyond_a_limit(path, sizes[i]));
        int status = -1;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("%zu bytes: child ended with %#x", sizes[i], status);
        assert_int_equal(test_count_files("too-large"), 0);
    }
}

static void a_named_temporary_is_put_in_place(void **state)
{
    (void)state;
    const char *const path = test_path("named");
    char *temporary;
    assert_ok(grq_temporary_name(path, &temporary, &err), &err);
    FILE *const f = fopen(temporary, "wb");
    assert_non_null(f);
    fputs("by name", f);
    fclose(f);
    assert_ok(grq_rename_into_place(temporary, path, &err), &err);
    assert_content(path, "by name");
    assert_refused(grq_rename_into_place(temporary, path, &err), GRQ_E_IO, &err, "No such file"); /* gone already */
    free(temporary);
    assert_refused(grq_temporary_name("/dev/null", &temporary, &err), GRQ_E_IO, &err, "regular file");
}

static void folders_are_made_on_the_way(void **state)
{
    (void)state;
    assert_ok(grq_make_directories(test_path("a/b//c/"), &err), &err);
    assert_ok(grq_make_directories(test_path("a/b/c"), &err), &err);
    assert_ok(grq_make_directories("/", &err), &err);
    assert_true(grq_file_exists(test_path("a/b/c")));
    test_write_text("a/file", "x");
    assert_refused(grq_make_directories(test_path("a/file/d"), &err), GRQ_E_IO, &err, "a/file: is a file");
    assert_refused(grq_make_directories("", &err), GRQ_E_USAGE, &err, "empty");
}

static void paths_are_joined_with_one_slash(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        { "a", "b", "a/b" }, { "a/", "b", "a/b" }, { "", "b", "b" }, { "/", "b", "/b" }
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *const joined = grq_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(joined, cases[i][2]);
        free(joined);
    }
}

/* Opening or reading it in the ordinary way would wait for ever. */
static void a_pipe_that_nobody_writes_to_is_refused(void **state)
{
    (void)state;
    char *bytes;
    size_t n;
    const char *const path = test_path("silent");
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(60);
    assert_refused(grq_file_read(path, 0, &bytes, &n, &err), GRQ_E_IO, &err, "silent: a pipe that nothing was written");
    alarm(0);
    assert_null(bytes);
}

/* A writer that is there may take its time. */
static void a_slow_writer_is_waited_for(void **state)
{
    (void)state;
    int ends[2];
    char path[64], *bytes;
    size_t n;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        sleep(3);
        _exit(write(ends[1], "late", 4) == 4 ? 0 : 1);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_ok(grq_file_read(path, 0, &bytes, &n, &err), &err);
    assert_int_equal(n, 4);
    assert_memory_equal(bytes, "late", 4);
    free(bytes);
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_gives_every_byte_and_a_nul),
        cmocka_unit_test(reading_refuses_by_name),
        cmocka_unit_test(reading_follows_a_pipe_to_its_end),
        cmocka_unit_test(a_pipe_that_nobody_writes_to_is_refused),
        cmocka_unit_test(a_slow_writer_is_waited_for),
        cmocka_unit_test(a_file_appears_at_commit_only),
        cmocka_unit_test(two_writers_of_one_file_do_not_mix),
        cmocka_unit_test(writing_refuses_what_a_rename_would_destroy),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(a_short_write_leaves_nothing),
        cmocka_unit_test(a_named_temporary_is_put_in_place),
        cmocka_unit_test(folders_are_made_on_the_way),
        cmocka_unit_test(paths_are_joined_with_one_slash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
