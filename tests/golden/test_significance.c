/* Golden vectors of the paired statistics (tests/golden/significance.json): p-values to 1e-9, counts exactly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <gsl/gsl_rng.h>

#include "gaterq/json.h"
#include "gaterq/stats.h"
#include "stats/stats_internal.h"

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

static void assert_interval(const char *name, grq_json_node *t, const char *key, const char *middle, grq_interval got)
{
    grq_json_node *want = NULL;
    MUST(grq_json_object(t, key, &want, err));
    if (fabs(got.value - number(want, middle)) > 1e-12 || fabs(got.low - number(want, "lo")) > 1e-12 ||
        fabs(got.high - number(want, "hi")) > 1e-12)
        fail_msg("%s %s: %.17g [%.17g, %.17g]", name, key, got.value, got.low, got.high);
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
        if (!(fabs(p.difference - number(t, "delta")) <= 1e-12)) fail_msg("%s: difference %.17g", name, p.difference);
        assert_p(name, "exact", p.p_exact, number(t, "exact_two_sided"));
        assert_p(name, "mid-p", p.p_mid, number(t, "mid_p_two_sided"));
        assert_p(name, "exact, one side", grq_mcnemar_exact_a_better(cells[1], cells[2]),
                 number(t, "exact_one_sided_a_better"));
        assert_p(name, "mid-p, one side", grq_mcnemar_mid_p_a_better(cells[1], cells[2]),
                 number(t, "mid_p_one_sided_a_better"));
        assert_p(name, "chi-square", grq_mcnemar_chi_square(cells[1], cells[2], false),
                 number(t, "p_chi2_uncorrected"));
        assert_p(name, "Edwards", grq_mcnemar_chi_square(cells[1], cells[2], true), number(t, "p_chi2_edwards"));
        assert_interval(name, t, "wald_ci95", "delta", grq_wald_difference(cells[1], cells[2], n));
        assert_interval(name, t, "bonett_price_ci95", "delta_adj", grq_bonett_price(cells[1], cells[2], n));
        /* An interval belongs to its test: it has 0 in it if, and only if, the test does not reject. */
        if (cells[1] + cells[2] == 0) assert_true(isnan(p.mid_low) && isnan(p.detectable));
        else assert_int_equal(p.mid_low > 0 || p.mid_high < 0, p.p_mid < 0.05);
        free(a);
        free(b);
    }
}

/* Of differences, by all sign vectors; for right and wrong answers that is McNemar's exact test. */
static void sign_flips(void **state)
{
    (void)state;
    grq_json_node *cases = NULL;
    MUST(grq_json_array(grq_json_root(document), "sign_flip", &cases, err));
    assert_int_equal(grq_json_count(cases), 4);
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *c = grq_json_at(cases, i);
        size_t n = 0;
        double *d = NULL, p = 0;
        if (grq_json_find(c, "differences")) {
            d = numbers(c, "differences", &n);
        } else {
            size_t n_cells;
            double *const cells = numbers(c, "table", &n_cells);
            d = calloc(64, sizeof *d);
            while (n < (size_t)cells[1]) d[n++] = 1;
            while (n < (size_t)(cells[1] + cells[2])) d[n++] = -1;
            assert_p(text(c, "name"), "McNemar", grq_mcnemar_exact((uint64_t)cells[1], (uint64_t)cells[2]),
                     number(c, "p"));
            free(cells);
        }
        if (grq_json_find(c, "p")) {
            MUST(grq_sign_flip(d, n, 0, 1, &p, err));
            assert_p(text(c, "name"), "sign flips", p, number(c, "p"));
        } else { /* the same differences, drawn by the file's generator: their count is the file's */
            gsl_rng *const rng = gsl_rng_alloc(gsl_rng_mt19937);
            uint64_t n_as_far = 0;
            double observed = 0;
            for (size_t k = 0; k < n; k++) observed += d[k];
            gsl_rng_set(rng, whole(c, "seed"));
            for (uint64_t r = 0; r < whole(c, "replicates"); r++) {
                double sum = 0;
                for (size_t k = 0; k < n; k++) sum += gsl_rng_uniform_int(rng, 2) ? -d[k] : d[k];
                n_as_far += fabs(sum) >= fabs(observed) - 1e-12;
            }
            gsl_rng_free(rng);
            assert_int_equal(n_as_far, whole(c, "count_ge"));
            MUST(grq_sign_flip(d, n, 0, 1, &p, err)); /* ours takes all sign vectors */
            assert_true(fabs(p - number(c, "p_plus1")) < 0.01);
        }
        free(d);
    }
}

