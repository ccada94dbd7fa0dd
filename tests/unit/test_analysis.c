/* Analyses on traces made by hand, where the answers are known. */
#include "support.h"

#include "gaterq/analysis.h"
#include "gaterq/rng.h"
#include "gaterq/world.h"

enum { N = 3000, COLUMNS = 2, BRANCHES = 4, LENGTH = 20 };

/* Gate energies fall with a row's count by construction when `falling`, else they ignore it. */
static grq_trace make_trace(bool falling)
{
    grq_trace t = { .n_positions = N, .n_layers = 1, .row_dim = 32 };
    grq_trace_layer *l = &t.layers[0];
    *l = (grq_trace_layer){ .layer = 1, .n_columns = COLUMNS, .n_branches = BRANCHES };
    const size_t n = N * COLUMNS;
    t.token = calloc(N, sizeof *t.token);
    t.sequence = calloc(N, sizeof *t.sequence);
    t.position = calloc(N, sizeof *t.position);
    t.kind = malloc(N);
    float **floats[] = { &l->gate_energy,        &l->gate_energy_full,  &l->tau,
                         &l->row_energy,         &l->importance,        &l->prior,
                         &l->weighted_reduction, &l->injected_reduction };
    for (size_t i = 0; i < ARRAY_LEN(floats); i++) *floats[i] = calloc(n, sizeof(float));
    l->gates_stage1 = calloc(N * BRANCHES, sizeof(float));
    l->gates_full = calloc(N * BRANCHES, sizeof(float));
    l->row = calloc(n, sizeof *l->row);
    l->head = calloc(n, 1);
    l->order = malloc(n);
    l->depth = malloc(n);
    l->frequency = calloc(n, sizeof *l->frequency);
    memset(t.kind, GRQ_TEXT_PROMPT, N); /* prompts are analysed whole */
    memset(l->order, 2, n);
    memset(l->depth, 1, n);
    grq_rng rng;
    grq_rng_seed(&rng, 9);
    for (size_t p = 0; p < N; p++) {
        t.sequence[p] = (uint32_t)(p / LENGTH);
        t.position[p] = (uint32_t)(p % LENGTH);
        const uint64_t count = grq_rng_below(&rng, 1000);
        const float gate = (float)(falling ? 1.0 / (1.0 + (double)count / 100) : 0.1 + 0.8 * grq_rng_uniform(&rng));
        for (uint32_t m = 0; m < BRANCHES; m++) {
            l->gates_stage1[p * BRANCHES + m] = gate;
            l->gates_full[p * BRANCHES + m] = gate;
        }
        for (size_t c = 0; c < COLUMNS; c++) {
            const size_t i = p * COLUMNS + c;
            l->row[i] = (int64_t)count; /* a row is its count: all its look-ups share it */
            l->frequency[i] = count;
            l->gate_energy[i] = l->gate_energy_full[i] = 4 * gate * gate;
            l->tau[i] = 1;
            l->row_energy[i] = (float)(0.5 + grq_rng_uniform(&rng));
            l->importance[i] = l->gate_energy[i] * l->row_energy[i];
            l->prior[i] = 1;
            l->weighted_reduction[i] = l->injected_reduction[i] = l->importance[i];
        }
    }
    return t;
}

static void known_correlations_are_found(void **state)
{
    (void)state;
    grq_error err;
    grq_premise p;
    grq_trace falling = make_trace(true), flat = make_trace(false);
    assert_ok(grq_premise_run(&falling, 200, 1, &p, &err), &err);
    for (size_t i = 0; i < p.n_cells; i++) {
        assert_true(p.cells[i].spearman_lookups.value < -0.9999);
        assert_true(p.cells[i].spearman_rows.value < -0.9999);
    }
    assert_string_equal(p.verdict, "gate");
    grq_premise_free(&p);
    assert_ok(grq_premise_run(&flat, 500, 1, &p, &err), &err);
    for (size_t i = 0; i < p.n_cells; i++) {
        assert_true(fabs(p.cells[i].spearman_lookups.value) < 0.06);
        assert_true(p.cells[i].spearman_lookups.low < p.cells[i].spearman_lookups.value);
        assert_true(p.cells[i].spearman_lookups.high > p.cells[i].spearman_lookups.value);
    }
    grq_premise_free(&p);
    grq_trace_free(&falling);
    grq_trace_free(&flat);
}

