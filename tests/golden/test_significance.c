/* Golden vectors of the paired statistics (tests/golden/significance.json): p-values to 1e-9, counts exactly. Every
 * case and every field is read: finish() fails for a key that no check has asked for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_statistics_double.h>

#include "gaterq/json.h"
#include "gaterq/stats.h"
#include "stats/resample.h"

static grq_json *document;

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        grq_error err_ = { .status = GRQ_OK };                                                                         \
        grq_error *const err = &err_;                                                                                  \
        if ((call) != GRQ_OK) fail_msg("%s", err_.message);                                                            \
    } while (0)

static int open_document(void **state)
{
    (void)state;
    grq_error err;
    if (grq_json_open(GATERQ_GOLDEN_DIR "/significance.json", &document, &err) == GRQ_OK) return 0;
    print_error("%s\n", err.message);
    return -1;
}

static int close_document(void **state)
{
    (void)state;
    grq_json_close(document);
    return 0;
}

static double number(grq_json_node *object, const char *key)
{
    double value = NAN;
    MUST(grq_json_f64(object, key, -1e300, 1e300, &value, err));
    return value;
}

static uint64_t whole(grq_json_node *object, const char *key)
{
    uint64_t value = 0;
    MUST(grq_json_u64(object, key, 0, UINT64_MAX, &value, err));
    return value;
}

static const char *text(grq_json_node *object, const char *key)
{
    const char *value = "";
    MUST(grq_json_string(object, key, &value, err));
    return value;
}

/* Fails when a key of the object was not asked for. */
static void finish(grq_json_node *object)
{
    MUST(grq_json_finish(object, err));
}

static double *numbers(grq_json_node *object, const char *key, size_t *n)
{
    grq_json_node *array = NULL;
    MUST(grq_json_array(object, key, &array, err));
    *n = grq_json_count(array);
    double *values = calloc(*n + 1, sizeof *values);
    for (size_t i = 0; i < *n; i++) MUST(grq_json_as_f64(grq_json_at(array, i), -1e300, 1e300, &values[i], err));
    return values;
}

static void assert_p(const char *name, const char *what, double got, double want)
{
    /* The file writes 0 for a tail below the smallest normal double; ours keeps it as a denormal. */
    if (!(fabs(got - want) <= 1e-9 * want + 1e-300)) fail_msg("%s %s: %.17g, golden %.17g", name, what, got, want);
}

/* Items in the file's order: both, only a, only b, neither. */
static void lay_out(const uint64_t table[4], bool *a, bool *b)
{
    size_t at = 0;
    for (int cell = 0; cell < 4; cell++)
        for (uint64_t i = 0; i < table[cell]; i++, at++) {
            a[at] = cell == 0 || cell == 1;
            b[at] = cell == 0 || cell == 2;
        }
}

static void assert_near(const char *name, const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) fail_msg("%s %s: %.17g, golden %.17g", name, what, got, want);
}

static void check_interval(grq_json_node *table, const char *name, const char *key, const char *centre,
                           grq_interval got)
{
    grq_json_node *want = NULL;
    MUST(grq_json_object(table, key, &want, err));
    assert_near(name, key, got.value, number(want, centre), 1e-12);
    assert_near(name, key, got.low, number(want, "lo"), 1e-12);
    assert_near(name, key, got.high, number(want, "hi"), 1e-12);
    assert_near(name, key, (got.high - got.low) / 2 / 1.959963984540054, number(want, "se"), 1e-12);
    finish(want);
}

