/* Readers: what stands in for a memory layer while a model answers. */
#include "lm_support.h"

#include "gaterq/reader.h"

enum { N_PROMPTS = 9, MAX_NEW = 6 };

typedef struct {
    grq_model *model;
    grq_codes *codes[GRQ_MAX_MEMORY_LAYERS];
    int32_t *text;
    grq_prompt prompts[N_PROMPTS];
} fixture;

static fixture make_fixture(void)
{
    grq_error err;
    fixture f = { .model = lm_make_model(LM_SMALL, 3), .text = lm_make_text(200, LM_SMALL.vocab_size, 4) };
    const grq_geometry *g = &grq_model_shape_of(f.model)->memory;
    const grq_encoder *encoder;
    assert_ok(grq_encoder_find("integer", &encoder, &err), &err);
    for (uint32_t l = 0; l < g->n_layers; l++)
        assert_ok(grq_codes_encode(encoder, grq_model_memory(f.model, l)->table, g->n_rows[l], g->row_dim, 3, NULL, 1,
                                   NULL, &f.codes[l], &err),
                  &err);
    for (size_t i = 0; i < N_PROMPTS; i++) f.prompts[i] = (grq_prompt){ f.text + 7 * i, 3 + i };
    return f;
}

static void free_fixture(fixture *f)
{
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++) grq_codes_close(f->codes[l]);
    grq_model_free(f->model);
    free(f->text);
}

/* Log-likelihoods of continuations with a reader: a fine fingerprint of everything the reader did. */
static void fingerprint(const fixture *f, grq_reader_config config, double out[N_PROMPTS], grq_reader_usage *usage)
{
    grq_error err;
    grq_reader *reader;
    grq_prompt continuations[N_PROMPTS];
    for (size_t i = 0; i < N_PROMPTS; i++) continuations[i] = (grq_prompt){ f->text + 100 + i, 2 };
    if (config.mode == GRQ_READ_DEPTH || config.mode == GRQ_READ_POLICY)
        config.codes = (const grq_codes *const *)f->codes;
    assert_ok(grq_reader_new(f->model, &config, &reader, &err), &err);
    assert_ok(grq_loglikelihood(f->model, grq_reader_hook(reader), f->prompts, continuations, N_PROMPTS, out, &err),
              &err);
    if (usage) *usage = grq_reader_used(reader);
    grq_reader_free(reader);
}

static void whole_budgets_are_whole_depths(void **state)
{
    (void)state;
    fixture f = make_fixture();
    double one[N_PROMPTS], two[N_PROMPTS], three[N_PROMPTS], got[N_PROMPTS];
    fingerprint(&f, (grq_reader_config){ .mode = GRQ_READ_DEPTH, .depth = 1 }, one, NULL);
    fingerprint(&f, (grq_reader_config){ .mode = GRQ_READ_DEPTH, .depth = 2 }, two, NULL);
    fingerprint(&f, (grq_reader_config){ .mode = GRQ_READ_DEPTH, .depth = 3 }, three, NULL);
    assert_memory_not_equal(one, two, sizeof one);
    assert_memory_not_equal(two, three, sizeof one);
    fingerprint(&f, (grq_reader_config){ .mode = GRQ_READ_POLICY, .budget = { 1, { 0 } } }, got, NULL);
    assert_memory_equal(got, one, sizeof got); /* nobody reads deeper: stage 1, whose gates are frozen anyway */
    fingerprint(
        &f, (grq_reader_config){ .mode = GRQ_READ_POLICY, .gate_mode = GRQ_GATES_REFRESHED, .budget = { 1, { 1 } } },
        got, NULL);
    assert_memory_equal(got, two, sizeof got);
    fingerprint(
        &f, (grq_reader_config){ .mode = GRQ_READ_POLICY, .gate_mode = GRQ_GATES_REFRESHED, .budget = { 2, { 1, 1 } } },
        got, NULL);
    assert_memory_equal(got, three, sizeof got);
    fingerprint(&f, (grq_reader_config){ .mode = GRQ_READ_POLICY, .budget = { 1, { 1 } } }, got, NULL);
    assert_memory_not_equal(got, two, sizeof got); /* frozen: stage-1 gates, deeper values */
    free_fixture(&f);
}

