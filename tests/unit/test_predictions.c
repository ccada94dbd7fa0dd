/* Predictions files: both layouts, and every way a file can be broken. */
#include "support.h"

#include "gaterq/predictions.h"
#include "gaterq/score.h"

static grq_predictions parse(const char *text)
{
    grq_predictions p;
    grq_error err;
    assert_ok(grq_predictions_parse("p.jsonl", text, strlen(text), &p, &err), &err);
    return p;
}

static void our_own_lines_are_read(void **state)
{
    (void)state;
    grq_predictions p = parse("{\"suite\":\"cmmlu\",\"id\":\"anatomy/3\",\"loglikelihoods\":[-1.5,null,-2,-1e3],"
                              "\"prompt_sha256\":\"ab\",\"run\":\"r1\",\"settings\":{\"shots\":5,\"greedy\":true}}\r\n"
                              "  \t\r\n\n"
                              "{\"id\":7,\"output\":\"a\\nb\",\"run\":\"r1\",\"correct\":true,\"more\":[{}],"
                              "\"settings\":{ \"shots\": 5, \"greedy\": true }}"); /* no line break at the end */
    assert_int_equal(p.n, 2);
    assert_string_equal(p.run, "r1");
    assert_string_equal(p.settings, "{\"shots\":5,\"greedy\":true}");
    const grq_prediction *const seven = grq_predictions_find(&p, "7"), *const choice =
                                                                           grq_predictions_find(&p, "anatomy/3");
    assert_string_equal(seven->output, "a\nb");
    assert_int_equal(seven->line, 4);
    assert_int_equal(seven->correct, 1);
    assert_null(seven->suite);
    assert_null(seven->loglikelihoods);
    assert_string_equal(choice->suite, "cmmlu");
    assert_string_equal(choice->prompt_sha256, "ab");
    assert_null(choice->output);
    assert_int_equal(choice->correct, -1);
    assert_int_equal(choice->n_loglikelihoods, 4);
    assert_true(choice->loglikelihoods[0] == -1.5 && isnan(choice->loglikelihoods[1]));
    assert_null(grq_predictions_find(&p, "8"));
    grq_predictions_close(&p);
}

static void samples_of_the_harness_are_read(void **state)
{
    (void)state;
    grq_predictions p = parse(
        "{\"doc_id\":3,\"doc\":{\"question\":\"q\",\"answer\":[\"x\"]},\"target\":\"x\",\"resps\":[[\" Paris.\"]],"
        "\"filtered_resps\":[\"Paris\"],\"filter\":\"none\",\"exact_match\":0.0}\n"
        "{\"doc_id\":4,\"doc\":{\"question_id\":\"tc_2\"},\"resps\":[[\"Rome\"]],\"filter\":\"none\"}\n"
        "{\"doc_id\":5,\"doc\":{\"id\":77},\"resps\":[[[\"-1.5\",\"False\"]],[[-0.5,true]],[[\"nan\",\"False\"]],"
        "[[\"-inf\",\"False\"]]]}\n");
    assert_string_equal(grq_predictions_find(&p, "3")->output, " Paris.");
    assert_string_equal(grq_predictions_find(&p, "tc_2")->output, "Rome");
    const grq_prediction *const choice = grq_predictions_find(&p, "77");
    assert_null(choice->output);
    assert_int_equal(choice->n_loglikelihoods, 4);
    assert_true(choice->loglikelihoods[0] == -1.5 && choice->loglikelihoods[1] == -0.5);
    assert_true(isnan(choice->loglikelihoods[2]) && choice->loglikelihoods[3] == -INFINITY);
    grq_predictions_close(&p);
}

