/* Ranks, correlations, concentration, intervals, p-values: against hand-worked values, numpy and 60-digit decimals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gaterq/rng.h"
#include "gaterq/stats.h"
#include "stats/stats_internal.h"

static void assert_near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("got %.17g (%a), want %.17g within %g", got, got, want, relative);
}

static void ranks_share_ties(void **state)
{
    (void)state;
    const double x[] = { 3, 1, 3, -0.0, 0.0, 3, -INFINITY };
    const double want[] = { 6, 4, 6, 2.5, 2.5, 6, 1 };
    double ranks[7];
    assert_int_equal(grq_ranks(x, 7, ranks, NULL), GRQ_OK);
    for (int i = 0; i < 7; i++) assert_near(ranks[i], want[i], 0);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void order_agrees_with_qsort_and_is_stable(void **state)
{
    (void)state;
    enum { N = 20000 };
    double *x = malloc(N * sizeof *x), *sorted = malloc(N * sizeof *sorted);
    uint32_t *up = malloc(N * sizeof *up), *down = malloc(N * sizeof *down);
    grq_rng rng;
    grq_rng_seed(&rng, 11);
    for (int i = 0; i < N; i++) /* many ties, both signs, 200 orders of magnitude */
        sorted[i] = x[i] = ldexp((double)grq_rng_below(&rng, 64) - 32, (int)grq_rng_below(&rng, 3) * 330 - 330);
    qsort(sorted, N, sizeof *sorted, compare_doubles);
    assert_int_equal(grq_stable_order(x, N, up, NULL), GRQ_OK);
    assert_int_equal(grq_stable_order_descending(x, N, down, NULL), GRQ_OK);
    for (int i = 0; i < N; i++) {
        assert_true(x[up[i]] == sorted[i]);
        assert_true(x[down[i]] == sorted[N - 1 - i]);
        if (i && x[up[i]] == x[up[i - 1]]) assert_true(up[i] > up[i - 1]);
        if (i && x[down[i]] == x[down[i - 1]]) assert_true(down[i] > down[i - 1]);
    }
    const double zeros[] = { 0.0, -0.0, 0.0, -0.0 };
    assert_int_equal(grq_stable_order(zeros, 4, up, NULL), GRQ_OK);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(up[i], i); /* one value, so by index */
    free(x);
    free(sorted);
    free(up);
    free(down);
}

static void nan_is_refused_by_index(void **state)
{
    (void)state;
    const double x[] = { 1, NAN, 2 }, y[] = { 1, 2, 3 };
    double ranks[3];
    grq_interval r;
    grq_error err = { 0 };
    assert_int_equal(grq_ranks(x, 3, ranks, &err), GRQ_E_DATA);
    assert_non_null(strstr(err.message, "value 1 is NaN"));
    assert_int_equal(grq_spearman(x, y, NULL, 3, 0, 0, 1, &r, &err), GRQ_E_DATA);
    assert_int_equal(grq_pearson(y, x, NULL, 3, 0, 0, 1, &r, &err), GRQ_E_DATA);
    assert_non_null(strstr(err.message, "y value 1"));
    assert_true(isnan(r.value) && isnan(r.low) && isnan(r.high));
}

static void correlations_match_numpy(void **state)
{
    (void)state;
    /* numpy.corrcoef of the values and of their average ranks */
    const double x[] = { 0.1, 2.5, -3, 4, 4, 1e3, 7, 2.5 }, y[] = { 5, -1, 2, 2, 8, 3, 3, 0 };
    grq_interval r;
    assert_int_equal(grq_pearson(x, y, NULL, 8, 0, 0, 1, &r, NULL), GRQ_OK);
    assert_near(r.value, 0.03682087498116333, 1e-13);
    assert_true(isnan(r.low) && isnan(r.high)); /* no resamples asked for */
    assert_int_equal(grq_spearman(x, y, NULL, 8, 0, 0, 1, &r, NULL), GRQ_OK);
    assert_near(r.value, 0.2865853658536585, 1e-13);
    /* A shift of 1e9 must not cost the digits: 16 - 9 = 7 are left in the input itself. */
    double far[8];
    for (int i = 0; i < 8; i++) far[i] = x[i] + 1e9;
    assert_int_equal(grq_pearson(far, y, NULL, 8, 0, 0, 1, &r, NULL), GRQ_OK);
    assert_near(r.value, 0.03682087498116333, 1e-7);
    const double huge[] = { 1e300, 2e300, 3e300 }, tiny[] = { 3e-300, 2e-300, 1e-300 };
    assert_int_equal(grq_pearson(huge, tiny, NULL, 3, 0, 0, 1, &r, NULL), GRQ_OK);
    assert_near(r.value, -1, 1e-15);
}

