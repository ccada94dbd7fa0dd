/* Scores, budgets and allocation against a naive reading of their definitions, on random batches full of ties. */
#include "support.h"

#include "gaterq/policy.h"
#include "gaterq/rng.h"

static grq_rng rng;

static uint32_t between(uint32_t low, uint32_t high)
{
    return low + (uint32_t)grq_rng_below(&rng, high - low + 1);
}

/* ---- allocation ---- */

/* How many look-ups come before number i: O(n) per look-up, and nothing to get wrong. */
static size_t rank_of(const double *score, size_t n, size_t i)
{
    size_t rank = 0;
    for (size_t k = 0; k < n; k++) rank += score[k] > score[i] || (score[k] == score[i] && k < i);
    return rank;
}

static void check_allocation(const grq_budget *budget, const double *score, size_t n, const char *what)
{
    grq_error err = { 0 };
    uint8_t *const depth = malloc(n + 1);
    assert_non_null(depth);
    depth[n] = 99; /* nothing is written past the end */
    assert_ok(grq_budget_allocate(budget, score, n, depth, &err), &err);
    assert_int_equal(depth[n], 99);
    for (size_t i = 0; i < n; i++) {
        const size_t rank = rank_of(score, n, i);
        unsigned want = 1;
        for (uint32_t k = 0; k < budget->n_fractions; k++) want += rank < grq_budget_count(budget->fraction[k], n);
        if (depth[i] != want)
            fail_msg("%s, %zu look-ups: number %zu of rank %zu has depth %u instead of %u", what, n, i, rank, depth[i],
                     want);
    }
    free(depth);
}

static void random_scores(double *score, size_t n, uint32_t kind)
{
    for (size_t i = 0; i < n; i++) {
        switch (kind) {
        case 0: score[i] = grq_rng_normal(&rng); break;
        case 1: score[i] = (double)grq_rng_below(&rng, 4); break; /* mostly ties */
        case 2: score[i] = 1; break;
        case 3: score[i] = (double)i; break;
        case 4: score[i] = -(double)i; break;
        case 5: score[i] = (double)(i < n / 2 ? i : n - i); break;
        case 6: score[i] = grq_rng_below(&rng, 3) ? -HUGE_VAL : HUGE_VAL; break;
        default: score[i] = grq_rng_below(&rng, 2) ? 0.0 : -0.0; break; /* equal, so a tie */
        }
    }
}

static grq_budget random_budget(void)
{
    grq_budget budget = { .n_fractions = between(0, GRQ_MAX_STAGES - 1) };
    double below = 1;
    for (uint32_t k = 0; k < budget.n_fractions; k++) {
        budget.fraction[k] = grq_rng_below(&rng, 5)   ? below * grq_rng_uniform(&rng)
                             : grq_rng_below(&rng, 2) ? below
                                                      : 0;
        below = budget.fraction[k];
    }
    return budget;
}

static void allocation_is_the_naive_one(void **state)
{
    (void)state;
    static double score[400];
    for (int round = 0; round < 400; round++) {
        const size_t n = round < 20 ? (size_t)(round / 4) : between(1, 400);
        const uint32_t kind = between(0, 7);
        const grq_budget budget = random_budget();
        char what[32];
        snprintf(what, sizeof what, "round %d, kind %u", round, kind);
        random_scores(score, n, kind);
        check_allocation(&budget, score, n, what);
    }
}

