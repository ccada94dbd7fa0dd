/* Published prompts, to the letter. Their items are taken out of the file's own prompts, written as the suites' files
 * are, and read back; demonstrations are in the file's order for some seed. */
#include "support.h"

#include "gaterq/prompts.h"

static grq_json *document;
static grq_error err;

static const char *golden(const char *id)
{
    grq_json_node *list = NULL;
    assert_ok(grq_json_array(grq_json_root(document), "prompts", &list, &err), &err);
    for (size_t i = 0; i < grq_json_count(list); i++) {
        grq_json_node *const c = grq_json_at(list, i);
        const char *found, *prompt;
        assert_ok(grq_json_string(c, "id", &found, &err), &err);
        if (strcmp(found, id)) continue;
        assert_ok(grq_json_string(c, "prompt", &prompt, &err), &err);
        return prompt;
    }
    fail_msg("the file has no prompt %s", id);
    return NULL;
}

/* Some seed gives this prompt: with as many shots as the pool has, seeds differ in their order alone. */
static void expect(const char *id, const char *protocol_name, const char *suite_name, const grq_suite *suite,
                   const grq_suite *pool, uint32_t n_shots)
{
    const grq_prompt_protocol *protocol = NULL;
    const char *const want = golden(id);
    assert_ok(grq_prompt_protocol_find(suite_name, protocol_name, &protocol, &err), &err);
    for (uint64_t seed = 0; seed < 200; seed++) {
        grq_prompter *prompter = NULL;
        grq_prompt_text prompt;
        assert_ok(grq_prompter_new(protocol, pool, n_shots, seed, &prompter, &err), &err);
        assert_ok(grq_prompt_text_make(prompter, &grq_suite_items(suite)[0], &prompt, &err), &err);
        const bool same = !strcmp(prompt.text, want);
        if (!same && seed == 199) fail_msg("%s:\n%s\n-- golden --\n%s", id, prompt.text, want);
        assert_int_equal(prompt.n_shots, n_shots);
        grq_prompt_text_free(&prompt);
        grq_prompter_free(prompter);
        if (same) return;
    }
}

static grq_suite *open_suite(const char *name, const char *file, const char *text)
{
    grq_suite *suite = NULL;
    assert_ok(grq_suite_open(name, test_write_text(file, text), &suite, &err), &err);
    return suite;
}

/* ---- CMMLU ---- */

/* "Q\nA. a\nB. b\nC. c\nD. d\n答案： X" as a record; returns what follows. */
static char *take_block(char *block, const char *index, FILE *csv)
{
    static const char *const before[] = { "", "A. ", "B. ", "C. ", "D. ", "答案：" };
    char *rest = block, *const next = strstr(block, "\n\n");
    if (next) *next = '\0';
    fputs(index, csv);
    for (int i = 0; i < 6; i++) {
        char *line = strsep(&rest, "\n");
        assert_non_null(line);
        assert_int_equal(strncmp(line, before[i], strlen(before[i])), 0);
        line += strlen(before[i]);
        fprintf(csv, ",\"%s\"", i < 5 ? line : *line ? line + 1 : "B"); /* the query's answer is in the file too */
    }
    fputs("\n", csv);
    return next ? next + 2 : NULL;
}

