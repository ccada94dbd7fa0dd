/* Paired comparisons beyond the published tables: intervals and power by simulation, extreme counts, speed. */
#include "support.h"

#include "gaterq/rng.h"
#include "gaterq/stats.h"
#include "stats/resample.h"

/* n items of which A alone is right with probability p12, B alone with p21. */
static grq_paired draw(grq_rng *rng, bool *a, bool *b, size_t n, double p12, double p21, uint32_t n_resamples)
{
    grq_paired p;
    grq_error err = { 0 };
    for (size_t i = 0; i < n; i++) {
        const double u = grq_rng_uniform(rng);
        a[i] = u < p12 || u > 0.7;
        b[i] = (u >= p12 && u < p12 + p21) || u > 0.7;
    }
    assert_ok(grq_paired_compare(a, b, NULL, n, n_resamples, grq_rng_next(rng), &p, &err), &err);
    return p;
}

static void intervals_cover(void **state)
{
    (void)state;
    enum { N = 80, DRAWS = 1500, RESAMPLES = 400 };
    bool a[N], b[N];
    uint32_t percentile = 0, bca = 0, mid = 0, bonett_price = 0, n_mid = 0;
    const double truth = 0.16 - 0.03;
    grq_rng rng;
    grq_rng_seed(&rng, 5);
    for (int i = 0; i < DRAWS; i++) {
        const grq_paired p = draw(&rng, a, b, N, 0.16, 0.03, RESAMPLES);
        const grq_interval bp = grq_bonett_price(p.only_a, p.only_b, N);
        percentile += p.low <= truth && truth <= p.high;
        bca += p.bca_low <= truth && truth <= p.bca_high;
        bonett_price += bp.low <= truth && truth <= bp.high;
        if (p.only_a + p.only_b == 0) continue;
        /* Given the discordant items, of which A should win 16 in 19. */
        const double m = (double)(p.only_a + p.only_b), given = m * (0.16 - 0.03) / (0.16 + 0.03) / N;
        mid += p.mid_low <= given && given <= p.mid_high;
        n_mid++;
    }
    print_message("coverage of 95 %% intervals, %d items: percentile %.3f, BCa %.3f, Bonett-Price %.3f, mid-p %.3f\n",
                  N, (double)percentile / DRAWS, (double)bca / DRAWS, (double)bonett_price / DRAWS,
                  (double)mid / n_mid);
    assert_true(percentile > 0.91 * DRAWS && percentile < 0.975 * DRAWS);
    assert_true(bca > 0.91 * DRAWS && bca < 0.975 * DRAWS);
    assert_true(bonett_price > 0.935 * DRAWS && bonett_price < 0.975 * DRAWS);
    assert_true(mid > 0.935 * n_mid && mid < 0.985 * n_mid);
}

/* With few discordant items, nearly all of A, the difference's law leans; BCa follows it, and without a lean it is the
 * percentile interval. */
static void bca_follows_the_lean(void **state)
{
    (void)state;
    enum { N = 200 };
    bool a[N], b[N];
    grq_paired p;
    grq_error err = { 0 };
    for (int i = 0; i < N; i++) {
        a[i] = i < 8;
        b[i] = false;
    }
    assert_ok(grq_paired_compare(a, b, NULL, N, 20000, 1, &p, &err), &err);
    assert_true(p.bca_low > p.low && p.bca_high > p.high);
    for (int i = 0; i < N; i++) b[i] = i >= 8 && i < 16;
    assert_ok(grq_paired_compare(a, b, NULL, N, 20000, 1, &p, &err), &err);
    assert_true(fabs(p.bca_low - p.low) <= 1.5 / N && fabs(p.bca_high - p.high) <= 1.5 / N);
}

static void the_detectable_difference_is_detected(void **state)
{
    (void)state;
    enum { N = 800, DRAWS = 1500 };
    static bool a[N], b[N];
    const double d = grq_mcnemar_detectable(90, 70, N); /* discordance 0.2 */
    uint32_t n_shown = 0;
    grq_rng rng;
    grq_rng_seed(&rng, 6);
    for (int i = 0; i < DRAWS; i++) n_shown += draw(&rng, a, b, N, 0.1 + d / 2, 0.1 - d / 2, 0).p_mid < 0.05;
    print_message("%d items with discordance 0.2: %.4f is shown in %.3f of draws\n", N, d, (double)n_shown / DRAWS);
    assert_true(n_shown > 0.77 * DRAWS && n_shown < 0.83 * DRAWS);
    assert_true(isnan(grq_mcnemar_detectable(0, 0, 100)) && isnan(grq_mcnemar_detectable(1, 1, 1000)));
    assert_true(grq_mcnemar_detectable(10, 10, 100) > grq_mcnemar_detectable(1000, 1000, 10000));
}