static void constant_input_has_no_correlation(void **state)
{
    (void)state;
    const double constant[] = { 0.1, 0.1, 0.1, 0.1 }, y[] = { 1, 2, 3, 4 };
    const uint32_t cluster[] = { 0, 0, 1, 1 };
    grq_interval r;
    assert_int_equal(grq_pearson(constant, y, cluster, 4, 2, 50, 1, &r, NULL), GRQ_OK);
    assert_true(isnan(r.value) && isnan(r.low) && isnan(r.high));
    assert_int_equal(grq_spearman(y, constant, cluster, 4, 2, 50, 1, &r, NULL), GRQ_OK);
    assert_true(isnan(r.value));
    assert_int_equal(grq_pearson(y, y, cluster, 0, 2, 50, 1, &r, NULL), GRQ_OK);
    assert_true(isnan(r.value));
}

static void bootstrap_draws_whole_clusters(void **state)
{
    (void)state;
    /* Two clusters, each perfectly correlated with its own slope: a replicate is (0,0), (1,1) or a mixture, so the
     * interval must span the mixed value and 1 or -1. Cluster 5 of 9 is far from dense numbering on purpose. */
    const double x[] = { -1, 0, 1, -1, 0, 1 }, y[] = { -1, 0, 1, 1, 0, -1 };
    const uint32_t cluster[] = { 0, 0, 0, 5, 5, 5 };
    grq_interval r;
    assert_int_equal(grq_pearson(x, y, cluster, 6, 9, 400, 3, &r, NULL), GRQ_OK);
    assert_near(r.value, 0, 0);
    assert_near(r.low, -1, 1e-14);
    assert_near(r.high, 1, 1e-14);
    grq_interval again, other;
    assert_int_equal(grq_pearson(x, y, cluster, 6, 9, 400, 3, &again, NULL), GRQ_OK);
    assert_memory_equal(&r, &again, sizeof r);
    const uint32_t one[] = { 2, 2, 2, 2, 2, 2 }; /* one cluster: no spread to measure */
    assert_int_equal(grq_pearson(x, y, one, 6, 9, 400, 3, &other, NULL), GRQ_OK);
    assert_true(isnan(other.low));
    grq_error err = { 0 };
    assert_int_equal(grq_pearson(x, y, cluster, 6, 5, 400, 3, &other, &err), GRQ_E_DATA);
    assert_non_null(strstr(err.message, "point 3 is in cluster 5"));
}

static void top_share_reads_the_lorenz_curve(void **state)
{
    (void)state;
    const double x[] = { 1, 5, 0, 4 };
    const double fractions[] = { 0, 0.25, 0.5, 0.625, 1 };
    const double want[] = { 0, 0.5, 0.9, 0.95, 1 }; /* 0.625 x 4 = 2.5 values: half of the third */
    double shares[5];
    assert_int_equal(grq_top_share(x, 4, fractions, 5, shares, NULL), GRQ_OK);
    for (int i = 0; i < 5; i++) assert_near(shares[i], want[i], 1e-15);
    const double zeros[] = { 0, 0 };
    assert_int_equal(grq_top_share(zeros, 2, fractions, 5, shares, NULL), GRQ_OK);
    assert_true(isnan(shares[2]));
    assert_int_equal(grq_top_share(x, 0, fractions, 5, shares, NULL), GRQ_OK);
    assert_true(isnan(shares[2]));
    const double negative[] = { 1, -1 }, above[] = { 1.5 };
    grq_error err = { 0 };
    assert_int_equal(grq_top_share(negative, 2, fractions, 5, shares, &err), GRQ_E_DATA);
    assert_non_null(strstr(err.message, "value 1 is -1"));
    assert_int_equal(grq_top_share(x, 4, above, 1, shares, &err), GRQ_E_USAGE);
}

static void wilson_matches_its_formula(void **state)
{
    (void)state;
    /* the textbook formula, in numpy */
    const grq_interval w = grq_wilson(7, 20);
    assert_near(w.value, 0.35, 1e-15);
    assert_near(w.low, 0.18119182410108206, 1e-13);
    assert_near(w.high, 0.5671457233147638, 1e-13);
    assert_true(grq_wilson(0, 9).low == 0 && grq_wilson(9, 9).high == 1);
    assert_true(isnan(grq_wilson(0, 0).value));
}