static void verdicts_follow_the_rule(void **state)
{
    (void)state;
    const grq_interval below[] = { { -0.3, -0.4, -0.2 }, { -0.1, -0.2, 0.05 } };
    const grq_interval above[] = { { 0.3, 0.2, 0.4 }, { 0.2, 0.1, 0.3 } };
    const grq_interval mixed[] = { { 0.3, 0.2, 0.4 }, { -0.2, -0.3, -0.1 } };
    assert_string_equal(grq_premise_verdict(below, 2), "gate");
    assert_string_equal(grq_premise_verdict(above, 2), "frequency");
    assert_string_equal(grq_premise_verdict(mixed, 2), "undecided");
    assert_string_equal(grq_premise_verdict(NULL, 0), "undecided");
    /* Each bound of the rule by itself: one interval reaches over it, or the median does. */
    const grq_interval reaches_up[] = { { -0.3, -0.4, -0.2 }, { -0.1, -0.2, 0.1 } };
    const grq_interval reaches_zero[] = { { 0.3, 0.2, 0.4 }, { 0.2, 0, 0.3 } };
    const grq_interval weak[] = { { 0.05, 0.01, 0.09 }, { 0.06, 0.02, 0.09 } };
    const grq_interval undefined[] = { { NAN, NAN, NAN }, { -0.3, -0.4, -0.2 } };
    const grq_interval no_interval[] = { { -0.3, NAN, NAN } };
    assert_string_equal(grq_premise_verdict(reaches_up, 2), "undecided");
    assert_string_equal(grq_premise_verdict(reaches_zero, 2), "undecided");
    assert_string_equal(grq_premise_verdict(weak, 2), "undecided");
    assert_string_equal(grq_premise_verdict(undefined, 2), "gate"); /* a constant cell says nothing */
    assert_string_equal(grq_premise_verdict(no_interval, 1), "undecided");
}

static void captured_shares_are_exact(void **state)
{
    (void)state;
    grq_error err;
    grq_ablation a;
    grq_trace t = make_trace(false);
    assert_ok(grq_ablate_run(&t, 0.412, 200, 1, &a, &err), &err);
    /* The weighted error is the importance here, so gate ordering is the best there is. */
    assert_true(fabs(a.captured[GRQ_ORDER_GATE] - a.bound) < 1e-9);
    assert_true(fabs(a.captured[GRQ_ORDER_ORACLE] - a.captured[GRQ_ORDER_GATE]) < 1e-9);
    assert_true(fabs(a.captured[GRQ_ORDER_RANDOM] - 0.412) < 0.03);
    assert_true(fabs(a.captured[GRQ_ORDER_FREQUENCY] - 0.412) < 0.05);
    for (int o = 0; o < GRQ_N_ORDERINGS; o++) {
        assert_true(fabs(a.curve[0][o]) < 1e-12);
        assert_true(fabs(a.curve[GRQ_CURVE_POINTS - 1][o] - 1) < 1e-9);
        for (int i = 1; i < GRQ_CURVE_POINTS; i++) {
            assert_true(a.curve[i][o] >= a.curve[i - 1][o] - 1e-12);
            assert_true(a.curve[i][o] <= a.curve[i][GRQ_ORDER_ORACLE] + 1e-9);
        }
        assert_true(a.captured_low[o] <= a.captured[o] && a.captured[o] <= a.captured_high[o]);
    }
    grq_trace_free(&t);
}