static void cmmlu(void **state)
{
    (void)state;
    char *const text = strdup(golden("cmmlu_lm_eval_5shot")), *at = strstr(text, "\n\n") + 2;
    char path[PATH_MAX + 64];
    for (int part = 0; part < 2; part++) {
        char index[16];
        snprintf(path, sizeof path, "%s/cmmlu/%s", test_folder(), part ? "test" : "dev");
        assert_ok(grq_make_directories(path, &err), &err);
        snprintf(path + strlen(path), sizeof path - strlen(path), "/agronomy.csv");
        FILE *const csv = fopen(path, "w");
        assert_non_null(csv);
        fputs(",Question,A,B,C,D,Answer\n", csv);
        for (int i = 0; i < (part ? 1 : 5); i++) {
            snprintf(index, sizeof index, "%d", i);
            at = take_block(at, index, csv);
        }
        fclose(csv);
    }
    assert_null(at);
    free(text);
    grq_suite *suite = NULL, *dev = NULL;
    assert_ok(grq_suite_open("cmmlu", test_path("cmmlu"), &suite, &err), &err);
    assert_ok(grq_suite_open_dev(test_path("cmmlu"), &dev, &err), &err);
    assert_string_equal(grq_suite_items(suite)[0].id, "agronomy/0");
    expect("cmmlu_lm_eval_0shot", "cmmlu_lm_eval", "cmmlu", suite, NULL, 0);
    expect("cmmlu_lm_eval_5shot", "cmmlu_lm_eval", "cmmlu", suite, dev, 5);
    expect("cmmlu_original_0shot", "cmmlu_original", "cmmlu", suite, NULL, 0);
    expect("cmmlu_original_5shot", "cmmlu_original", "cmmlu", suite, dev, 5);

    /* OpenCompass scores the prompt with each letter in it. */
    grq_json_node *list = NULL, *labels = NULL;
    grq_prompter *prompter = NULL;
    const grq_prompt_protocol *ppl = NULL;
    grq_prompt_text prompt;
    assert_ok(grq_prompt_protocol_find("cmmlu", "cmmlu_opencompass_ppl", &ppl, &err), &err);
    assert_ok(grq_prompter_new(ppl, dev, 5, 1, &prompter, &err), &err);
    assert_ok(grq_prompt_text_make(prompter, &grq_suite_items(suite)[0], &prompt, &err), &err);
    assert_ok(grq_json_array(grq_json_root(document), "prompts", &list, &err), &err);
    for (size_t i = 0; i < grq_json_count(list); i++) {
        grq_json_node *const found = grq_json_find(grq_json_at(list, i), "prompts_by_label");
        if (found) labels = found;
    }
    assert_non_null(labels);
    for (int k = 0; k < 4; k++) {
        const char letter[] = { (char)('A' + k), '\0' }, *want;
        assert_ok(grq_json_string(labels, letter, &want, &err), &err);
        assert_int_equal(strncmp(want, prompt.text, strlen(prompt.text)), 0);
        assert_string_equal(want + strlen(prompt.text), letter);
    }
    grq_prompt_text_free(&prompt);
    grq_prompter_free(prompter);
    grq_suite_close(suite);
    grq_suite_close(dev);
}

/* ---- the others ---- */

static void triviaqa(void **state)
{
    (void)state;
    grq_suite *const chipmunks =
        open_suite("triviaqa", "a.jsonl",
                   "{\"question\": \"Who was the man behind The Chipmunks?\", \"answer\": {\"value\": "
                   "\"David Seville\", \"aliases\": [\"Ross Bagdasarian\"]}}\n");
    grq_suite *const helicopter = open_suite("triviaqa", "b.jsonl",
                                             "{\"question\": \"The VS-300 was a type of what?\", \"answer\": "
                                             "{\"value\": \"Helicopter\", \"aliases\": [\"🚁\"]}}\n");
    grq_suite *const sign = open_suite(
        "triviaqa", "c.jsonl", "{\"question\": \"What star sign is Jamie Lee Curtis?\", \"answer\": \"Scorpio\"}\n");
    expect("triviaqa_lm_eval_0shot", "triviaqa_lm_eval", "triviaqa", chipmunks, NULL, 0);
    expect("triviaqa_lm_eval_1shot", "triviaqa_lm_eval", "triviaqa", chipmunks, helicopter, 1);
    expect("triviaqa_llm_foundry_1shot", "triviaqa_llm_foundry", "triviaqa", sign, chipmunks, 1);
    expect("triviaqa_opencompass_0shot", "triviaqa_opencompass", "triviaqa", chipmunks, NULL, 0);
    grq_suite_close(chipmunks);
    grq_suite_close(helicopter);
    grq_suite_close(sign);
}