/* The harness writes one file per CMMLU subject; a folder of them is one run. */
static void a_folder_is_one_run(void **state)
{
    (void)state;
    static const char line[] = "{\"doc_id\":0,\"doc\":{\"Question\":\"?\",\"A\":\"\",\"B\":\"\",\"C\":\"\",\"D\":\"\"},"
                               "\"resps\":[[\"B\"]]}\n";
    grq_predictions p;
    grq_error err;
    assert_ok(grq_make_directories(test_path("samples"), &err), &err);
    test_write("samples/samples_cmmlu_anatomy_2024-07-01T10-00-00.123.jsonl", line, strlen(line));
    test_write("samples/samples_cmmlu_default_high_school_physics_2024-07-01T10.jsonl", line, strlen(line));
    test_write("samples/notes.txt", "no", 2);
    assert_ok(grq_predictions_open(test_path("samples"), &p, &err), &err);
    assert_int_equal(p.n, 2);
    assert_non_null(grq_predictions_find(&p, "anatomy/0"));
    assert_non_null(grq_predictions_find(&p, "high_school_physics/0"));
    grq_predictions_close(&p);
    test_write("samples/samples_cmmlu_anatomy_2025-01-01.jsonl", line, strlen(line));
    assert_refused(grq_predictions_open(test_path("samples"), &p, &err), GRQ_E_DATA, &err,
                   "1 repeated ids: anatomy/0 (in two files)");
    const char *const nameless = test_write("lines.jsonl", line, strlen(line));
    assert_refused(grq_predictions_open(nameless, &p, &err), GRQ_E_DATA, &err, "must hold the subject");
    assert_ok(grq_make_directories(test_path("empty"), &err), &err);
    assert_refused(grq_predictions_open(test_path("empty"), &p, &err), GRQ_E_DATA, &err, "holds no *.jsonl");
    assert_refused(grq_predictions_open(test_path("absent"), &p, &err), GRQ_E_IO, &err, "absent");
}

static void broken_lines_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        size_t n; /* 0: up to the NUL */
    } cases[] = {
        { "", "there is no prediction", 0 },
        { "\n \r\n", "there is no prediction", 0 },
        { "{\"id\":1,\"output\":\"\xFF\"}", "p.jsonl: line 1:1:19: not UTF-8", 0 },
        { "{\"id\":1,\"output\":\"\xED\xA0\x80\"}", "not UTF-8", 0 },
        { "{\"id\":1,\"output\":\"\\ud800\"}", "half of a surrogate pair", 0 },
        { "{\"id\":1,\"output\":\"a\0b\"}", "NUL", sizeof "{\"id\":1,\"output\":\"a\0b\"}" - 1 },
        { "{\"id\":1,\"output\":\"\\u0000\"}", "\\u0000 is not allowed", 0 },
        { "\xEF\xBB\xBF{\"id\":1}", "byte order mark", 0 },
        { "{\"id\":1}\r{\"id\":2}", "text after the end", 0 },
        { "{\"id\":1} x", "text after the end", 0 },
        { "{\"id\":1}{\"id\":2}", "text after the end", 0 },
        { "{\"id\":1}\n{\"id\":2,\"id\":3}", "line 2: id: appears twice", 0 },
        { "{\"id\":1,\"output\":\"", "ends too early", 0 },
        { "[1]", "not an object", 0 },
        { "{\"output\":\"x\"}", "there is no \"id\"", 0 },
        { "{\"id\":1.5}", "id: must be a whole number", 0 },
        { "{\"id\":null}", "id: must be a whole number", 0 },
        { "{\"id\":9007199254740993}", "id", 0 },
        { "{\"id\":1,\"loglikelihoods\":[NaN]}", "not a JSON value", 0 },
        { "{\"id\":1,\"loglikelihoods\":[-1e999]}", "too large", 0 },
        { "{\"id\":1,\"loglikelihoods\":[\"-1\"]}", "must be a number", 0 },
        { "{\"id\":1,\"loglikelihoods\":3}", "loglikelihoods: must be an array", 0 },
        { "{\"id\":1,\"output\":null}", "output: must be a string", 0 },
        { "{\"id\":1,\"correct\":1}", "correct: must be true or false", 0 },
        { "{\"id\":1}\n{\"id\":2}\n{\"id\":\"1\"}", "1 repeated ids: 1 (lines 1 and 3)", 0 },
        { "{\"id\":1,\"run\":\"a\"}\n{\"id\":2,\"run\":\"b\"}", "\"run\" is b, and a before", 0 },
        { "{\"id\":1,\"run\":[1]}", "run: must be a whole number", 0 },
        { "{\"id\":1,\"settings\":{\"n\":1}}\n{\"id\":2,\"settings\":{\"n\":2}}", "lines of two runs", 0 },
        { "{\"doc_id\":1,\"resps\":[[\"a\",\"b\"]]}", "resps: neither one generated text", 0 },
        { "{\"doc_id\":1,\"resps\":[]}", "resps: neither", 0 },
        { "{\"doc_id\":1,\"resps\":[[[\"x\",true]]]}", "\"x\" is no log-likelihood", 0 },
        { "{\"doc_id\":1,\"resps\":[[[\"-1\",true]],[[]]]}", "choice 1 has no log-likelihood", 0 },
        { "{\"doc_id\":1,\"resps\":[[\"a\"]],\"filter\":\"x\"}\n{\"doc_id\":2,\"resps\":[[\"a\"]],\"filter\":\"y\"}",
          "lines of two runs", 0 },
        { "{\"doc_id\":1,\"resps\":[[\"a\"]]}\n{\"id\":2,\"output\":\"a\"}", "line 2: there is no \"doc_id\"", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        grq_predictions p;
        grq_error err;
        const size_t n = cases[i].n ? cases[i].n : strlen(cases[i].text);
        assert_refused(grq_predictions_parse("p.jsonl", cases[i].text, n, &p, &err), GRQ_E_DATA, &err,
                       cases[i].message);
        assert_null(p.items);
    }
}

