/* The real PopQA files against the figures of specs/evaluation-protocols.md. Needs the data; skips loudly without. */
#include "support.h"

#include "gaterq/facts.h"
#include "gaterq/match.h"

static grq_facts *open_data(const char *name)
{
    grq_error err;
    grq_facts *facts;
    struct timespec from, to;
    const char *path = test_data(name);
    if (!path) fail_msg("%s is missing beside popQA.reconstructed.tsv", name);
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_ok(grq_facts_open(path, &facts, &err), &err);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%s: %zu rows in %.3f s\n", name, grq_facts_count(facts),
           (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec));
    return facts;
}

static void check_quartiles(const char *name, size_t n_rows, const double want_cuts[3], const size_t want_bins[4])
{
    grq_error err;
    grq_facts *facts = open_data(name);
    const size_t n = grq_facts_count(facts);
    double *popularity = malloc(n * sizeof *popularity), cuts[3];
    uint32_t *quartile = malloc(n * sizeof *quartile);
    size_t bins[5] = { 0 };
    assert_int_equal(n, n_rows);
    for (size_t i = 0; i < n; i++) popularity[i] = grq_facts_at(facts, i)->popularity;
    assert_ok(grq_popularity_quartiles(popularity, n, quartile, cuts, &err), &err);
    for (size_t i = 0; i < n; i++) bins[quartile[i]]++;
    for (int k = 0; k < 3; k++)
        if (cuts[k] != want_cuts[k]) fail_msg("%s: cut point %d is %a instead of %a", name, k, cuts[k], want_cuts[k]);
    for (int k = 0; k < 4; k++) assert_int_equal(bins[k], want_bins[k]);
    assert_int_equal(bins[4], n - bins[0] - bins[1] - bins[2] - bins[3]);
    free(popularity);
    free(quartile);
    grq_facts_close(facts);
}

static void quartiles_are_the_published_ones(void **state)
{
    (void)state;
    check_quartiles("popqa/popQA.subset2179.tsv", 2179, (const double[]){ 59, 85, 226.5 },
                    (const size_t[]){ 559, 555, 520, 545 });
    check_quartiles("popqa/popQA.reconstructed.tsv", 14267, (const double[]){ 85, 304, 2201.5 },
                    (const size_t[]){ 1115, 1102, 1107, 1108 });
}

/* How many rows the metric credits when every output is the same text, or the row's own question where `text` is NULL.
 */
static size_t n_credited(const grq_facts *facts, const char *text)
{
    grq_error err;
    const grq_match_rule *rule;
    size_t n = 0;
    assert_ok(grq_match_rule_find("popqa_contains", &rule, &err), &err);
    for (size_t i = 0; i < grq_facts_count(facts); i++) {
        const grq_fact *fact = grq_facts_at(facts, i);
        bool correct;
        assert_ok(grq_match(rule, text ? text : fact->question, fact->accepted, fact->n_accepted, &correct, &err),
                  &err);
        n += correct;
    }
    return n;
}

static void the_metric_credits_what_it_is_known_to(void **state)
{
    (void)state;
    grq_facts *facts = open_data("popqa/popQA.reconstructed.tsv");
    assert_int_equal(n_credited(facts, NULL), 428);
    assert_int_equal(n_credited(facts, "I do not know the answer to this question."), 78);
    assert_int_equal(n_credited(facts, "association football"), 368);
    assert_int_equal(n_credited(facts, ""), 0);
    grq_facts_close(facts);
}

static void every_row_survives_writing(void **state)
{
    (void)state;
    grq_error err;
    grq_facts *facts = open_data("popqa/popQA.reconstructed.tsv"), *back;
    const size_t n = grq_facts_count(facts);
    grq_fact *all = malloc(n * sizeof *all);
    for (size_t i = 0; i < n; i++) all[i] = *grq_facts_at(facts, i);
    assert_ok(grq_facts_write(test_path("again.tsv"), all, n, &err), &err);
    assert_ok(grq_facts_open(test_path("again.tsv"), &back, &err), &err);
    assert_int_equal(grq_facts_count(back), n);
    for (size_t i = 0; i < n; i++) {
        const grq_fact *x = &all[i], *y = grq_facts_at(back, i);
        if (strcmp(x->id, y->id) || strcmp(x->subject, y->subject) || strcmp(x->relation, y->relation) ||
            strcmp(x->object, y->object) || strcmp(x->question, y->question) || x->n_accepted != y->n_accepted ||
            (x->popularity != y->popularity && !(isnan(x->popularity) && isnan(y->popularity))))
            fail_msg("row %zu, id %s, comes back changed", i, x->id);
        for (size_t k = 0; k < x->n_accepted; k++) assert_string_equal(x->accepted[k], y->accepted[k]);
    }
    free(all);
    grq_facts_close(facts);
    grq_facts_close(back);
}

int main(void)
{
    if (!test_data("popqa/popQA.reconstructed.tsv"))
        test_skip("popqa/popQA.reconstructed.tsv is neither in $GATERQ_DATA nor in ../shared/datasets: the real PopQA "
                  "files are not tested");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quartiles_are_the_published_ones),
        cmocka_unit_test(the_metric_credits_what_it_is_known_to),
        cmocka_unit_test(every_row_survives_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