static void nq_open(void **state)
{
    (void)state;
    grq_suite *const moon =
        open_suite("nq_open", "d.jsonl",
                   "{\"question\": \"when was the last time anyone was on the moon\", \"answer\": [\"14 "
                   "December 1972 UTC\"]}\n");
    grq_suite *const shots =
        open_suite("nq_open", "e.jsonl",
                   "{\"question\": \"who sings does he love me with reba\", \"answer\": [\"Linda "
                   "Davis\"]}\n{\"question\": \"how many pages is invisible man by ralph ellison\", "
                   "\"answer\": [\"581 (second edition)\"]}\n");
    grq_suite *const chain =
        open_suite("nq_open", "f.jsonl",
                   "{\"question\": \"who is the largest supermarket chain in the uk\", \"answer\": "
                   "[\"Tesco\"]}\n");
    grq_suite *const edf =
        open_suite("nq_open", "g.jsonl",
                   "{\"question\": \"how many customers does edf have in the uk\", \"answer\": [\"5.7 "
                   "million\"]}\n");
    expect("nq_open_lm_eval_0shot", "nq_open_lm_eval", "nq_open", moon, NULL, 0);
    expect("nq_open_lm_eval_2shot", "nq_open_lm_eval", "nq_open", moon, shots, 2);
    expect("nq_opencompass_0shot", "nq_opencompass", "nq_open", moon, NULL, 0);
    expect("nq_helm_closedbook_1shot", "nq_helm_closedbook", "nq_open", chain, edf, 1);
    grq_suite_close(moon);
    grq_suite_close(shots);
    grq_suite_close(chain);
    grq_suite_close(edf);
}

static void popqa(void **state)
{
    (void)state;
    grq_suite *const suite = open_suite("popqa", "h.tsv",
                                        "id\tsubj\tprop\tobj\tsubj_id\tprop_id\tobj_id\ts_aliases\to_aliases\ts_uri\to_"
                                        "uri\ts_wiki_title\to_wiki_title\ts_pop\t"
                                        "o_pop\tquestion\tpossible_answers\n"
                                        "1\tGeorge Rankin\toccupation\tpolitician\t\t\t\t\t\t\t\t\t\t142\t\tWhat is "
                                        "George Rankin's occupation?\t\"[\"\"politician\"\"]\"\n"
                                        "2\tPilgrimage\tdirector\tJohn Ford\t\t\t\t\t\t\t\t\t\t9\t\tWho was the "
                                        "director of Pilgrimage?\t\"[\"\"John Ford\"\"]\"\n"
                                        "3\tUtah\tcapital\tSalt Lake City\t\t\t\t\t\t\t\t\t\t9\t\tWhat is the capital "
                                        "of Utah?\t\"[\"\"Salt Lake City\"\"]\"\n");
    expect("popqa_paper_0shot", "popqa_paper", "popqa", suite, NULL, 0);
    expect("popqa_paper_2shot", "popqa_paper", "popqa", suite, suite, 2);
    /* The popqa world asks the miniature the same. */
    grq_json *world = NULL;
    const char *asked, *at;
    char text[256];
    assert_ok(grq_json_open(GATERQ_SOURCE_DIR "/datasets/worlds/popqa.json", &world, &err), &err);
    assert_ok(grq_json_string(grq_json_root(world), "prompt", &asked, &err), &err);
    assert_non_null(at = strstr(asked, "{q}"));
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - asked), asked, grq_suite_items(suite)[0].question, at + 3);
    assert_string_equal(text, golden("popqa_paper_0shot"));
    grq_json_close(world);
    /* Three relations: two others, and no more. */
    const grq_prompt_protocol *protocol = NULL;
    grq_prompter *prompter = NULL;
    grq_prompt_text prompt;
    assert_ok(grq_prompt_protocol_find("popqa", NULL, &protocol, &err), &err);
    assert_ok(grq_prompter_new(protocol, suite, 3, 1, &prompter, &err), &err);
    assert_refused(grq_prompt_text_make(prompter, &grq_suite_items(suite)[0], &prompt, &err), GRQ_E_DATA, &err,
                   "item 1: 3 shots are asked for, but there are 2 other relations");
    grq_prompter_free(prompter);
    assert_refused(grq_prompter_new(protocol, suite, 16, 1, &prompter, &err), GRQ_E_USAGE, &err, "at most 15");
    assert_refused(grq_prompter_new(protocol, NULL, 2, 1, &prompter, &err), GRQ_E_USAGE, &err, "nothing to draw");
    assert_refused(grq_prompt_protocol_find("popqa", "nq_open_plain", &protocol, &err), GRQ_E_USAGE, &err,
                   "popqa_paper");
    assert_refused(grq_prompt_protocol_find("squad", NULL, &protocol, &err), GRQ_E_USAGE, &err, "popqa, triviaqa");
    grq_suite_close(suite);
}

int main(void)
{
    document = test_golden("eval_prompts.json");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cmmlu),
        cmocka_unit_test(triviaqa),
        cmocka_unit_test(nq_open),
        cmocka_unit_test(popqa),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    grq_json_close(document);
    return failed;
}