static void mcnemar_is_right_at_any_size(void **state)
{
    (void)state;
    /* 60-digit decimals: 2 * P(X <= b), X ~ Binomial(a + b, 1/2) */
    static const struct {
        uint64_t a, b;
        double exact, mid;
    } cases[] = {
        { 0, 0, 1, 1 },
        { 1, 0, 1, 0.5 },
        { 1, 1, 1, 0.75 },
        { 0, 40, 1.818989403545856475830078125e-12, 9.09494701772928237915e-13 },
        { 1001000, 999000, 0.15750684732297776, 0.15729929353102709 },
        { 1000000, 1000000, 1, 0.99971790524348791 },
        { 1010000, 990000, 2.1060689347853794e-45, 2.0851145612346064e-45 },
        { 1020000, 980000, 5.3601372356325423e-176, 5.254908080208211e-176 },
        { 30000000, 30020000, 0.0098392052449792818, 0.0098355271225830914 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_near(grq_mcnemar_exact(cases[i].a, cases[i].b), cases[i].exact, 1e-11);
        assert_near(grq_mcnemar_exact(cases[i].b, cases[i].a), cases[i].exact, 1e-11);
        assert_near(grq_mcnemar_mid_p(cases[i].a, cases[i].b), cases[i].mid, 1e-11);
    }
    /* Past the smallest double: 0, never NaN. */
    assert_true(grq_mcnemar_exact(2000000, 0) == 0 && grq_mcnemar_mid_p(0, 2000000) == 0);
}

static void paired_compare_counts_and_bounds(void **state)
{
    (void)state;
    bool a[200], b[200];
    uint32_t cluster[200];
    for (int i = 0; i < 200; i++) { /* 50 both, 30 only a, 20 only b, 100 neither; clusters of 2 equal items */
        a[i] = i < 80;
        b[i] = i < 50 || (i >= 80 && i < 100);
        cluster[i] = (uint32_t)i / 2;
    }
    grq_paired p, c;
    assert_int_equal(grq_paired_compare(a, b, NULL, 200, 4000, 9, &p, NULL), GRQ_OK);
    assert_int_equal(p.both, 50);
    assert_int_equal(p.only_a, 30);
    assert_int_equal(p.only_b, 20);
    assert_int_equal(p.neither, 100);
    assert_near(p.difference, 0.05, 1e-15);
    /* sd of the difference: sqrt(b + c - (b - c)^2 / n) / n = 0.0352; of clusters of two equal items sqrt(2) times that
     */
    assert_near(p.high - p.low, 2 * 1.96 * 0.03526683, 0.07);
    assert_int_equal(grq_paired_compare(a, b, cluster, 200, 4000, 9, &c, NULL), GRQ_OK);
    assert_near(c.high - c.low, M_SQRT2 * 2 * 1.96 * 0.03526683, 0.07);
    assert_true(c.p_mid == p.p_mid && c.difference == p.difference);
    assert_int_equal(grq_paired_compare(a, b, NULL, 0, 100, 9, &p, NULL), GRQ_OK);
    assert_true(isnan(p.difference) && isnan(p.low) && p.p_exact == 1 && p.p_mid == 1);
    cluster[7] = 200;
    grq_error err = { 0 };
    assert_int_equal(grq_paired_compare(a, b, cluster, 200, 100, 9, &p, &err), GRQ_E_DATA);
    assert_non_null(strstr(err.message, "item 7 is in cluster 200"));
}

static void families_refuse_what_is_no_p_value(void **state)
{
    (void)state;
    const double bad[] = { 0.5, 1.25 }, nan[] = { NAN };
    double adjusted[2];
    grq_error err = { 0 };
    assert_int_equal(grq_holm(bad, 2, adjusted, &err), GRQ_E_DATA);
    assert_non_null(strstr(err.message, "p-value 1 is 1.25"));
    assert_int_equal(grq_benjamini_hochberg(nan, 1, adjusted, &err), GRQ_E_DATA);
    assert_int_equal(grq_holm(bad, 0, adjusted, &err), GRQ_OK);
}

static void quantiles_are_type_7(void **state)
{
    (void)state;
    const double x[] = { 1, 2, 4, 8 };
    assert_near(grq_quantile_sorted(x, 4, 0.5), 3, 1e-15);
    assert_near(grq_quantile_sorted(x, 4, 0.9), 6.8, 1e-15); /* numpy.quantile */
    assert_near(grq_quantile_sorted(x, 4, 1), 8, 0);
    assert_near(grq_quantile_sorted(x, 1, 0.3), 1, 0);
    assert_true(isnan(grq_quantile_sorted(x, 0, 0.3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_ties),
        cmocka_unit_test(order_agrees_with_qsort_and_is_stable),
        cmocka_unit_test(nan_is_refused_by_index),
        cmocka_unit_test(correlations_match_numpy),
        cmocka_unit_test(constant_input_has_no_correlation),
        cmocka_unit_test(bootstrap_draws_whole_clusters),
        cmocka_unit_test(top_share_reads_the_lorenz_curve),
        cmocka_unit_test(wilson_matches_its_formula),
        cmocka_unit_test(mcnemar_is_right_at_any_size),
        cmocka_unit_test(paired_compare_counts_and_bounds),
        cmocka_unit_test(families_refuse_what_is_no_p_value),
        cmocka_unit_test(quantiles_are_type_7),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