/* The tests that grq_paired_compare leaves to their own functions. */
static void check_other_tests(grq_json_node *t, const char *name, uint64_t only_a, uint64_t only_b)
{
    assert_p(name, "one-sided exact", grq_mcnemar_exact_a_better(only_a, only_b),
             number(t, "exact_one_sided_a_better"));
    assert_p(name, "one-sided mid-p", grq_mcnemar_mid_p_a_better(only_a, only_b),
             number(t, "mid_p_one_sided_a_better"));
    static const char *const keys[2][2] = { { "chi2_uncorrected", "p_chi2_uncorrected" },
                                            { "chi2_edwards", "p_chi2_edwards" } };
    for (int corrected = 0; corrected < 2; corrected++) {
        double chi2;
        const double p = grq_mcnemar_chi_square(only_a, only_b, corrected, &chi2);
        if (only_a + only_b == 0) { /* the file has null */
            assert_int_equal(grq_json_kind_of(grq_json_find(t, keys[corrected][0])), GRQ_JSON_NULL);
            assert_true(isnan(chi2));
        } else {
            assert_near(name, keys[corrected][0], chi2, number(t, keys[corrected][0]), 1e-11);
        }
        assert_p(name, keys[corrected][1], p, number(t, keys[corrected][1]));
    }
}

static void mcnemar_tables(void **state)
{
    (void)state;
    grq_json_node *tables = NULL;
    MUST(grq_json_array(grq_json_root(document), "mcnemar_tables", &tables, err));
    assert_int_equal(grq_json_count(tables), 11);
    for (size_t i = 0; i < grq_json_count(tables); i++) {
        grq_json_node *t = grq_json_at(tables, i);
        const char *name = text(t, "name");
        const uint64_t cells[4] = { whole(t, "both_right"), whole(t, "a_right_b_wrong"), whole(t, "a_wrong_b_right"),
                                    whole(t, "both_wrong") };
        const uint64_t n = whole(t, "n");
        bool *a = calloc(n + 1, sizeof *a), *b = calloc(n + 1, sizeof *b);
        lay_out(cells, a, b);
        grq_paired p;
        MUST(grq_paired_compare(a, b, NULL, n, 0, 1, &p, err));
        assert_true(p.n == n && p.both == cells[0] && p.only_a == cells[1] && p.only_b == cells[2] &&
                    p.neither == cells[3]);
        assert_near(name, "difference", p.difference, number(t, "delta"), 1e-12);
        assert_near(name, "accuracy", grq_wilson(p.both + p.only_a, n).value, number(t, "acc_a"), 1e-12);
        assert_near(name, "accuracy", grq_wilson(p.both + p.only_b, n).value, number(t, "acc_b"), 1e-12);
        assert_p(name, "exact", p.p_exact, number(t, "exact_two_sided"));
        assert_p(name, "mid-p", p.p_mid, number(t, "mid_p_two_sided"));
        check_other_tests(t, name, cells[1], cells[2]);
        check_interval(t, name, "wald_ci95", "delta", grq_wald_difference(cells[1], cells[2], n));
        check_interval(t, name, "bonett_price_ci95", "delta_adj", grq_bonett_price(cells[1], cells[2], n));
        if (grq_json_find(t, "log10_exact_two_sided")) /* below the smallest double */
            assert_near(name, "log10", grq_mcnemar_log_exact(cells[1], cells[2]) / M_LN10,
                        number(t, "log10_exact_two_sided"), 1e-9);
        if (grq_json_find(t, "note")) text(t, "note");
        /* An interval belongs to its test: it has 0 in it if, and only if, the test does not reject. */
        if (cells[1] + cells[2] == 0) assert_true(isnan(p.mid_low) && isnan(p.detectable));
        else assert_int_equal(p.mid_low > 0 || p.mid_high < 0, p.p_mid < 0.05);
        finish(t);
        free(a);
        free(b);
    }
}