static void extreme_counts(void **state)
{
    (void)state;
    double low, high;
    grq_mcnemar_mid_interval(1002000, 998000, 14000000, &low, &high); /* 2 million discordant */
    const grq_interval wald = grq_wald_difference(1002000, 998000, 14000000);
    assert_true(fabs(low - wald.low) < 1e-7 && fabs(high - wald.high) < 1e-7);
    grq_mcnemar_mid_interval(2000000, 0, 2000000, &low, &high);
    assert_true(low > 0.999995 && high == 1);
    grq_mcnemar_mid_interval(0, 3, 10, &low, &high);
    assert_true(low == -0.3 && high < 0.1 && high > 0); /* mid-p of 3 : 0 is 0.125 */
    assert_true(grq_mcnemar_exact_a_better(0, 2000000) == 1 && grq_mcnemar_mid_p_a_better(0, 0) == 0.5);
    double p;
    grq_error err = { 0 };
    assert_ok(grq_sign_flip(NULL, 0, 0, 1, &p, &err), &err);
    assert_true(p == 1);
    const double bad[] = { 1, NAN };
    assert_refused(grq_sign_flip(bad, 2, 0, 1, &p, &err), GRQ_E_DATA, &err, "item 1");
    double many[40] = { 0.5 };
    assert_refused(grq_sign_flip(many, 40, 0, 1, &p, &err), GRQ_E_USAGE, &err, "resamples");
    assert_ok(grq_sign_flip(many, 40, 999, 1, &p, &err), &err);
    assert_true(p == 1);
}

/* Below the smallest double the logarithm is still there. */
static void tiny_p_values_are_kept(void **state)
{
    (void)state;
    assert_true(fabs(grq_mcnemar_log_exact(2000000, 0) + 1999999 * M_LN2) < 1e-6);
    assert_true(fabs(grq_mcnemar_log_mid_p(0, 2000000) + 2000000 * M_LN2) < 1e-6);
    static const uint64_t pairs[][2] = { { 412, 335 }, { 7, 7 }, { 0, 0 }, { 0, 1070 } };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        const uint64_t a = pairs[i][0], b = pairs[i][1];
        assert_true(fabs(grq_mcnemar_log_exact(a, b) - log(grq_mcnemar_exact(a, b))) < 1e-10);
        assert_true(fabs(grq_mcnemar_log_mid_p(a, b) - log(grq_mcnemar_mid_p(a, b))) < 1e-10);
    }
}

/* The exact distribution of (only_a* - only_b*), by convolution over items; index n is 0. */
static void exact_distribution(size_t n, double p_a, double p_b, double *pmf)
{
    double *next = calloc(2 * n + 1, sizeof *next);
    memset(pmf, 0, (2 * n + 1) * sizeof *pmf);
    pmf[n] = 1;
    for (size_t item = 0; item < n; item++) {
        memset(next, 0, (2 * n + 1) * sizeof *next);
        for (size_t s = n - item; s <= n + item; s++) {
            next[s] += pmf[s] * (1 - p_a - p_b);
            next[s + 1] += pmf[s] * p_a;
            next[s - 1] += pmf[s] * p_b;
        }
        memcpy(pmf, next, (2 * n + 1) * sizeof *pmf);
    }
    free(next);
}

/* Largest gap between the replicates' distribution and the exact one. */
static double kolmogorov(double *replicates, size_t n_replicates, size_t n, const double *pmf)
{
    double cdf = 0, largest = 0;
    size_t at = 0;
    grq_sort_values(replicates, n_replicates);
    for (size_t s = 0; s <= 2 * n; s++) {
        cdf += pmf[s];
        while (at < n_replicates && replicates[at] * (double)n <= (double)s - (double)n + 1e-6) at++;
        largest = fmax(largest, fabs(cdf - (double)at / (double)n_replicates));
    }
    return largest;
}

/* Counts drawn at once and items drawn one by one: both have the distribution that the definition gives. */
static void counts_and_items_have_one_distribution(void **state)
{
    (void)state;
    enum { N = 55, R = 40000 };
    static const uint64_t tables[][2] = { { 9, 2 }, { 1, 0 }, { 27, 28 } };
    double *pmf = calloc(2 * N + 1, sizeof *pmf), *by_counts = calloc(R, sizeof *by_counts),
           *by_items = calloc(R, sizeof *by_items);
    grq_rng rng;
    grq_rng_seed(&rng, 9);
    const gsl_rng generator = { &grq_gsl_view, &rng };
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        const uint64_t only_a = tables[t][0], only_b = tables[t][1];
        exact_distribution(N, (double)only_a / N, (double)only_b / N, pmf);
        for (size_t r = 0; r < R; r++) {
            int sum = 0;
            for (int i = 0; i < N; i++) {
                const uint64_t at = grq_rng_below(&rng, N);
                sum += at < only_a ? 1 : at < only_a + only_b ? -1 : 0;
            }
            by_items[r] = (double)sum / N;
            by_counts[r] = grq_draw_difference(&generator, only_a, only_b, N);
        }
        const double limit = 2.23 / sqrt(R); /* passed once in 20,000 by chance */
        const double counts_gap = kolmogorov(by_counts, R, N, pmf), items_gap = kolmogorov(by_items, R, N, pmf);
        if (!(counts_gap < limit && items_gap < limit))
            fail_msg("table %zu: counts %g, items %g, limit %g", t, counts_gap, items_gap, limit);
    }
    free(pmf);
    free(by_counts);
    free(by_items);
}

