/* Matching rules beyond the published cases: cuts, word boundaries, F1, choices, odd bytes. */
#include "support.h"

#include "gaterq/match.h"

static double score_with(const char *rule_name, const char *cut_name, const char *output, const char *answer)
{
    const grq_match_rule *rule;
    const grq_match_cut *cut = NULL;
    grq_error err;
    double score = -1;
    assert_ok(grq_match_rule_find(rule_name, &rule, &err), &err);
    if (cut_name) assert_ok(grq_match_cut_find(cut_name, &cut, &err), &err);
    assert_ok(grq_match_score(rule, cut, output, &answer, 1, &score, &err), &err);
    return score;
}

static void cuts_keep_what_they_say(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        { "whole", " a\nb. c", " a\nb. c" },
        { "none", " a\nb", " a\nb" },
        { "first_line", " a b \nc", "a b" },
        { "first_line", "\na", "" },
        { "first_line", "", "" },
        { "popqa_first_line", " a \nb", " a " },
        { "popqa_first_line", "\n\na\nb", "a" },
        { "popqa_first_line", "\n\n", "" },
        { "first_nonempty_line", " \n\t\n a \nb", "a" },
        { "first_nonempty_line", " \n\n", "" },
        { "lm_eval_until", " a b, c", "a b" },
        { "lm_eval_until", "\u00A0a\u3000.", "a" },
        { "blank_line", "a\nb\n\nc", "a\nb" },
        { "question_or_line", "a Q: b", "a " },
        { "question_or_line", "a\nQ: b", "a" },
        { "llama", " St. Louis. \nx", "St. Louis" },
        { "llama", "a..", "a." },
        { "llama", "\u00E9,", "\u00E9" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const grq_match_cut *cut;
        grq_error err;
        const char *text = cases[i][1];
        size_t n = strlen(text);
        assert_ok(grq_match_cut_find(cases[i][0], &cut, &err), &err);
        cut->cut(&text, &n);
        if (n != strlen(cases[i][2]) || memcmp(text, cases[i][2], n) != 0)
            fail_msg("%s of \"%s\": \"%.*s\"", cases[i][0], cases[i][1], (int)n, text);
    }
}

static void rules_score_as_described(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *cut, *output, *answer;
        double score;
    } cases[] = {
        { "squad_f1", NULL, "the big red dog", "a red dog", 2 * (2.0 / 3) * 1 / (2.0 / 3 + 1) },
        { "squad_f1", NULL, "red red dog", "red dog dog", 2.0 / 3 }, /* a bag: each word as often as it is there */
        { "squad_f1", NULL, "A", "A+", 0 },                          /* no common word, though both are empty */
        { "helm_f1", NULL, "red red dog", "red dog dog", 1 },        /* sets */
        { "flashrag_f1", NULL, "yes it is", "yes", 0 },
        { "flashrag_f1", NULL, "Yes.", "yes", 1 },
        { "squad_f1", NULL, "yes it is", "yes", 0.5 },
        { "triviaqa_official_f1", NULL, "Spider-Man", "spider", 2.0 / 3 },
        { "helm_exact", NULL, " Paris ", "Paris", 1 },
        { "helm_exact", NULL, "", "", 0 }, /* an empty output is wrong whatever the answer */
        { "helm_quasi_prefix", NULL, "", "A+", 0 },
        { "helm_quasi_prefix", NULL, "the Paris metro", "Paris", 1 },
        { "lm_eval_nq_open_stops", NULL, " 14 December, 1972", "14 December 1972", 0 },
        { "lm_eval_nq_open_stops", "first_line", " 14 December, 1972", "14 December 1972", 1 },
        { "llama_em", NULL, "St. Louis.\nmore", "st louis", 1 },
        { "unitxt_accuracy", NULL, "\n PARIS\nmore", "Paris", 1 },
        { "olmo_first_line", NULL, "x\nParis", "Paris", 0 },
        { "olmo_contains", NULL, "x\nParis", "Paris", 1 },
        { "selfrag_match", NULL, "", "", 0 }, /* no answer at all */
        { "popqa_contains", NULL, "x", "", 0 },
        { "opencompass_general", NULL, "It is PARIS, surely", "paris", 1 },
        { "opencompass_general", NULL, "x", "\U0001F3C0", 0 },
        { "opencompass_general_literal", NULL, "x", "\U0001F3C0", 1 },
        { "opencompass_nq", NULL, "\n\nthe answer is the answer is rome", "Rome", 1 },
        /* articles are words of Unicode: not inside one, also where it is not ASCII */
        { "squad_em", NULL, "\u00E9a", "\u00E9", 0 },
        { "squad_em", NULL, "\u5317a", "\u5317", 0 },
        { "squad_em", NULL, "\u00ABa\u00BB x", "\u00AB \u00BB x", 1 },
        { "lm_eval_nq_open_em", NULL, "a the a x", "x", 1 },
        { "lm_eval_nq_open_em", NULL, "\u00E9the x", "\u00E9x", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const double got = score_with(cases[i].rule, cases[i].cut, cases[i].output, cases[i].answer);
        if (fabs(got - cases[i].score) > 1e-15)
            fail_msg("%s, \"%s\" against \"%s\": %a, expected %a", cases[i].rule, cases[i].output, cases[i].answer, got,
                     cases[i].score);
    }
}

