/* Paired comparisons beyond the published tables: intervals and power by simulation, extreme counts, speed. */
#include "support.h"

#include "gaterq/rng.h"
#include "gaterq/stats.h"

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
        cmocka_unit_test(a_family_takes_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