/* The analysis sorts once for all budgets; the server allocates batch by batch. Both must take the same look-ups. */
static void a_budget_takes_what_the_policy_takes(void **state)
{
    (void)state;
    enum { LOOKUPS = N * COLUMNS };
    grq_error err;
    grq_ablation a;
    grq_trace t = make_trace(true);
    const grq_trace_layer *l = &t.layers[0];
    static float gate_energy[N];
    static double score[LOOKUPS];
    static uint8_t depth[LOOKUPS];
    const double tau[COLUMNS] = { 1, 1 };
    for (size_t p = 0; p < N; p++) gate_energy[p] = l->gate_energy[p * COLUMNS];
    const grq_lookup_batch batch = { .n_positions = N,
                                     .n_columns = COLUMNS,
                                     .gate_energy = gate_energy,
                                     .tau = tau,
                                     .row_energy = l->row_energy,
                                     .prior = l->prior,
                                     .frequency = l->frequency,
                                     .true_reduction = l->injected_reduction };
    static const grq_ordering orderings[] = { GRQ_ORDER_GATE,    GRQ_ORDER_PRIOR,  GRQ_ORDER_FREQUENCY,
                                              GRQ_ORDER_COLDEST, GRQ_ORDER_ENERGY, GRQ_ORDER_ORACLE };
    static const double budgets[] = { 0, 0.0002, 0.412, 0.5, 1 };
    for (size_t b = 0; b < ARRAY_LEN(budgets); b++) {
        const grq_budget budget = { 1, { budgets[b] } };
        assert_ok(grq_ablate_run(&t, budgets[b], 0, 1, &a, &err), &err);
        for (size_t o = 0; o < ARRAY_LEN(orderings); o++) {
            double total = 0, captured = 0;
            assert_ok(grq_policy_score(orderings[o], &batch, 1, score, &err), &err);
            assert_ok(grq_budget_allocate(&budget, score, LOOKUPS, depth, &err), &err);
            for (size_t i = 0; i < LOOKUPS; i++) {
                total += l->weighted_reduction[i];
                if (depth[i] == 2) captured += l->weighted_reduction[i];
            }
            if (!(fabs(a.captured[orderings[o]] - captured / total) < 1e-12))
                fail_msg("%s at %g: %.17g, the policy's %.17g", grq_ordering_name(orderings[o]), budgets[b],
                         a.captured[orderings[o]], captured / total);
        }
        assert_true(isnan(a.captured_low[0])); /* no resamples asked for */
    }
    assert_refused(grq_ablate_run(&t, 1.01, 0, 1, &a, &err), GRQ_E_USAGE, &err, "budget 1.01");
    t.layers[0].gate_energy[7] += 1; /* one column of position 3 only */
    assert_refused(grq_ablate_run(&t, 0.4, 0, 1, &a, &err), GRQ_E_DATA, &err, "gate_energy of position 3");
    grq_trace_free(&t);
}

/* The first positions of a text's sequences have no whole n-gram; a prompt's do count. */
static void cells_hold_the_positions_they_should(void **state)
{
    (void)state;
    grq_error err;
    grq_premise p;
    grq_trace t = make_trace(false);
    for (size_t i = 0; i < N / 2; i++) t.kind[i] = GRQ_TEXT_FILLER;
    for (size_t i = 0; i < N; i++) t.layers[0].order[i * COLUMNS + 1] = 4; /* column 0 is of order 2 */
    assert_ok(grq_premise_run(&t, 20, 1, &p, &err), &err);
    assert_int_equal(p.n_cells, 2 * 3);
    const size_t text = N / 2 / LENGTH * (LENGTH - 3), prompts = N / 2;
    for (size_t i = 0; i < p.n_cells; i++) {
        const grq_premise_cell *c = &p.cells[i];
        assert_int_equal(c->order, i < 3 ? 2 : 4);
        assert_int_equal(c->n_lookups, c->kind < 0 ? text + prompts : c->kind == GRQ_TEXT_FILLER ? text : prompts);
        assert_true(c->n_rows > 0 && c->n_rows <= c->n_lookups);
    }
    grq_premise_free(&p);
    grq_trace_free(&t);
}

static void concentration_is_read_from_the_top(void **state)
{
    (void)state;
    grq_error err;
    grq_layer_profile profile[GRQ_MAX_MEMORY_LAYERS];
    grq_trace t = make_trace(false);
    grq_trace_layer *l = &t.layers[0];
    for (size_t i = 0; i < N * COLUMNS; i++)
        l->importance[i] = i < N * COLUMNS / 100 ? 99 : 1; /* 1 % of the look-ups hold half */
    for (size_t i = 0; i < 60; i++) l->frequency[i] = 0;   /* and were never seen */
    assert_ok(grq_profile_run(&t, 100, 1, profile, &err), &err);
    assert_true(fabs(profile[0].top_1 - 0.5) < 1e-6);
    assert_true(fabs(profile[0].gate_fidelity.value - 1) < 1e-9);
    assert_true(profile[0].unseen_lookups[2] >= 60);
    assert_true(fabs(profile[0].unseen_share[2] - 0.5) < 0.01);
    assert_true(fabs(profile[0].lorenz[1] - 0.5) < 1e-6 && fabs(profile[0].lorenz[100] - 1) < 1e-9);
    grq_trace_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_correlations_are_found),
        cmocka_unit_test(verdicts_follow_the_rule),
        cmocka_unit_test(captured_shares_are_exact),
        cmocka_unit_test(a_budget_takes_what_the_policy_takes),
        cmocka_unit_test(cells_hold_the_positions_they_should),
        cmocka_unit_test(concentration_is_read_from_the_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
