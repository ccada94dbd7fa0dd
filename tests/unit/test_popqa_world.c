/* The world of real PopQA facts: the recipe's selection and vocabulary. Needs the data; skips loudly without. */
#include "world_support.h"

#define POPQA_CONFIG                                                                                                   \
    "{\"kind\":\"popqa\",\"templates\":\"datasets/worlds/popqa.json\",\"data\":\"popqa/popQA.tsv\",\"seed\":1,"        \
    "\"vocab_size\":2040,\"exposure\":0.4,\"floor\":0.35,\"cap\":20,\"max_subject_tokens\":12,\"max_answer_tokens\":"  \
    "8,"                                                                                                               \
    "\"n_facts\":0,\"fact_share\":0.65,\"qa_share\":0.3,\"shown_share\":0.75}"

static void the_selection_is_the_recipes(void **state)
{
    (void)state;
    grq_error err;
    grq_facts *facts;
    size_t known = 0;
    const char *path = test_data("popqa/popQA.reconstructed.tsv");
    assert_ok(grq_facts_open(path, &facts, &err), &err);
    for (size_t i = 0; i < grq_facts_count(facts); i++) known += !isnan(grq_facts_at(facts, i)->popularity);
    assert_int_equal(grq_facts_count(facts), 14267);
    assert_int_equal(known, 4432);
    grq_facts_close(facts);

    grq_world *world;
    grq_questions q;
    assert_ok(open_world(POPQA_CONFIG, &world, &err), &err);
    assert_int_equal(grq_world_n_facts(world), 4098);
    assert_int_equal(grq_vocab_size(grq_world_vocab(world)), 2040);
    assert_ok(grq_world_questions(world, 0, 1, &q, &err), &err);
    size_t n[4] = { 0 }, held = 0;
    for (size_t i = 0; i < q.n; i++) {
        n[q.items[i].quartile]++;
        held += q.items[i].held;
        assert_true(q.items[i].n_answer >= 1 && q.items[i].n_answer <= 8);
    }
    printf("quartiles of %zu, %zu, %zu, %zu questions; %zu never shown as questions\n", n[0], n[1], n[2], n[3], held);
    for (int k = 0; k < 4; k++) assert_true(n[k] > 1000 && n[k] < 1050);
    assert_true(held > 900 && held < 1150);
    grq_questions_free(&q);
    grq_world_free(world);
}

static void mentions_match_the_recipe(void **state)
{
    (void)state;
    static const double recipe[4] = { 33, 36, 67, 254 };
    grq_error err;
    grq_world *world;
    grq_questions q;
    enum { N = 9000000 };
    int32_t *text = malloc(N * sizeof *text);
    assert_ok(open_world(POPQA_CONFIG, &world, &err), &err);
    uint64_t *mentions = calloc(grq_world_n_facts(world), sizeof *mentions);
    assert_ok(grq_world_corpus(world, N, 0, text, NULL, mentions, &err), &err);
    assert_ok(grq_world_questions(world, 0, 1, &q, &err), &err);
    double sum[4] = { 0 }, n[4] = { 0 };
    for (size_t i = 0; i < q.n; i++) {
        sum[q.items[i].quartile] += (double)mentions[q.items[i].fact];
        n[q.items[i].quartile]++;
    }
    for (int k = 0; k < 4; k++) {
        printf("quartile %d: %.1f mentions in 9 M tokens (recipe %.0f)\n", k, sum[k] / n[k], recipe[k]);
        assert_true(fabs(sum[k] / n[k] / recipe[k] - 1) < 0.05);
    }
    grq_questions_free(&q);
    free(text);
    free(mentions);
    grq_world_free(world);
}

int main(void)
{
    if (!test_data("popqa/popQA.reconstructed.tsv"))
        test_skip("popqa/popQA.reconstructed.tsv is neither in $GATERQ_DATA nor in ../shared/datasets: the world of "
                  "real PopQA facts is not tested");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_selection_is_the_recipes),
        cmocka_unit_test(mentions_match_the_recipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
