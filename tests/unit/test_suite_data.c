/* Every real file of the four suites: its rows, as its makers count them, and what a prompt made of it must hold. Needs
 * the data; skips loudly without. */
#include "support.h"

#include "gaterq/prompts.h"

static grq_error err;

static grq_suite *open_data(const char *suite_name, const char *name)
{
    grq_suite *suite = NULL;
    const char *const path = test_data(name);
    if (!path) fail_msg("%s is missing beside the other files", name);
    assert_ok(grq_suite_open(suite_name, path, &suite, &err), &err);
    return suite;
}

static void every_file_has_its_rows(void **state)
{
    (void)state;
    static const struct {
        const char *suite, *name;
        size_t n_rows, n_groups;
    } files[] = {
        { "popqa", "popqa/popQA.reconstructed.tsv", 14267, 16 },
        { "popqa", "popqa/popQA.subset2179.tsv", 2179, 16 },
        { "triviaqa", "triviaqa/trivia-test.qa.csv", 11313, 0 },
        { "triviaqa", "triviaqa/trivia-dev.qa.csv", 8837, 0 },
        { "triviaqa", "triviaqa/fid_triviaqa_dev8837.jsonl", 8837, 0 },
        { "triviaqa", "triviaqa/triviaqa_sm_sub.jsonl", 3000, 0 },
        { "triviaqa", "triviaqa/ctrla_triviaqa_test1000.jsonl", 1000, 0 },
        { "triviaqa", "triviaqa/triviaqa_sample.json", 1, 0 },
        { "nq_open", "nq_open/NQ-open.dev.jsonl", 3610, 0 },
        { "nq_open", "nq_open/NQ-open.efficientqa.dev.1.1.jsonl", 1800, 0 },
        { "nq_open", "nq_open/NQ-open.efficientqa.test.1.1.jsonl", 1769, 0 },
        { "nq_open", "nq_open/nq-dev.qa.csv", 8757, 0 },
        { "nq_open", "nq_open/nq-test.qa.csv", 3610, 0 },
        { "cmmlu", "cmmlu", 11582, 67 },
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        grq_suite *const suite = open_data(files[i].suite, files[i].name);
        size_t n_groups;
        grq_suite_groups(suite, &n_groups);
        if (grq_suite_count(suite) != files[i].n_rows || n_groups != files[i].n_groups)
            fail_msg("%s: %zu rows in %zu groups instead of %zu in %zu", files[i].name, grq_suite_count(suite),
                     n_groups, files[i].n_rows, files[i].n_groups);
        grq_suite_close(suite);
    }
}

static void cmmlu_is_whole(void **state)
{
    (void)state;
    grq_suite *const suite = open_data("cmmlu", "cmmlu"), *dev = NULL;
    size_t n_groups, least = SIZE_MAX, most = 0;
    const grq_suite_group *groups = grq_suite_groups(suite, &n_groups);
    for (size_t g = 0; g < n_groups; g++) {
        if (!grq_cmmlu_subject_name(groups[g].name)) fail_msg("%s has no name", groups[g].name);
        least = groups[g].n < least ? groups[g].n : least;
        most = groups[g].n > most ? groups[g].n : most;
    }
    assert_int_equal(least, 105);
    assert_int_equal(most, 411);
    assert_ok(grq_suite_open_dev(test_data("cmmlu"), &dev, &err), &err);
    assert_int_equal(grq_suite_count(dev), 335);
    groups = grq_suite_groups(dev, &n_groups);
    for (size_t g = 0; g < n_groups; g++) assert_int_equal(groups[g].n, 5);
    grq_suite_close(dev);
    grq_suite_close(suite);
}

static void canonical_answers_are_fid_s_targets(void **state)
{
    (void)state;
    grq_suite *const suite = open_data("triviaqa", "triviaqa/fid_triviaqa_dev8837.jsonl");
    size_t n_accepted = 0;
    for (size_t i = 0; i < grq_suite_count(suite); i++) {
        const grq_suite_item *const item = &grq_suite_items(suite)[i];
        bool found = false;
        for (size_t k = 0; k < item->n_accepted; k++) found = found || !strcmp(item->accepted[k], item->shown);
        n_accepted += found;
    }
    assert_string_equal(grq_suite_items(suite)[0].shown, "Helicopter"); /* its first alias is a picture */
    assert_int_equal(n_accepted, 8252);
    grq_suite_close(suite);
}