/* Extensions are dropped whatever their place in the list. */
static void lighteval_drops_extensions(void **state)
{
    (void)state;
    const char *const accepted[] = { "New York City", "NYC", "New York" };
    const grq_match_rule *rule;
    grq_error err;
    bool correct;
    assert_ok(grq_match_rule_find("lighteval_triviaqa_em", &rule, &err), &err);
    assert_ok(grq_match(rule, "new york city", accepted, 3, &correct, &err), &err);
    assert_false(correct);
    assert_ok(grq_match(rule, "new york", accepted, 3, &correct, &err), &err);
    assert_true(correct);
}

static const char *choice_of(const char *text)
{
    static char letter[8];
    const grq_match_rule *rule;
    grq_error err;
    char *compared;
    assert_ok(grq_match_rule_find("cmmlu_extract_choice", &rule, &err), &err);
    assert_ok(grq_match_compared(rule, NULL, text, &compared, &err), &err);
    snprintf(letter, sizeof letter, "%s", compared);
    free(compared);
    return letter;
}

/* One case for each of CMMLU's patterns, and for their order. */
static void choices_follow_their_patterns(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "", "" },
        { "本题答案选项是：C", "C" },
        { "答案是选项 D", "D" },
        { "应选择：B", "B" },
        { "我看 C 选项是正确", "C" },
        { "正确的选项为 D", "D" },
        { "答案应该是B", "B" },
        { "选项 B 是正确", "B" },
        { "选择答案 C", "C" },
        { "答：D", "D" },
        { "可见B项是符合题意", "B" },
        { "答案选项：C", "C" },
        { "答案选项为第三个，即C而非D", "C" },
        { "答案为下面\n的C和D", "" }, /* a pattern does not cross a line */
        { "因为A不对，B不对，D当选，C", "D" },
        { "关于A\n则B正确，C", "B" },
        { "不是A，就是：B", "B" },
        { "不是A和B", "" },
        { "x\n是A和B", "A" }, /* a line break is a character that is not 不 */
        { "可能C吧", "C" },
        { "可能C或C", "" },
        { "Ｂ", "" },
        { "答案是C，故选D", "C" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (strcmp(choice_of(cases[i][0]), cases[i][1]) != 0)
            fail_msg("\"%s\": \"%s\", expected \"%s\"", cases[i][0], choice_of(cases[i][0]), cases[i][1]);
}

static void broken_bytes_are_refused_where_they_matter(void **state)
{
    (void)state;
    const char *const accepted[] = { "x" }, *const broken[] = { "\xFFx" };
    const grq_match_rule *rule;
    grq_error err;
    double score;
    char *text;
    assert_ok(grq_match_rule_find("squad_em", &rule, &err), &err);
    assert_refused(grq_match_score(rule, NULL, "\xFFx", accepted, 1, &score, &err), GRQ_E_DATA, &err,
                   "the output is not valid UTF-8");
    assert_refused(grq_match_score(rule, NULL, "x", broken, 1, &score, &err), GRQ_E_DATA, &err, "an accepted answer");
    assert_refused(grq_normalize("squad_v1", "\xC3", &text, &err), GRQ_E_DATA, &err, "not valid UTF-8");
    assert_refused(grq_normalize("squad_v2", "x", &text, &err), GRQ_E_USAGE, &err, "there are: squad_v1, ");
    assert_true(score_with("popqa_contains", NULL, "\xFFx", "x") == 1); /* bytes, as they are */
    assert_ok(grq_match_rule_find("loglikelihood", &rule, &err), &err);
    assert_refused(grq_match_score(rule, NULL, "x", accepted, 1, &score, &err), GRQ_E_USAGE, &err, "not outputs");
}

/* Every rule and cut is found by its name, once; another name's rule is one. */
static void names_are_unique(void **state)
{
    (void)state;
    grq_error err;
    for (size_t i = 0; grq_match_rule_at(i); i++) {
        const grq_match_rule *found, *const rule = grq_match_rule_at(i);
        const grq_match_cut *cut;
        assert_ok(grq_match_rule_find(rule->name, &found, &err), &err);
        assert_ptr_equal(found, rule);
        assert_null(grq_match_rule_itself(rule)->same_as);
        assert_true((grq_match_rule_itself(rule) == rule) == (rule->same_as == NULL));
        if (rule->cut) assert_ok(grq_match_cut_find(rule->cut, &cut, &err), &err);
    }
    for (size_t i = 0; grq_match_cut_at(i); i++) {
        const grq_match_cut *found;
        assert_ok(grq_match_cut_find(grq_match_cut_at(i)->name, &found, &err), &err);
        assert_ptr_equal(found, grq_match_cut_at(i));
    }
}

static void refusals_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *output;
        bool refusal;
    } cases[] = {
        { "I do not know the answer to this question.", true },
        { " \n I don\u2019t know", true },
        { "Unknown.", true },
        { "Unknown Pleasures", false },
        { "I do not knowingly", false },
        { "As an AI language model, I", true },
        { "抱歉，我不知道。", true },
        { "Paris", false },
        { "", false },
        { "The Sorry Man", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool refusal;
        grq_error err;
        assert_ok(grq_match_is_refusal(cases[i].output, &refusal, &err), &err);
        if (refusal != cases[i].refusal) fail_msg("\"%s\"", cases[i].output);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_keep_what_they_say),
        cmocka_unit_test(rules_score_as_described),
        cmocka_unit_test(lighteval_drops_extensions),
        cmocka_unit_test(choices_follow_their_patterns),
        cmocka_unit_test(broken_bytes_are_refused_where_they_matter),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(refusals_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