/* The file's replicates: from the Mersenne twister, item by item. */
static double *golden_replicates(grq_json_node *c, const bool *a, const bool *b, size_t n, size_t n_replicates)
{
    size_t n_first, n_indices;
    double *indices = numbers(c, "first_10_indices_of_replicate_0", &n_indices),
           *first = numbers(c, "first_5_replicate_deltas", &n_first),
           *replicates = calloc(n_replicates, sizeof *replicates);
    assert_string_equal(text(c, "rng"), "gsl_rng_mt19937");
    assert_true(n_indices == 10 && n_first == 5);
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(rng, whole(c, "seed"));
    for (size_t r = 0; r < n_replicates; r++) {
        int sum = 0;
        for (size_t k = 0; k < n; k++) {
            const unsigned long at = gsl_rng_uniform_int(rng, n);
            if (r == 0 && k < n_indices) assert_int_equal(at, (unsigned long)indices[k]);
            sum += (int)a[at] - (int)b[at];
        }
        replicates[r] = (double)sum / (double)n;
        if (r < n_first) assert_near(text(c, "name"), "replicate", replicates[r], first[r], 1e-12);
    }
    gsl_rng_free(rng);
    free(indices);
    free(first);
    return replicates;
}

static void check_pair(grq_json_node *c, const char *key, double low, double high)
{
    size_t n;
    double *want = numbers(c, key, &n);
    assert_int_equal(n, 2);
    assert_near(text(c, "name"), key, low, want[0], 1e-12);
    assert_near(text(c, "name"), key, high, want[1], 1e-12);
    free(want);
}

static void check_counts_of(grq_json_node *c, const double *replicates, size_t n)
{
    size_t below = 0, above = 0;
    for (size_t r = 0; r < n; r++) {
        below += replicates[r] <= 0;
        above += replicates[r] >= 0;
    }
    assert_int_equal(below, whole(c, "count_le_zero"));
    assert_int_equal(above, whole(c, "count_ge_zero"));
}

/* On the file's replicates our summary gives its figures; our own generator and multinomial counts give the same
 * interval to a few items. */
static void bootstrap_intervals(void **state)
{
    (void)state;
    grq_json_node *cases = NULL;
    MUST(grq_json_array(grq_json_root(document), "bootstrap", &cases, err));
    assert_int_equal(grq_json_count(cases), 2);
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *c = grq_json_at(cases, i);
        const char *name = text(c, "name");
        size_t n_cells;
        double *cells = numbers(c, "table", &n_cells);
        const size_t n = whole(c, "n"), n_replicates = whole(c, "replicates");
        const uint64_t table[4] = { (uint64_t)cells[0], (uint64_t)cells[1], (uint64_t)cells[2], (uint64_t)cells[3] };
        bool *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b);
        lay_out(table, a, b);
        double *replicates = golden_replicates(c, a, b, n, n_replicates);
        check_counts_of(c, replicates, n_replicates);
        grq_paired p;
        MUST(grq_paired_compare(a, b, NULL, n, 20000, 1, &p, err));
        assert_near(name, "difference", p.difference, number(c, "delta_observed"), 1e-12);
        const double p_shifted = number(c, "p_two_sided_shifted_plus1"), se = number(c, "analytic_se");
        assert_near(name, "p", grq_bootstrap_p(replicates, n_replicates, p.difference), p_shifted, 1e-12);
        assert_near(name, "mean", gsl_stats_mean(replicates, 1, n_replicates), number(c, "mean"), 1e-12);
        assert_near(name, "se", gsl_stats_sd(replicates, 1, n_replicates), number(c, "se_ddof1"), 1e-12);
        double low, high;
        grq_percentile_interval(replicates, n_replicates, &low, &high);
        check_pair(c, "percentile_ci95_type7", low, high);
        check_pair(c, "basic_ci95", 2 * p.difference - high, 2 * p.difference - low);
        assert_near(name, "Wald's se",
                    (p.difference - grq_wald_difference(table[1], table[2], n).low) / 1.959963984540054, se, 1e-12);
        assert_near(name, "our interval", p.low, low, 1.5 / (double)n + se / 8);
        assert_near(name, "our interval", p.high, high, 1.5 / (double)n + se / 8);
        assert_near(name, "our p", p.p_bootstrap, p_shifted, 0.02);
        finish(c);
        free(cells);
        free(a);
        free(b);
        free(replicates);
    }
}