/* A larger budget never takes a stage away from a look-up. */
static void budgets_are_nested(void **state)
{
    (void)state;
    enum { N = 301 };
    double score[N];
    uint8_t small[N], large[N];
    grq_error err = { 0 };
    for (int round = 0; round < 50; round++) {
        random_scores(score, N, between(0, 7));
        grq_budget a = { 2, { grq_rng_uniform(&rng), 0 } };
        a.fraction[1] = a.fraction[0] * grq_rng_uniform(&rng);
        grq_budget b = a;
        b.fraction[0] += (1 - b.fraction[0]) * grq_rng_uniform(&rng);
        b.fraction[1] += (a.fraction[0] - a.fraction[1]) * grq_rng_uniform(&rng);
        assert_ok(grq_budget_allocate(&a, score, N, small, &err), &err);
        assert_ok(grq_budget_allocate(&b, score, N, large, &err), &err);
        size_t at_least[2][4] = { { 0 } };
        for (size_t i = 0; i < N; i++) {
            if (large[i] < small[i])
                fail_msg("round %d: look-up %zu fell from depth %u to %u", round, i, small[i], large[i]);
            for (unsigned d = 2; d <= 3; d++) at_least[0][d] += small[i] >= d, at_least[1][d] += large[i] >= d;
        }
        for (unsigned d = 2; d <= 3; d++) {
            assert_int_equal(at_least[0][d], grq_budget_count(a.fraction[d - 2], N));
            assert_int_equal(at_least[1][d], grq_budget_count(b.fraction[d - 2], N));
        }
    }
}

/* Orders that are hard for a selection by pivots must not make it quadratic. */
static void large_batches_are_quick(void **state)
{
    (void)state;
    enum { N = 200000 };
    double *const score = malloc(N * sizeof *score);
    uint8_t *const depth = malloc(N);
    grq_error err = { 0 };
    const grq_budget budget = { 2, { 0.65, 0.33 } };
    assert_non_null(score);
    assert_non_null(depth);
    for (uint32_t kind = 0; kind < 8; kind++) {
        random_scores(score, N, kind);
        const clock_t start = clock();
        assert_ok(grq_budget_allocate(&budget, score, N, depth, &err), &err);
        const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (seconds > 3) fail_msg("kind %u: %.1f s for %d look-ups", kind, seconds, N);
    }
    free(score);
    free(depth);
}

static void a_nan_is_refused(void **state)
{
    (void)state;
    grq_error err = { 0 };
    uint8_t depth[3];
    const grq_budget budget = { 1, { 0.5 } };
    assert_refused(grq_budget_allocate(&budget, (const double[]){ 1, 2, NAN }, 3, depth, &err), GRQ_E_DATA, &err,
                   "look-up 2");
}

/* ---- budgets ---- */

static void counts_and_bits(void **state)
{
    (void)state;
    assert_int_equal(grq_budget_count(0.412, 0), 0);
    assert_int_equal(grq_budget_count(0.412, 1000), 412);
    assert_int_equal(grq_budget_count(0.5, 3), 2); /* halves go up */
    assert_int_equal(grq_budget_count(1, 12345678901), 12345678901);
    assert_int_equal(grq_budget_count(0, 12345678901), 0);
    const grq_budget paper = { 1, { 0.412 } }, all = { 2, { 1, 1 } }, none = { 0, { 0 } };
    assert_true(fabs(grq_budget_bits(&paper, 256) - 1.0625 * 1.412) < 1e-15); /* 1.50 */
    assert_true(fabs(grq_budget_bits(&paper, 160) - 1.1 * 1.412) < 1e-15);    /* 1.55 */
    assert_true(grq_budget_bits(&all, 256) == 3.1875 && grq_budget_bits(&none, 256) == 1.0625);
}