static void zero_is_a_table_of_zeros(void **state)
{
    (void)state;
    fixture f = make_fixture();
    const grq_geometry *g = &grq_model_shape_of(f.model)->memory;
    double zero[N_PROMPTS], full[N_PROMPTS], emptied[N_PROMPTS];
    fingerprint(&f, (grq_reader_config){ .mode = GRQ_READ_ZERO }, zero, NULL);
    fingerprint(&f, (grq_reader_config){ .mode = GRQ_READ_FULL }, full, NULL);
    assert_memory_not_equal(zero, full, sizeof zero);
    for (uint32_t l = 0; l < g->n_layers; l++)
        memset((float *)grq_model_memory(f.model, l)->table, 0, g->n_rows[l] * g->row_dim * sizeof(float));
    fingerprint(&f, (grq_reader_config){ .mode = GRQ_READ_FULL }, emptied, NULL);
    for (size_t i = 0; i < N_PROMPTS; i++)
        if (emptied[i] != zero[i])
            fail_msg("prompt %zu: %a with zeroed tables, %a without memory", i, emptied[i], zero[i]);
    free_fixture(&f);
}

static void a_policy_reads_its_exact_share(void **state)
{
    (void)state;
    fixture f = make_fixture();
    const grq_geometry *g = &grq_model_shape_of(f.model)->memory;
    size_t n_tokens = 0;
    for (size_t i = 0; i < N_PROMPTS; i++)
        n_tokens += f.prompts[i].n_tokens + 2 - 1; /* the last token is only predicted */
    for (grq_ordering o = 0; o < GRQ_N_ORDERINGS; o++) {
        if (o == GRQ_ORDER_PRIOR || o == GRQ_ORDER_FREQUENCY || o == GRQ_ORDER_COLDEST) continue; /* need counts */
        grq_reader_usage usage;
        double got[N_PROMPTS];
        fingerprint(
            &f,
            (grq_reader_config){ .mode = GRQ_READ_POLICY, .ordering = o, .budget = { 2, { 0.5, 0.25 } }, .seed = 5 },
            got, &usage);
        assert_int_equal(usage.n_lookups, n_tokens * g->n_columns * g->n_layers);
        assert_int_equal(usage.n_at_depth[0] + usage.n_at_depth[1] + usage.n_at_depth[2], usage.n_lookups);
        /* One step for all prompts: the share is exact up to half a look-up per layer. */
        assert_true(llabs((long long)(2 * usage.n_at_depth[0]) - (long long)usage.n_lookups) <=
                    2 * (long long)g->n_layers);
        assert_true(llabs((long long)(4 * usage.n_at_depth[2]) - (long long)usage.n_lookups) <=
                    4 * (long long)g->n_layers);
    }
    free_fixture(&f);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    fixture f = make_fixture();
    grq_model *other = lm_make_model(LM_ODD, 3);
    grq_error err;
    grq_reader *reader;
    const grq_codes *const *codes = (const grq_codes *const *)f.codes;
    const grq_reader_config depth4 = { .mode = GRQ_READ_DEPTH, .depth = 4, .codes = codes };
    const grq_reader_config none = { .mode = GRQ_READ_DEPTH, .depth = 1 };
    const grq_reader_config prior = {
        .mode = GRQ_READ_POLICY, .ordering = GRQ_ORDER_PRIOR, .budget = { 1, { 0.4 } }, .codes = codes
    };
    const grq_reader_config foreign = { .mode = GRQ_READ_DEPTH, .depth = 1, .codes = codes };
    assert_refused(grq_reader_new(f.model, &depth4, &reader, &err), GRQ_E_USAGE, &err, "depth 4");
    assert_refused(grq_reader_new(f.model, &none, &reader, &err), GRQ_E_USAGE, &err, "needs codes");
    assert_refused(grq_reader_new(f.model, &prior, &reader, &err), GRQ_E_USAGE, &err, "gaterq count");
    assert_refused(grq_reader_new(other, &foreign, &reader, &err), GRQ_E_DATA, &err, "rows");
    assert_null(reader);
    grq_model_free(other);
    free_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_budgets_are_whole_depths),
        cmocka_unit_test(zero_is_a_table_of_zeros),
        cmocka_unit_test(a_policy_reads_its_exact_share),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