static void macro_difference_draws_within_strata(void **state)
{
    (void)state;
    enum { N = 300 };
    static bool a[N], b[N];
    static uint32_t stratum[N];
    for (uint32_t i = 0; i < N; i++) { /* stratum 0: 200 items, 30 against 10; stratum 1: 100 items, all B's */
        stratum[i] = i >= 200;
        a[i] = i < 30;
        b[i] = (i >= 30 && i < 40) || i >= 200;
    }
    grq_macro m, again;
    grq_error err = { 0 };
    assert_ok(grq_macro_compare(a, b, stratum, N, 2, 8000, 8, &m, &err), &err);
    assert_ok(grq_macro_compare(a, b, stratum, N, 2, 8000, 8, &again, &err), &err);
    assert_memory_equal(&m, &again, sizeof m);
    assert_true(fabs(m.difference - (0.1 - 1) / 2) < 1e-15);
    /* Stratum 1 does not vary, so all spread is that of stratum 0, halved; drawing over strata would add to it. */
    const double half = 1.96 * sqrt(40 - 400.0 / 200) / 200 / 2;
    assert_true(fabs(m.low - (m.difference - half)) < 0.1 * half + 0.5 / 400);
    assert_true(fabs(m.high - (m.difference + half)) < 0.1 * half + 0.5 / 400);
    assert_true(m.bca_low < m.difference && m.bca_high > m.difference && m.p_bootstrap < 0.001);
    for (uint32_t i = 0; i < N; i++) stratum[i] = 0; /* one stratum is the plain difference */
    assert_ok(grq_macro_compare(a, b, stratum, N, 1, 8000, 8, &m, &err), &err);
    grq_paired p;
    assert_ok(grq_paired_compare(a, b, NULL, N, 8000, 8, &p, &err), &err);
    assert_true(fabs(m.difference - p.difference) < 1e-15 && fabs(m.bca_low - p.bca_low) < 2.5 / N);
    /* Skewed: 8 items, all A's. BCa shifts both ends, by the same acceleration in one stratum and over items. */
    for (uint32_t i = 0; i < N; i++) {
        a[i] = i < 8;
        b[i] = false;
    }
    assert_ok(grq_macro_compare(a, b, stratum, N, 1, 20000, 8, &m, &err), &err);
    assert_ok(grq_paired_compare(a, b, NULL, N, 20000, 8, &p, &err), &err);
    assert_true(fabs(m.bca_low - p.bca_low) < 0.5 / N && fabs(m.bca_high - p.bca_high) < 0.5 / N);
    assert_true(m.bca_low > m.low && m.bca_high > m.high);
    assert_refused(grq_macro_compare(a, b, stratum, N, 2, 10, 1, &m, &err), GRQ_E_DATA, &err, "stratum 1 has no item");
    stratum[200] = 7;
    assert_refused(grq_macro_compare(a, b, stratum, N, 1, 10, 1, &m, &err), GRQ_E_DATA, &err,
                   "item 200 is in stratum 7");
}

/* Four suites, 36 comparisons each, 10,000 resamples: under a minute. */
static void a_family_takes_seconds(void **state)
{
    (void)state;
    static const size_t sizes[] = { 14267, 11313, 3610, 11582 };
    static bool a[14267], b[14267];
    grq_rng rng;
    grq_rng_seed(&rng, 7);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
        for (int k = 0; k < 36; k++) {
            const grq_paired p = draw(&rng, a, b, sizes[s], 0.05, 0.04, 10000);
            assert_true(p.low < p.high && p.bca_low < p.bca_high);
        }
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    print_message("144 comparisons with 10,000 resamples each: %.2f s\n", seconds);
    assert_true(seconds < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_cover),
        cmocka_unit_test(bca_follows_the_lean),
        cmocka_unit_test(the_detectable_difference_is_detected),
        cmocka_unit_test(extreme_counts),
        cmocka_unit_test(tiny_p_values_are_kept),
        cmocka_unit_test(counts_and_items_have_one_distribution),
        cmocka_unit_test(macro_difference_draws_within_strata),
        cmocka_unit_test(a_family_takes_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