static void parsing_is_strict(void **state)
{
    (void)state;
    grq_error err = { 0 };
    grq_budget b;
    assert_ok(grq_budget_parse("0.412", &b, &err), &err);
    assert_true(b.n_fractions == 1 && b.fraction[0] == 0.412);
    assert_ok(grq_budget_parse("0.65,0.33", &b, &err), &err);
    assert_true(b.n_fractions == 2 && b.fraction[0] == 0.65 && b.fraction[1] == 0.33);
    assert_ok(grq_budget_parse("1,1", &b, &err), &err);
    assert_ok(grq_budget_parse("0", &b, &err), &err);
    assert_ok(grq_budget_parse("5e-1,.25", &b, &err), &err);
    static const char *const refused[] = { "",         " 0.4",    "0.4 ",        "1.01",    "-0.1",
                                           "+0.1",     "nan",     "inf",         "0x1p-2",  "0.4,",
                                           ",0.4",     "0.3,0.5", "0.5,,0.25",   "0.4;0.2", "0.5%",
                                           "0.4 ,0.2", "a",       "0.4,0.3,0.2", "0.4,-0",  "1e",
                                           "--1",      "0.4.1",   "0,1",         "1e-999",  "0.4,0x0" };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (grq_budget_parse(refused[i], &b, &err) != GRQ_E_USAGE) fail_msg("\"%s\" was accepted", refused[i]);
}

/* ---- scores ---- */

enum { MAX_POSITIONS = 50, MAX_COLUMNS = 7, MAX_LOOKUPS = MAX_POSITIONS * MAX_COLUMNS };

typedef struct {
    grq_lookup_batch batch;
    uint64_t position_ids[MAX_POSITIONS], frequency[MAX_LOOKUPS];
    float gate_energy[MAX_POSITIONS], row_energy[MAX_LOOKUPS], prior[MAX_LOOKUPS], reduction[MAX_LOOKUPS];
    double tau[MAX_COLUMNS];
} random_batch;

static void make_batch(random_batch *b)
{
    const size_t n_positions = between(1, MAX_POSITIONS);
    const uint32_t n_columns = between(1, MAX_COLUMNS);
    const uint64_t first = grq_rng_next(&rng) >> 1;
    for (size_t t = 0; t < n_positions; t++) {
        b->position_ids[t] = first + t;
        b->gate_energy[t] = (float)grq_rng_uniform(&rng) * 4;
    }
    for (uint32_t j = 0; j < n_columns; j++) b->tau[j] = grq_rng_uniform(&rng);
    for (size_t i = 0; i < n_positions * n_columns; i++) {
        b->frequency[i] = grq_rng_below(&rng, 20);
        b->row_energy[i] = (float)grq_rng_uniform(&rng);
        b->prior[i] = (float)grq_rng_uniform(&rng);
        b->reduction[i] = (float)grq_rng_normal(&rng);
    }
    b->batch = (grq_lookup_batch){ n_positions,   n_columns, b->position_ids, b->gate_energy, b->tau,
                                   b->row_energy, b->prior,  b->frequency,    b->reduction };
}

static void score_batch(grq_ordering ordering, const grq_lookup_batch *batch, uint64_t seed, double *score)
{
    grq_error err = { 0 };
    assert_ok(grq_policy_score(ordering, batch, seed, score, &err), &err);
}

static double score_by_definition(const random_batch *b, grq_ordering ordering, size_t t, uint32_t j)
{
    const size_t i = t * b->batch.n_columns + j;
    const double energy = b->tau[j] * (double)b->row_energy[i];
    switch (ordering) {
    case GRQ_ORDER_GATE: return (double)b->gate_energy[t] * energy;
    case GRQ_ORDER_PRIOR: return (double)b->prior[i] * energy;
    case GRQ_ORDER_FREQUENCY: return (double)b->frequency[i];
    case GRQ_ORDER_COLDEST: return -(double)b->frequency[i];
    case GRQ_ORDER_ENERGY: return energy;
    default: return (double)b->reduction[i];
    }
}