/* A line of the largest size is read, one more byte is refused. */
static void long_lines_have_a_limit(void **state)
{
    (void)state;
    static const char start[] = "{\"id\":1,\"output\":\"", end[] = "\"}";
    const size_t n = GRQ_MAX_PREDICTION_LINE + 1;
    char *const text = malloc(n);
    grq_predictions p;
    grq_error err;
    assert_non_null(text);
    for (size_t extra = 0; extra < 2; extra++) {
        const size_t size = GRQ_MAX_PREDICTION_LINE + extra;
        memset(text, 'x', size);
        memcpy(text, start, sizeof start - 1);
        memcpy(text + size - 2, end, 2);
        if (extra) {
            assert_refused(grq_predictions_parse("p.jsonl", text, size, &p, &err), GRQ_E_DATA, &err,
                           "line 1 has 16777217 bytes; at most 16777216");
        } else {
            assert_ok(grq_predictions_parse("p.jsonl", text, size, &p, &err), &err);
            assert_int_equal(strlen(p.items[0].output), GRQ_MAX_PREDICTION_LINE - sizeof start - 1);
            grq_predictions_close(&p);
        }
    }
    free(text);
}

/* ---- against items ---- */

static void items_and_predictions_must_agree(void **state)
{
    (void)state;
    const char *const accepted[] = { "A" };
    const grq_suite_item items[] = { { .id = "1", .accepted = accepted, .n_accepted = 1 },
                                     { .id = "x", .accepted = accepted, .n_accepted = 1 },
                                     { .id = "x", .accepted = accepted, .n_accepted = 1 } };
    const grq_prediction *of_item[3];
    grq_error err;
    grq_predictions p = parse("{\"id\":\"x\",\"output\":\"A\"}\n{\"id\":1,\"suite\":\"popqa\"}");
    assert_ok(grq_score_align("popqa", "d", items, 2, &p, false, of_item, &err), &err);
    assert_ptr_equal(of_item[0], grq_predictions_find(&p, "1"));
    assert_refused(grq_score_align("cmmlu", "d", items, 2, &p, false, of_item, &err), GRQ_E_DATA, &err,
                   "line 2, item 1 is of suite popqa, not cmmlu");
    assert_refused(grq_score_align("popqa", "d", items, 1, &p, true, of_item, &err), GRQ_E_DATA, &err,
                   "1 predictions are of no item of d: x");
    assert_refused(grq_score_align("popqa", "d", items, 3, &p, true, of_item, &err), GRQ_E_DATA, &err,
                   "two items have one id");
    grq_predictions_close(&p);
    p = parse("{\"id\":\"x\",\"output\":\"A\"}");
    assert_refused(grq_score_align("popqa", "d", items, 2, &p, false, of_item, &err), GRQ_E_DATA, &err,
                   "1 of 2 items of d have no prediction");
    assert_ok(grq_score_align("popqa", "d", items, 2, &p, true, of_item, &err), &err);
    assert_null(of_item[0]);
    grq_predictions_close(&p);
}