/* The file's replicates come from the Mersenne twister, item by item. With them our quantiles give its interval; with
 * our own generator and multinomial counts the interval is the same to a few items. */
static void bootstrap_intervals(void **state)
{
    (void)state;
    grq_json_node *cases = NULL;
    MUST(grq_json_array(grq_json_root(document), "bootstrap", &cases, err));
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *c = grq_json_at(cases, i);
        size_t n_cells, n_want;
        double *cells = numbers(c, "table", &n_cells), *want = numbers(c, "percentile_ci95_type7", &n_want);
        const size_t n = whole(c, "n"), n_replicates = whole(c, "replicates");
        uint64_t table[4];
        for (int k = 0; k < 4; k++) table[k] = (uint64_t)cells[k];
        bool *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b);
        double *replicates = calloc(n_replicates, sizeof *replicates);
        lay_out(table, a, b);
        gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
        gsl_rng_set(rng, whole(c, "seed"));
        for (size_t r = 0; r < n_replicates; r++) {
            int sum = 0;
            for (size_t k = 0; k < n; k++) {
                const unsigned long at = gsl_rng_uniform_int(rng, n);
                sum += (int)a[at] - (int)b[at];
            }
            replicates[r] = (double)sum / (double)n;
        }
        double low, high;
        grq_percentile_interval(replicates, n_replicates, &low, &high);
        if (!(fabs(low - want[0]) <= 1e-12 && fabs(high - want[1]) <= 1e-12))
            fail_msg("%s: [%.17g, %.17g], golden [%.17g, %.17g]", text(c, "name"), low, high, want[0], want[1]);
        grq_paired p;
        MUST(grq_paired_compare(a, b, NULL, n, 20000, 1, &p, err));
        const double items = 1.5 / (double)n + number(c, "analytic_se") / 8;
        if (!(fabs(p.low - want[0]) <= items && fabs(p.high - want[1]) <= items))
            fail_msg("%s: ours [%.17g, %.17g], golden [%.17g, %.17g]", text(c, "name"), p.low, p.high, want[0],
                     want[1]);
        gsl_rng_free(rng);
        free(cells);
        free(want);
        free(a);
        free(b);
        free(replicates);
    }
}

typedef grq_status adjustment(const double *p, size_t n, double *adjusted, grq_error *err);

static void check_family(grq_json_node *family, const char *method, adjustment *adjust)
{
    grq_json_node *golden = NULL, *reject = NULL;
    MUST(grq_json_object(family, method, &golden, err));
    MUST(grq_json_array(golden, "reject", &reject, err));
    size_t n, n_want;
    double *p = numbers(family, "p", &n), *want = numbers(golden, "adjusted", &n_want),
           *adjusted = calloc(n, sizeof *adjusted);
    assert_int_equal(n, n_want);
    MUST(adjust(p, n, adjusted, err));
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(adjusted[i] - want[i]) <= 1e-9 * want[i]))
            fail_msg("%s %s[%zu]: %.17g, golden %.17g", text(family, "name"), method, i, adjusted[i], want[i]);
    }
    free(p);
    free(want);
    free(adjusted);
}

static void p_value_families(void **state)
{
    (void)state;
    grq_json_node *families = NULL;
    MUST(grq_json_array(grq_json_root(document), "p_value_families", &families, err));
    assert_int_equal(grq_json_count(families), 8);
    for (size_t i = 0; i < grq_json_count(families); i++) {
        check_family(grq_json_at(families, i), "holm", grq_holm);
        check_family(grq_json_at(families, i), "simes-hochberg", grq_hochberg);
        check_family(grq_json_at(families, i), "fdr_bh", grq_benjamini_hochberg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mcnemar_tables),
        cmocka_unit_test(sign_flips),
        cmocka_unit_test(bootstrap_intervals),
        cmocka_unit_test(p_value_families),
    };
    return cmocka_run_group_tests(tests, open_document, close_document);
}