static void scores_are_the_definitions(void **state)
{
    (void)state;
    static random_batch b;
    static double score[MAX_LOOKUPS];
    static const grq_ordering plain[] = { GRQ_ORDER_GATE,    GRQ_ORDER_PRIOR,  GRQ_ORDER_FREQUENCY,
                                          GRQ_ORDER_COLDEST, GRQ_ORDER_ENERGY, GRQ_ORDER_ORACLE };
    for (int round = 0; round < 20; round++) {
        make_batch(&b);
        for (size_t o = 0; o < ARRAY_LEN(plain); o++) {
            score_batch(plain[o], &b.batch, 1, score);
            for (size_t i = 0; i < b.batch.n_positions * b.batch.n_columns; i++) {
                const double want =
                    score_by_definition(&b, plain[o], i / b.batch.n_columns, (uint32_t)(i % b.batch.n_columns));
                if (fabs(score[i] - want) > 4 * 2.3e-16 * fabs(want)) /* three products, in either order */
                    fail_msg("%s, look-up %zu: %.17g instead of %.17g", grq_ordering_name(plain[o]), i, score[i], want);
            }
        }
    }
}

/* Random scores belong to the look-up: cut the batch anywhere and they stay; another seed gives others. */
static void random_does_not_depend_on_the_batch(void **state)
{
    (void)state;
    static random_batch b;
    static double whole[MAX_LOOKUPS], part[MAX_LOOKUPS];
    for (int round = 0; round < 20; round++) {
        make_batch(&b);
        const size_t n = b.batch.n_positions * b.batch.n_columns;
        score_batch(GRQ_ORDER_RANDOM, &b.batch, 7, whole);
        const size_t cut = grq_rng_below(&rng, b.batch.n_positions);
        grq_lookup_batch tail = b.batch;
        tail.n_positions -= cut;
        tail.position_ids += cut;
        score_batch(GRQ_ORDER_RANDOM, &tail, 7, part);
        assert_memory_equal(part, whole + cut * b.batch.n_columns, (n - cut * b.batch.n_columns) * sizeof *part);
        score_batch(GRQ_ORDER_RANDOM, &b.batch, 8, part);
        assert_memory_not_equal(part, whole, n * sizeof *part);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < i; k++)
                if (whole[i] == whole[k]) fail_msg("look-ups %zu and %zu share a random score", k, i);
    }
}