/* The file's own generator, one sign per item; zero differences are drawn as well. */
static uint64_t count_by_twister(const double *d, size_t n, uint64_t seed, uint64_t n_resamples)
{
    gsl_rng *const rng = gsl_rng_alloc(gsl_rng_mt19937);
    uint64_t n_as_far = 0;
    double observed = 0;
    for (size_t k = 0; k < n; k++) observed += d[k];
    gsl_rng_set(rng, seed);
    for (uint64_t r = 0; r < n_resamples; r++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++) sum += gsl_rng_uniform_int(rng, 2) ? -d[k] : d[k];
        n_as_far += fabs(sum) >= fabs(observed) - 1e-12;
    }
    gsl_rng_free(rng);
    return n_as_far;
}

static void check_real_differences(grq_json_node *c, const char *name)
{
    size_t n;
    double *d = numbers(c, "differences", &n), p, observed = 0;
    for (size_t i = 0; i < n; i++) observed += d[i];
    MUST(grq_sign_flip(d, n, 0, 1, &p, err)); /* all sign vectors */
    if (grq_json_find(c, "enumerations")) {
        assert_string_equal(text(c, "statistic"), "abs(sum)");
        assert_near(name, "statistic", fabs(observed), number(c, "observed"), 1e-12);
        assert_int_equal(whole(c, "enumerations"), 1 << n);
        assert_near(name, "p", p, number(c, "p"), 1e-15);
        assert_near(name, "p", p, (double)whole(c, "count_ge") / (double)whole(c, "enumerations"), 1e-15);
        text(c, "note");
    } else {
        const uint64_t n_resamples = whole(c, "replicates");
        const uint64_t count = count_by_twister(d, n, whole(c, "seed"), n_resamples);
        assert_string_equal(text(c, "rng"), "gsl_rng_mt19937");
        text(c, "draw");
        assert_int_equal(count, whole(c, "count_ge"));
        assert_near(name, "p", (1 + (double)count) / ((double)n_resamples + 1), number(c, "p_plus1"), 1e-15);
        assert_near(name, "p of all sign vectors", p, number(c, "p_plus1"), 0.01);
    }
    free(d);
}

static void check_binary_differences(grq_json_node *c, const char *name)
{
    size_t n_cells, n = 0;
    double *cells = numbers(c, "table", &n_cells), d[20] = { 0 }, p;
    const uint64_t only_a = (uint64_t)cells[1], only_b = (uint64_t)cells[2];
    while (n < only_a + only_b) n++, d[n - 1] = n <= only_a ? 1 : -1;
    MUST(grq_sign_flip(d, n, 0, 1, &p, err));
    assert_near(name, "p", p, number(c, "p"), 1e-15);
    assert_near(name, "p", p, (double)whole(c, "count_ge") / (double)whole(c, "enumerations"), 1e-15);
    assert_near(name, "McNemar", grq_mcnemar_exact(only_a, only_b), number(c, "mcnemar_exact_two_sided"), 1e-15);
    free(cells);
}

static void sign_flips(void **state)
{
    (void)state;
    grq_json_node *cases = NULL;
    MUST(grq_json_array(grq_json_root(document), "sign_flip", &cases, err));
    assert_int_equal(grq_json_count(cases), 4);
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *c = grq_json_at(cases, i);
        const char *name = text(c, "name");
        if (grq_json_find(c, "differences")) check_real_differences(c, name);
        else check_binary_differences(c, name);
        finish(c);
    }
}

typedef grq_status adjustment(const double *p, size_t n, double *adjusted, grq_error *err);

