/* Products against plain sums, from one thread and from several, and the environment left as it was. */
#include "support.h"

#include <pthread.h>

#include "gaterq/blas.h"
#include "gaterq/progress.h"
#include "gaterq/rng.h"

static grq_error err;

enum { M = 13, N = 17, K = 19, LARGEST = 24 * 24 };

/* The element (row, column) of op(stored), whose rows are `stride` apart. */
static double element(const double *stored, bool transposed, int row, int column, int stride)
{
    return transposed ? stored[column * stride + row] : stored[row * stride + column];
}

static void products_agree_with_plain_sums(void **state)
{
    (void)state;
    grq_rng rng;
    grq_rng_seed(&rng, test_seed());
    for (int form = 0; form < 8; form++) {
        const bool ta = form & 1, tb = form & 2;
        const double beta = form & 4 ? 0.5 : 0;
        const int lda = (ta ? M : K) + 2, ldb = (tb ? K : N) + 1, ldc = N + 3; /* strides wider than the rows */
        double a[LARGEST], b[LARGEST], c[LARGEST], before[LARGEST];
        float fa[LARGEST], fb[LARGEST], fc[LARGEST];
        for (int i = 0; i < LARGEST; i++) {
            a[i] = fa[i] = (float)grq_rng_normal(&rng);
            b[i] = fb[i] = (float)grq_rng_normal(&rng);
            c[i] = before[i] = fc[i] = beta == 0 ? NAN : (float)grq_rng_normal(&rng); /* beta 0 must not read C */
        }
        grq_dgemm(ta, tb, M, N, K, a, lda, b, ldb, beta, c, ldc);
        grq_sgemm(ta, tb, M, N, K, fa, lda, fb, ldb, (float)beta, fc, ldc);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double sum = beta == 0 ? 0 : beta * before[i * ldc + j], size = fabs(sum);
                for (int k = 0; k < K; k++) {
                    const double term = element(a, ta, i, k, lda) * element(b, tb, k, j, ldb);
                    sum += term;
                    size += fabs(term);
                }
                /* Any order of summation errs by at most (K + 1) roundings of the terms' size. */
                const double d = c[i * ldc + j], f = fc[i * ldc + j];
                if (!(fabs(d - sum) <= (K + 1) * 0x1p-52 * size) || !(fabs(f - sum) <= (K + 1) * 0x1p-23 * size))
                    fail_msg("form %d (%d, %d): %a and %a, plain sum %a", form, i, j, d, f, sum);
            }
    }
}

/* ---- several threads --------------------------------------------------------------------------------------------- */

enum { SIDE = 96, ROUNDS = 50 };
static float factor[SIDE * SIDE];

static void *multiply(void *product)
{
    grq_error own = { 0 };
    if (grq_blas_init(&own) != GRQ_OK) return NULL;
    for (int i = 0; i < ROUNDS; i++)
        grq_sgemm(false, true, SIDE, SIDE, SIDE, factor, SIDE, factor, SIDE, 0, product, SIDE);
    return product;
}

static void threads_get_the_same_bits(void **state)
{
    (void)state;
    static float products[5][SIDE * SIDE];
    grq_rng rng;
    grq_rng_seed(&rng, 1);
    for (int i = 0; i < SIDE * SIDE; i++) factor[i] = (float)grq_rng_normal(&rng);
    assert_ptr_equal(multiply(products[4]), products[4]);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, multiply, products[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, products[i]);
        assert_memory_equal(products[i], products[4], sizeof products[4]);
    }
}

/* Runs first: it looks at what loading does to the environment. */
static int load(void **state)
{
    (void)state;
    setenv("OPENBLAS_NUM_THREADS", "7", 1);
    unsetenv("OPENBLAS_CORETYPE");
    if (grq_blas_init(&err) == GRQ_OK) return 0;
    fprintf(stderr, "%s\n", err.message);
    return -1;
}

static void the_environment_is_left_alone(void **state)
{
    (void)state;
    assert_null(getenv("OPENBLAS_CORETYPE"));
    assert_string_equal(getenv("OPENBLAS_NUM_THREADS"), "7");
    const char *const text = grq_blas_description();
    print_message("%s\n", text);
    assert_true(strncmp(text, "OpenBLAS ", 9) == 0 && strstr(text, "kernel ") && strstr(text, "1 thread per call"));
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        assert_non_null(strstr(text, "chosen by gaterq"));
        assert_null(strstr(text, "Prescott")); /* the SSE3 kernels that this is all about */
    }
#endif
}

/* ---- progress, which has no program of its own ------------------------------------------------------------------- */

static unsigned n_reports;

static void count_report(void *context, const char *stage, uint64_t done, uint64_t total, const char *unit,
                         const char *detail)
{
    (void)context, (void)detail;
    assert_true(strcmp(stage, "train") == 0 && done == 3 && total == 10 && strcmp(unit, "tokens") == 0);
    n_reports++;
}

static int stop_if_asked(void *context)
{
    return *(const int *)context;
}

static void progress_reports_and_stops(void **state)
{
    (void)state;
    int stop = 0;
    const grq_progress progress = { count_report, stop_if_asked, &stop };
    assert_ok(grq_progress_step(NULL, "train", 3, 10, "tokens", NULL, &err), &err);
    assert_ok(grq_progress_step(&progress, "train", 3, 10, "tokens", NULL, &err), &err);
    stop = 1;
    assert_refused(grq_progress_step(&progress, "train", 3, 10, "tokens", NULL, &err), GRQ_E_INTERRUPTED, &err,
                   "train: stopped on request after 3 of 10 tokens");
    assert_int_equal(n_reports, 2);
    const grq_progress silent = { NULL, NULL, NULL };
    assert_ok(grq_progress_step(&silent, "train", 3, 10, "tokens", NULL, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_left_alone),
        cmocka_unit_test(products_agree_with_plain_sums),
        cmocka_unit_test(threads_get_the_same_bits),
        cmocka_unit_test(progress_reports_and_stops),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
