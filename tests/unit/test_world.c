/* The generated world: the recipe's counts and shares, determinism, and refusals. */
#include "world_support.h"

enum { N_TEXT = 3000000 };

static grq_world *recipe_world(void)
{
    grq_error err;
    grq_world *world = NULL;
    assert_ok(open_world(GENERATED_CONFIG("1500", "250"), &world, &err), &err);
    return world;
}

static void the_recipe_has_its_figures(void **state)
{
    (void)state;
    grq_world *world = recipe_world();
    grq_error err;
    int32_t *text = malloc(N_TEXT * sizeof *text);
    uint8_t *kinds = malloc(N_TEXT);
    size_t count[GRQ_N_TEXT_KINDS] = { 0 };
    assert_int_equal(grq_world_n_facts(world), 7500);
    assert_ok(grq_world_corpus(world, N_TEXT, 0, text, kinds, NULL, &err), &err);
    for (size_t i = 0; i < N_TEXT; i++) count[kinds[i]]++;
    const double filler = (double)count[GRQ_TEXT_FILLER] / N_TEXT;
    printf("vocabulary %u; filler %.3f of the tokens; distinct 2-, 3-, 4-grams in 3 M tokens: %zu, %zu, %zu (recipe: "
           "12 k, 103 k, 334 k)\n",
           grq_vocab_size(grq_world_vocab(world)), filler, distinct_ngrams(text, N_TEXT, 2),
           distinct_ngrams(text, N_TEXT, 3), distinct_ngrams(text, N_TEXT, 4));
    assert_true(fabs(filler - 0.35) < 0.005);
    assert_int_equal(count[GRQ_TEXT_PROMPT], 0);
    for (unsigned order = 2; order <= 4; order++) {
        static const double recipe[] = { 12e3, 103e3, 334e3 };
        const double n = (double)distinct_ngrams(text, N_TEXT, order);
        if (n < 0.8 * recipe[order - 2] || n > 1.25 * recipe[order - 2]) fail_msg("%u-grams: %.0f", order, n);
    }
    free(text);
    free(kinds);
    grq_world_free(world);
}

static void held_facts_never_appear_as_questions(void **state)
{
    (void)state;
    grq_world *world = recipe_world();
    grq_error err;
    grq_questions q;
    const size_t n = 400000;
    int32_t *text = malloc(n * sizeof *text);
    assert_ok(grq_world_corpus(world, n, 5, text, NULL, NULL, &err), &err);
    assert_ok(grq_world_questions(world, 0, 1, &q, &err), &err);
    size_t held = 0, seen_held = 0, seen_shown = 0;
    for (size_t i = 0; i < q.n; i++) {
        const grq_question *item = &q.items[i];
        bool seen = false;
        held += item->held;
        /* The prompt's first token is the stop token before it. */
        for (size_t at = 0; !seen && at + item->n_prompt <= n; at++)
            seen = text[at] == item->prompt[0] && !memcmp(text + at, item->prompt, item->n_prompt * sizeof *text);
        if (item->held) seen_held += seen;
        else seen_shown += seen;
        if (i > 300) break;
    }
    assert_int_equal(seen_held, 0);
    assert_true(seen_shown > 50 && held > 50);
    grq_questions_free(&q);
    free(text);
    grq_world_free(world);
}

static void the_same_seed_gives_the_same_world(void **state)
{
    (void)state;
    grq_world *a = recipe_world(), *b = recipe_world();
    grq_error err;
    enum { N = 50000 };
    static int32_t x[N], y[N], z[N];
    assert_ok(grq_world_corpus(a, N, 3, x, NULL, NULL, &err), &err);
    assert_ok(grq_world_corpus(b, N, 3, y, NULL, NULL, &err), &err);
    assert_memory_equal(x, y, sizeof x);
    assert_ok(grq_world_corpus(b, N, 4, y, NULL, NULL, &err), &err);
    assert_memory_not_equal(x, y, sizeof x);
    assert_ok(grq_world_corpus(a, N / 2, 3, z, NULL, NULL, &err),
              &err); /* a shorter text is the beginning of a longer one */
    assert_memory_equal(x, z, N / 2 * sizeof *x);
    grq_world_free(a);
    grq_world_free(b);
}

static void mentions_follow_popularity(void **state)
{
    (void)state;
    grq_world *world = recipe_world();
    grq_error err;
    grq_questions q;
    int32_t *text = malloc(N_TEXT * sizeof *text);
    uint64_t *mentions = calloc(grq_world_n_facts(world), sizeof *mentions);
    double sum[4] = { 0 }, n[4] = { 0 };
    assert_ok(grq_world_corpus(world, N_TEXT, 0, text, NULL, mentions, &err), &err);
    assert_ok(grq_world_questions(world, 0, 1, &q, &err), &err);
    for (size_t i = 0; i < q.n; i++) {
        sum[q.items[i].quartile] += (double)mentions[q.items[i].fact];
        n[q.items[i].quartile]++;
    }
    printf("mentions per fact in 10 M tokens, cold to hot:");
    for (int k = 0; k < 4; k++) printf(" %.0f", sum[k] / n[k] * 10e6 / N_TEXT);
    printf(" (recipe: 34, 46, 75, 500)\n");
    for (int k = 1; k < 4; k++) assert_true(sum[k] / n[k] > sum[k - 1] / n[k - 1]);
    assert_true(sum[3] / n[3] > 8 * sum[0] / n[0]);
    grq_questions_free(&q);
    free(text);
    free(mentions);
    grq_world_free(world);
}

static void impossible_worlds_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *message;
    } cases[] = {
        { GENERATED_CONFIG("1000000000", "250"), "n_entities" }, { GENERATED_CONFIG("1500", "8"), "n_syllables" },
        { GENERATED_CONFIG("1500", "1000"), "n_syllables" },     { "{\"kind\":\"imagined\",\"seed\":1}", "imagined" },
        { "{\"kind\":\"generated\",\"seed\":1}", "templates" },  { "{\"kind\":\"generated\",\"seed\":-1}", "seed" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        grq_error err;
        grq_world *world = NULL;
        assert_refused(open_world(cases[i].config, &world, &err), GRQ_E_USAGE, &err, cases[i].message);
        assert_null(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recipe_has_its_figures),         cmocka_unit_test(held_facts_never_appear_as_questions),
        cmocka_unit_test(the_same_seed_gives_the_same_world), cmocka_unit_test(mentions_follow_popularity),
        cmocka_unit_test(impossible_worlds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