static void check_family(grq_json_node *family, const char *method, adjustment *adjust)
{
    grq_json_node *golden = NULL, *reject = NULL;
    MUST(grq_json_object(family, method, &golden, err));
    MUST(grq_json_array(golden, "reject", &reject, err));
    const double alpha = number(family, "alpha");
    size_t n, n_want;
    double *p = numbers(family, "p", &n), *want = numbers(golden, "adjusted", &n_want),
           *adjusted = calloc(n, sizeof *adjusted);
    assert_int_equal(n, n_want);
    assert_int_equal(n, grq_json_count(reject));
    MUST(adjust(p, n, adjusted, err));
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(adjusted[i] - want[i]) <= 1e-9 * want[i]))
            fail_msg("%s %s[%zu]: %.17g, golden %.17g", text(family, "name"), method, i, adjusted[i], want[i]);
        const bool rejected = grq_json_is_true(grq_json_at(reject, i));
        if ((adjusted[i] <= alpha * (1 + 1e-12)) != rejected)
            fail_msg("%s %s[%zu]: %.17g at alpha %g", text(family, "name"), method, i, adjusted[i], alpha);
    }
    finish(golden);
    free(p);
    free(want);
    free(adjusted);
}

/* The tables' p-values are those of this family (exact) and of the next (mid-p). */
static void check_tables(grq_json_node *exact_family, grq_json_node *mid_family)
{
    grq_json_node *tables = NULL;
    size_t n, n_mid;
    double *exact = numbers(exact_family, "p", &n), *mid = numbers(mid_family, "p", &n_mid);
    assert_string_equal(text(exact_family, "name"), "family36_exact");
    assert_string_equal(text(mid_family, "name"), "family36_midp");
    MUST(grq_json_array(exact_family, "tables", &tables, err));
    assert_true(grq_json_count(tables) == n && n == n_mid);
    for (size_t i = 0; i < n; i++) {
        grq_json_node *t = grq_json_at(tables, i);
        const uint64_t only_a = whole(t, "b"), only_b = whole(t, "c");
        assert_true(only_a + only_b <= whole(t, "n"));
        assert_p(text(t, "suite"), "exact", grq_mcnemar_exact(only_a, only_b), exact[i]);
        assert_p(text(t, "suite"), "mid-p", grq_mcnemar_mid_p(only_a, only_b), mid[i]);
        finish(t);
    }
    free(exact);
    free(mid);
}

static void p_value_families(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        adjustment *adjust;
    } methods[] = {
        { "bonferroni", grq_bonferroni },
        { "holm", grq_holm },
        { "hommel", grq_hommel },
        { "simes-hochberg", grq_hochberg },
        { "fdr_bh", grq_benjamini_hochberg },
        { "fdr_by", grq_benjamini_yekutieli },
    };
    grq_json_node *families = NULL;
    MUST(grq_json_array(grq_json_root(document), "p_value_families", &families, err));
    assert_int_equal(grq_json_count(families), 8);
    for (size_t i = 0; i < grq_json_count(families); i++) {
        grq_json_node *family = grq_json_at(families, i);
        text(family, "name");
        text(family, "note");
        for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
            check_family(family, methods[m].method, methods[m].adjust);
        if (grq_json_find(family, "tables")) check_tables(family, grq_json_at(families, i + 1));
        finish(family);
    }
}

/* Nothing of the file is left out; what describes it is only read. */
static void whole_file_is_used(void **state)
{
    (void)state;
    grq_json_node *root = grq_json_root(document), *described = NULL;
    assert_string_equal(text(root, "schema"), "significance-golden-1");
    text(root, "tolerance");
    MUST(grq_json_object(root, "computed_with", &described, err));
    MUST(grq_json_object(root, "conventions", &described, err));
    finish(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mcnemar_tables),   cmocka_unit_test(bootstrap_intervals), cmocka_unit_test(sign_flips),
        cmocka_unit_test(p_value_families), cmocka_unit_test(whole_file_is_used),
    };
    return cmocka_run_group_tests(tests, open_document, close_document);
}
