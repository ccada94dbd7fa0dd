/* tests/support.h - what every test program shares. Header-only; a program uses what it needs. */
#ifndef GATERQ_TESTS_SUPPORT_H
#define GATERQ_TESTS_SUPPORT_H

/* cmocka.h wants these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gaterq/file.h"
#include "gaterq/json.h"
#include "gaterq/status.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof *(array))

/* assert_ok(grq_something(..., &err), &err): prints the message when it fails. */
#define assert_ok(call, err)                                                                                           \
    do {                                                                                                               \
        const grq_status assert_ok_status = (call);                                                                    \
        if (assert_ok_status != GRQ_OK) fail_msg("%s: status %d: %s", #call, (int)assert_ok_status, (err)->message);   \
    } while (0)

/* assert_refused(grq_something(..., &err), GRQ_E_DATA, &err, "train.batch"): this status, and a message with this text.
 */
#define assert_refused(call, expected, err, text)                                                                      \
    do {                                                                                                               \
        const grq_status assert_refused_status = (call);                                                               \
        if (assert_refused_status != (expected))                                                                       \
            fail_msg("%s: status %d instead of %d: %s", #call, (int)assert_refused_status, (int)(expected),            \
                     assert_refused_status == GRQ_OK ? "(accepted)" : (err)->message);                                 \
        if ((err)->status != assert_refused_status || !strstr((err)->message, (text)))                                 \
            fail_msg("%s: the message lacks \"%s\": %s", #call, (text), (err)->message);                               \
    } while (0)

/* ---- a temporary folder per program ---------------------------------------------------------------------------- */

static char test_folder_name[PATH_MAX];
static pid_t test_folder_owner;

static inline int test_remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static inline void test_remove_folder(void)
{
    if (getpid() == test_folder_owner) nftw(test_folder_name, test_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* The program's own folder, made at the first call and removed at exit (not by forked children). */
static inline const char *test_folder(void)
{
    if (test_folder_name[0]) return test_folder_name;
    const char *const base = getenv("TMPDIR");
    snprintf(test_folder_name, sizeof test_folder_name, "%s/gaterq-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(test_folder_name)) {
        fprintf(stderr, "%s: %s\n", test_folder_name, strerror(errno));
        exit(1);
    }
    test_folder_owner = getpid();
    atexit(test_remove_folder);
    return test_folder_name;
}

/* A path in that folder. One of 16 buffers in turn: copy what has to live longer. */
static inline const char *test_path(const char *name)
{
    static char paths[16][PATH_MAX + 256];
    static unsigned next;
    char *const path = paths[next++ % ARRAY_LEN(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", test_folder(), name);
    return path;
}

/* Writes a file as it is, bypassing the code under test; returns its path. */
static inline const char *test_write(const char *name, const void *bytes, size_t n_bytes)
{
    const char *const path = test_path(name);
    FILE *const f = fopen(path, "wb");
    if (!f || (n_bytes && fwrite(bytes, 1, n_bytes, f) != n_bytes) || fclose(f) != 0)
        fail_msg("%s: %s", path, strerror(errno));
    return path;
}

static inline const char *test_write_text(const char *name, const char *text)
{
    return test_write(name, text, strlen(text));
}

/* How many entries of the program's folder have `part` in their name: 0 for ".tmp-" means nothing was left behind. */
static inline size_t test_count_files(const char *part)
{
    char command[PATH_MAX + 128];
    snprintf(command, sizeof command, "find '%s' -name '*%s*' | wc -l", test_folder(), part);
    FILE *const f = popen(command, "r");
    size_t n = SIZE_MAX;
    if (!f || fscanf(f, "%zu", &n) != 1) n = SIZE_MAX;
    if (f) pclose(f);
    return n;
}

/* ---- golden vectors, real data, seeds --------------------------------------------------------------------------- */

/* Opens tests/golden/<name>; the caller closes it. */
static inline grq_json *test_golden(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", GATERQ_GOLDEN_DIR, name);
    grq_json *document = NULL;
    grq_error err = { 0 };
    assert_ok(grq_json_open(path, &document, &err), &err);
    return document;
}

/* Walks "v41.layers.1.seed" from `node`; fails the test when a step is missing. Numbers index arrays. */
static inline grq_json_node *test_walk(grq_json_node *node, const char *path)
{
    char steps[512];
    snprintf(steps, sizeof steps, "%s", path);
    char *rest = NULL;
    for (char *step = strtok_r(steps, ".", &rest); step; step = strtok_r(NULL, ".", &rest)) {
        grq_json_node *const next = grq_json_kind_of(node) == GRQ_JSON_ARRAY
                                        ? grq_json_at(node, strtoul(step, NULL, 10))
                                        : grq_json_find(node, step);
        if (!next) fail_msg("%s has no %s (looking for %s)", grq_json_where(node), step, path);
        node = next;
    }
    return node;
}

static inline uint64_t test_u64(grq_json_node *node)
{
    uint64_t value = 0;
    grq_error err = { 0 };
    assert_ok(grq_json_as_u64(node, 0, UINT64_MAX, &value, &err), &err);
    return value;
}

static inline int64_t test_i64(grq_json_node *node)
{
    int64_t value = 0;
    grq_error err = { 0 };
    assert_ok(grq_json_as_i64(node, INT64_MIN, INT64_MAX, &value, &err), &err);
    return value;
}

static inline double test_f64(grq_json_node *node)
{
    double value = 0;
    grq_error err = { 0 };
    assert_ok(grq_json_as_f64(node, -HUGE_VAL, HUGE_VAL, &value, &err), &err);
    return value;
}

static inline const char *test_string(grq_json_node *node)
{
    const char *value = NULL;
    grq_error err = { 0 };
    assert_ok(grq_json_as_string(node, &value, &err), &err);
    return value;
}

/* The numbers of nested lists, in order; returns how many. */
static inline size_t test_numbers(grq_json_node *node, double *out, size_t room)
{
    if (grq_json_kind_of(node) != GRQ_JSON_ARRAY) {
        assert_true(room > 0);
        *out = test_f64(node);
        return 1;
    }
    size_t n = 0;
    for (size_t i = 0; i < grq_json_count(node); i++) n += test_numbers(grq_json_at(node, i), out + n, room - n);
    return n;
}

/* Ends the program as skipped, loudly. For main(), before any test has run. */
static inline void test_skip(const char *why)
{
    fprintf(stderr, "\nSKIPPED: %s\n\n", why);
    exit(77);
}

/* The path of real data, or NULL: $GATERQ_DATA/<name>, else ../shared/datasets/<name> beside the project. */
static inline const char *test_data(const char *name)
{
    static char path[PATH_MAX + 256];
    const char *const given = getenv("GATERQ_DATA");
    if (given && *given) {
        snprintf(path, sizeof path, "%s/%s", given, name);
        if (access(path, R_OK) == 0) return path;
    }
    snprintf(path, sizeof path, "%s/../shared/datasets/%s", GATERQ_SOURCE_DIR, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

/* The seed of a property test: $GATERQ_TEST_SEED, else from the clock. Printed once, so that a failure can be replayed.
 */
static inline uint64_t test_seed(void)
{
    static uint64_t seed;
    static bool known;
    if (known) return seed;
    const char *const given = getenv("GATERQ_TEST_SEED");
    if (given && *given) {
        seed = strtoull(given, NULL, 0);
    } else {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = ((uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec) & 0xFFFFFFFFu;
    }
    known = true;
    fprintf(stderr, "GATERQ_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

#endif