/* Of every item's prompt: its demonstrations keep the suite's constraint, and it says so itself. */
static void check_prompts(const char *protocol_name, const grq_suite *suite, const grq_suite *pool, uint32_t n_shots,
                          void (*check)(const grq_suite_item *item, const grq_prompt_text *prompt))
{
    const grq_prompt_protocol *protocol = NULL;
    grq_prompter *prompter = NULL;
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(protocol_name, "/"), protocol_name);
    assert_ok(grq_prompt_protocol_find(name, strchr(protocol_name, '/') + 1, &protocol, &err), &err);
    assert_ok(grq_prompter_new(protocol, pool, n_shots, 1, &prompter, &err), &err);
    for (size_t i = 0; i < grq_suite_count(suite); i++) {
        grq_prompt_text prompt;
        assert_ok(grq_prompt_text_make(prompter, &grq_suite_items(suite)[i], &prompt, &err), &err);
        assert_int_equal(prompt.n_shots, n_shots);
        check(&grq_suite_items(suite)[i], &prompt);
        grq_prompt_text_free(&prompt);
    }
    grq_prompter_free(prompter);
}

static void check_popqa(const grq_suite_item *item, const grq_prompt_text *prompt)
{
    for (uint32_t k = 0; k < prompt->n_shots; k++) {
        if (!strcmp(prompt->shots[k]->group, item->group)) fail_msg("%s: a shot of its own relation", item->id);
        for (uint32_t j = 0; j < k; j++)
            if (!strcmp(prompt->shots[k]->group, prompt->shots[j]->group)) fail_msg("%s: a relation twice", item->id);
    }
}

/* In shots no comma or full stop is a word of its own, but behind "A:": one answer of the pool begins with a comma.
 * What is asked stays as it is. */
static void check_nq(const grq_suite_item *item, const grq_prompt_text *prompt)
{
    const char *asked = prompt->text;
    for (const char *at; (at = strstr(asked, "\nQ: "));) asked = at + 1;
    for (const char *at = prompt->text + 2; at < asked; at++)
        if (at[0] == ' ' && strchr(",.", at[1]) && (at[2] == ' ' || at[2] == '\n') && at[-1] != ':')
            fail_msg("%s: %s", item->id, prompt->text);
    if (strncmp(asked + 3, item->question, strlen(item->question))) fail_msg("%s: %s", item->id, asked);
}

static void check_foundry(const grq_suite_item *item, const grq_prompt_text *prompt)
{
    if (strstr(prompt->text, "Question: Question:") || strstr(prompt->text, "Answer:\nAnswer:"))
        fail_msg("%s: %s", item->id, prompt->text);
}

static void check_cmmlu(const grq_suite_item *item, const grq_prompt_text *prompt)
{
    for (uint32_t k = 0; k < prompt->n_shots; k++) {
        char id[128];
        snprintf(id, sizeof id, "%s/%u", item->group, k);
        assert_string_equal(prompt->shots[k]->id, id);
    }
}

static void demonstrations_keep_to_their_rule(void **state)
{
    (void)state;
    grq_suite *suite = open_data("popqa", "popqa/popQA.reconstructed.tsv"), *pool = NULL;
    check_prompts("popqa/popqa_paper", suite, suite, 15, check_popqa);
    grq_suite_close(suite);
    suite = open_data("nq_open", "nq_open/NQ-open.dev.jsonl");
    pool = open_data("nq_open", "nq_open/nq-dev.qa.csv"); /* "581 ( second edition )", "July 5 , 2018" */
    check_prompts("nq_open/nq_open_plain", suite, pool, 5, check_nq);
    grq_suite_close(suite);
    grq_suite_close(pool);
    suite = open_data("triviaqa", "triviaqa/triviaqa_sm_sub.jsonl");
    pool = open_data("triviaqa", "triviaqa/fid_triviaqa_dev8837.jsonl");
    check_prompts("triviaqa/triviaqa_llm_foundry", suite, pool, 3, check_foundry);
    grq_suite_close(suite);
    grq_suite_close(pool);
    suite = open_data("cmmlu", "cmmlu");
    assert_ok(grq_suite_open_dev(test_data("cmmlu"), &pool, &err), &err);
    check_prompts("cmmlu/cmmlu_lm_eval", suite, pool, 5, check_cmmlu);
    grq_suite_close(suite);
    grq_suite_close(pool);
}

int main(void)
{
    if (!test_data("popqa/popQA.reconstructed.tsv"))
        test_skip("popqa/popQA.reconstructed.tsv is neither in $GATERQ_DATA nor in ../shared/datasets: the suites' "
                  "real files "
                  "are not read");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_has_its_rows),
        cmocka_unit_test(cmmlu_is_whole),
        cmocka_unit_test(canonical_answers_are_fid_s_targets),
        cmocka_unit_test(demonstrations_keep_to_their_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