/* Every share of a large random ordering is near its expectation, for each column: the hash mixes its inputs. */
static void random_is_uniform(void **state)
{
    (void)state;
    enum { N = 20000, COLUMNS = 4 };
    static uint64_t ids[N];
    static double score[N * COLUMNS];
    for (size_t t = 0; t < N; t++) ids[t] = t;
    const grq_lookup_batch batch = { .n_positions = N, .n_columns = COLUMNS, .position_ids = ids };
    score_batch(GRQ_ORDER_RANDOM, &batch, 1, score); /* fixed seed: the outcome is the same every time */
    for (uint32_t j = 0; j < COLUMNS; j++) {
        double sum = 0, lag = 0;
        for (size_t t = 0; t < N; t++) sum += score[t * COLUMNS + j] * 0x1p-53;
        for (size_t t = 1; t < N; t++)
            lag += (score[t * COLUMNS + j] * 0x1p-53 - 0.5) * (score[(t - 1) * COLUMNS + j] * 0x1p-53 - 0.5);
        /* Four standard errors: 1/sqrt(12 N), and 1/(12 sqrt(N)). */
        if (fabs(sum / N - 0.5) > 4 * 0.00204 || fabs(lag / N) > 4 * 0.00059)
            fail_msg("column %u: mean %.5f, lag-1 covariance %.6f", j, sum / N, lag / N);
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Shuffled is gate with the positions' energies permuted: the same energies, the same seed the same order. */
static void shuffled_permutes_the_energies(void **state)
{
    (void)state;
    static random_batch b;
    static double first[MAX_LOOKUPS], again[MAX_LOOKUPS], energies[2][MAX_POSITIONS];
    int n_moved = 0;
    for (int round = 0; round < 20; round++) {
        make_batch(&b);
        const size_t n = b.batch.n_positions;
        score_batch(GRQ_ORDER_GATE, &b.batch, 3, first);
        score_batch(GRQ_ORDER_SHUFFLED, &b.batch, 3, again);
        n_moved += memcmp(first, again, n * b.batch.n_columns * sizeof *first) != 0;
        score_batch(GRQ_ORDER_SHUFFLED, &b.batch, 3, first);
        score_batch(GRQ_ORDER_SHUFFLED, &b.batch, 3, again);
        assert_memory_equal(first, again, n * b.batch.n_columns * sizeof *first);
        for (size_t t = 0; t < n; t++) {
            energies[0][t] = (double)b.gate_energy[t];
            energies[1][t] = first[t * b.batch.n_columns] / (b.tau[0] * (double)b.row_energy[t * b.batch.n_columns]);
        }
        qsort(energies[0], n, sizeof **energies, by_value);
        qsort(energies[1], n, sizeof **energies, by_value);
        for (size_t t = 0; t < n; t++) assert_true(fabs(energies[0][t] - energies[1][t]) < 1e-12);
    }
    assert_true(n_moved > 10); /* of 20; a batch of one position has nothing to permute */
}

/* Access counts are whole numbers that binary64 holds, so equal counts tie exactly and go by index. */
static void equal_counts_go_by_index(void **state)
{
    (void)state;
    const uint64_t big = ((uint64_t)1 << 53) - 1;
    const uint64_t frequency[] = { 5, big, 5, big - 1, 5, big };
    const grq_lookup_batch batch = { .n_positions = 3, .n_columns = 2, .frequency = frequency };
    static const uint8_t want_frequency[] = { 1, 2, 1, 2, 1, 2 }, want_coldest[] = { 2, 1, 2, 1, 2, 1 };
    const grq_budget half = { 1, { 0.5 } }, third = { 1, { 1.0 / 3 } };
    double score[6];
    uint8_t depth[6];
    grq_error err = { 0 };
    score_batch(GRQ_ORDER_FREQUENCY, &batch, 1, score);
    assert_ok(grq_budget_allocate(&half, score, 6, depth, &err), &err);
    assert_memory_equal(depth, want_frequency, 6);
    score_batch(GRQ_ORDER_COLDEST, &batch, 1, score);
    assert_ok(grq_budget_allocate(&half, score, 6, depth, &err), &err);
    assert_memory_equal(depth, want_coldest, 6);
    assert_ok(grq_budget_allocate(&third, score, 6, depth, &err), &err);
    assert_true(depth[0] == 2 && depth[2] == 2 && depth[4] == 1); /* three equal counts, room for two */
}

static void names_and_missing_arrays(void **state)
{
    (void)state;
    grq_error err = { 0 };
    grq_ordering found;
    double score[1];
    const grq_lookup_batch empty = { .n_positions = 1, .n_columns = 1 };
    for (int o = 0; o < GRQ_N_ORDERINGS; o++) {
        const char *const name = grq_ordering_name((grq_ordering)o);
        assert_ok(grq_ordering_find(name, &found, &err), &err);
        assert_int_equal(found, o);
        assert_refused(grq_policy_score(found, &empty, 1, score, &err), GRQ_E_USAGE, &err, name);
    }
    assert_refused(grq_ordering_find("Gate", &found, &err), GRQ_E_USAGE, &err, "coldest");
    assert_refused(grq_policy_score(GRQ_N_ORDERINGS, &empty, 1, score, &err), GRQ_E_USAGE, &err, "ordering");
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocation_is_the_naive_one),
        cmocka_unit_test(budgets_are_nested),
        cmocka_unit_test(large_batches_are_quick),
        cmocka_unit_test(a_nan_is_refused),
        cmocka_unit_test(counts_and_bits),
        cmocka_unit_test(parsing_is_strict),
        cmocka_unit_test(scores_are_the_definitions),
        cmocka_unit_test(random_does_not_depend_on_the_batch),
        cmocka_unit_test(random_is_uniform),
        cmocka_unit_test(shuffled_permutes_the_energies),
        cmocka_unit_test(equal_counts_go_by_index),
        cmocka_unit_test(names_and_missing_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