/* Ties take the first choice and are counted; a NaN makes no choice, which is wrong. */
static void likelihoods_choose(void **state)
{
    (void)state;
    static const char *const letters[] = { "A", "B", "C", "D" };
    static const struct {
        const char *line;
        int right;
        unsigned tied, undefined;
    } cases[] = {
        { "[-1,-2,-3,-4]", 0, 0, 0 },    { "[-4,-3,-2,-1]", 3, 0, 0 },   { "[-4,-1,-2,-1]", 1, 1, 0 },
        { "[-1,-1,-1,-0.5]", 3, 0, 0 },  { "[-2,-2,-2,-2]", 0, 1, 0 },   { "[-1,null,-3,-4]", -1, 0, 1 },
        { "[null,-2,-3,-4]", -1, 0, 1 }, { "[-3,-2,-2.5,-2]", 1, 1, 0 },
    };
    const grq_match_rule *rule;
    grq_error err;
    assert_ok(grq_match_rule_find("loglikelihood", &rule, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int gold = 0; gold < 4; gold++) {
            char text[128];
            snprintf(text, sizeof text, "{\"id\":1,\"loglikelihoods\":%s}", cases[i].line);
            grq_predictions p = parse(text);
            const grq_suite_item item = { .id = "1", .accepted = &letters[gold], .n_accepted = 1 };
            const grq_prediction *const of_item = &p.items[0];
            grq_rule_score score;
            assert_ok(grq_score_by_rule(rule, NULL, NULL, &item, 1, &of_item, &score, &err), &err);
            if ((score.n_correct == 1) != (gold == cases[i].right) || score.n_tied != cases[i].tied ||
                score.n_undefined != cases[i].undefined || score.n_no_choice != cases[i].undefined)
                fail_msg("%s, %s right: %" PRIu64 " correct, %" PRIu64 " tied, %" PRIu64 " undefined", cases[i].line,
                         letters[gold], score.n_correct, score.n_tied, score.n_undefined);
            assert_null(score.cut);
            grq_rule_score_free(&score);
            grq_predictions_close(&p);
        }
    grq_predictions p = parse("{\"id\":1,\"loglikelihoods\":[-1,-2,-3]}");
    const grq_suite_item item = { .id = "1", .accepted = letters, .n_accepted = 1 };
    const grq_prediction *const of_item = &p.items[0];
    grq_rule_score score;
    assert_refused(grq_score_by_rule(rule, NULL, NULL, &item, 1, &of_item, &score, &err), GRQ_E_DATA, &err,
                   "line 1, item 1 has 3 \"loglikelihoods\"");
    grq_rule_score_free(&score);
    assert_ok(grq_match_rule_find("cmmlu_extract_choice", &rule, &err), &err);
    const grq_match_cut *const whole = grq_match_cut_at(0);
    assert_refused(grq_score_by_rule(rule, NULL, whole, &item, 1, &of_item, &score, &err), GRQ_E_DATA, &err,
                   "has no \"output\"");
    grq_rule_score_free(&score);
    grq_predictions_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own_lines_are_read),  cmocka_unit_test(samples_of_the_harness_are_read),
        cmocka_unit_test(a_folder_is_one_run),     cmocka_unit_test(broken_lines_are_refused),
        cmocka_unit_test(long_lines_have_a_limit), cmocka_unit_test(items_and_predictions_must_agree),
        cmocka_unit_test(likelihoods_choose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
