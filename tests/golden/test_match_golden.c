/* PopQA's containment metric, case by case as published; and the exact rule. */
#include "support.h"

#include "gaterq/match.h"
#include "qa/text_case.h"

static bool matches(const char *rule_name, const char *output, const char *const *accepted, size_t n)
{
    const grq_match_rule *rule;
    grq_error err;
    bool correct = false;
    assert_ok(grq_match_rule_find(rule_name, &rule, &err), &err);
    assert_ok(rule->match(output, accepted, n, &correct, &err), &err);
    return correct;
}

static void popqa_cases_pass(void **state)
{
    (void)state;
    grq_json *golden = test_golden("answer_matching.json");
    grq_json_node *cases = test_walk(grq_json_root(golden), "matching");
    size_t n_cases = 0;
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *c = grq_json_at(cases, i);
        if (strcmp(test_string(test_walk(c, "rule")), "popqa_contains")) continue;
        const char *accepted[64];
        grq_json_node *answers = test_walk(c, "answers");
        const size_t n = grq_json_count(answers);
        bool expected;
        grq_error err;
        assert_true(n <= ARRAY_LEN(accepted));
        for (size_t k = 0; k < n; k++) accepted[k] = test_string(grq_json_at(answers, k));
        assert_ok(grq_json_bool(c, "expected", &expected, &err), &err);
        if (matches("popqa_contains", test_string(test_walk(c, "prediction")), accepted, n) != expected)
            fail_msg("case %s: expected %s", test_string(test_walk(c, "id")), expected ? "right" : "wrong");
        n_cases++;
    }
    printf("%zu published cases\n", n_cases);
    assert_true(n_cases >= 10);
    grq_json_close(golden);
}

/* The cut, through the metric: what the cut keeps is found, and with an empty cut nothing is. */
static void popqa_cuts_pass(void **state)
{
    (void)state;
    grq_json *golden = test_golden("answer_matching.json");
    grq_json_node *cases = test_walk(grq_json_root(golden), "extraction");
    size_t n_cases = 0;
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *c = grq_json_at(cases, i);
        if (strcmp(test_string(test_walk(c, "rule")), "popqa_paper_first_line")) continue;
        const char *const input = test_string(test_walk(c, "input")), *kept = test_string(test_walk(c, "expected"));
        const char *const beyond[] = { "Q", "x" }, *const any[] = { "politician" };
        if (*kept && (!matches("popqa_contains", input, &kept, 1) || matches("popqa_contains", input, beyond, 2)))
            fail_msg("case %s: the cut is not \"%s\"", test_string(test_walk(c, "id")), kept);
        if (!*kept && matches("popqa_contains", input, any, 1))
            fail_msg("case %s: the cut is not empty", test_string(test_walk(c, "id")));
        n_cases++;
    }
    assert_int_equal(n_cases, 5);
    grq_json_close(golden);
}

static void cases_of_letters_follow_python(void **state)
{
    (void)state;
    static const struct {
        const char *text, *lower, *capital;
    } cases[] = {
        { "New YORK city", "new york city", "New york city" },
        { "\xC4\xB0stanbul", "i\xCC\x87stanbul", "\xC4\xB0stanbul" }, /* capital I with dot */
        { "\xCE\x9F\xCE\x94\xCE\x9F\xCE\xA3", "\xCE\xBF\xCE\xB4\xCE\xBF\xCF\x82",
          "\xCE\x9F\xCE\xB4\xCE\xBF\xCF\x82" },                         /* final sigma */
        { "\xCE\xA3\xCE\x91", "\xCF\x83\xCE\xB1", "\xCE\xA3\xCE\xB1" }, /* sigma at the start */
        { "\xC3\x9F"
          "A",
          "\xC3\x9F"
          "a",
          "Ssa" },                     /* sharp s */
        { "Σ.", "σ.", "Σ." },          /* no letter before: not final */
        { "aΣ'b", "aσ'b", "Aσ'b" },    /* an apostrophe does not end a word */
        { "aΣ-b", "aς-b", "Aς-b" },    /* a hyphen does */
        { "aΣⅧ", "aσⅷ", "Aσⅷ" },       /* a Roman numeral is cased */
        { "ﬁN", "ﬁn", "Fin" },         /* ligature */
        { "ᾳΩ", "ᾳω", "ᾼω" },          /* title case of its own */
        { "ᾲ", "ᾲ", "\u1FBA\u0345" },  /* title case of two characters */
        { "ǆ", "ǆ", "ǅ" },             /* neither upper nor lower */
        { "\xFFZ", "\xFFz", "\xFFz" }, /* a broken byte passes */
        { "", "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *lower = grq_text_lower(cases[i].text), *capital = grq_text_capitalize(cases[i].text);
        assert_string_equal(lower, cases[i].lower);
        assert_string_equal(capital, cases[i].capital);
        free(lower);
        free(capital);
    }
}

/* Forms of another length than the alias: nothing is ruled out by its length. */
static void forms_that_grow_or_shrink_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *output, *alias;
    } cases[] = {
        { "k", "\u212A" }, /* Kelvin sign: three bytes become one */
        { "kk", "\u212A\u212A" },
        { "i\u0307x", "\u0130X" }, /* two bytes become three */
        { "\u2C66\u2C66\u2C66", "\u023E\u023E\u023E" },
        { "\u0399\u0308\u0301", "\u0390" }, /* title case: two bytes become six */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (!matches("popqa_contains", cases[i].output, &cases[i].alias, 1))
            fail_msg("\"%s\" is not found in \"%s\"", cases[i].alias, cases[i].output);
    const char *const longer = "\u212A\u212A\u212A";
    assert_false(matches("popqa_contains", "kk", &longer, 1));
}

static void exact_is_exact(void **state)
{
    (void)state;
    static const char *const accepted[] = { "F1 L2", "x" };
    assert_true(matches("exact", " F1 L2 \n", accepted, 2));
    assert_true(matches("exact", "x", accepted, 2));
    assert_false(matches("exact", "f1 l2", accepted, 2));
    assert_false(matches("exact", "F1 L2 .", accepted, 2));
    assert_false(matches("exact", "F1", accepted, 2));
    assert_false(matches("exact", "", accepted, 2));
    assert_false(matches("exact", "", NULL, 0));
    const grq_match_rule *rule;
    grq_error err;
    assert_refused(grq_match_rule_find("fuzzy", &rule, &err), GRQ_E_USAGE, &err, "popqa_contains or exact");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(popqa_cases_pass),
        cmocka_unit_test(popqa_cuts_pass),
        cmocka_unit_test(cases_of_letters_follow_python),
        cmocka_unit_test(forms_that_grow_or_shrink_are_found),
        cmocka_unit_test(exact_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
