/* Normalisations, match decisions and extractions, case by case as published; and the exact rule. */
#include "support.h"

#include "gaterq/match.h"
#include "qa/text_case.h"

static double score_of(const char *rule_name, const char *output, const char *const *accepted, size_t n)
{
    const grq_match_rule *rule;
    grq_error err;
    double score = -1;
    assert_ok(grq_match_rule_find(rule_name, &rule, &err), &err);
    assert_ok(grq_match_score(rule, NULL, output, accepted, n, &score, &err), &err);
    return score;
}

static bool matches(const char *rule_name, const char *output, const char *const *accepted, size_t n)
{
    return score_of(rule_name, output, accepted, n) == 1;
}

static void normalisations_are_as_published(void **state)
{
    (void)state;
    grq_json *golden = test_golden("answer_matching.json");
    grq_json_node *cases = test_walk(grq_json_root(golden), "normalisation");
    size_t n_checked = 0;
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *c = grq_json_at(cases, i), *expected = test_walk(c, "expected");
        const char *const input = test_string(test_walk(c, "input"));
        for (size_t k = 0; k < grq_json_count(expected); k++, n_checked++) {
            const char *const name = grq_json_key_at(expected, k), *want = test_string(grq_json_at(expected, k));
            char *got;
            grq_error err;
            assert_ok(grq_normalize(name, input, &got, &err), &err);
            if (strcmp(got, want))
                fail_msg("case %s, %s: \"%s\" instead of \"%s\"", test_string(test_walk(c, "id")), name, got, want);
            free(got);
        }
    }
    assert_int_equal(n_checked, 94 * 6);
    grq_json_close(golden);
}

/* Whole outputs, under the rules' names; OpenCompass as published, where an empty gold answer is in everything. */
static void decisions_are_as_published(void **state)
{
    (void)state;
    grq_json *golden = test_golden("answer_matching.json");
    grq_json_node *cases = test_walk(grq_json_root(golden), "matching");
    size_t n_ours_differ = 0;
    assert_int_equal(grq_json_count(cases), 102);
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *c = grq_json_at(cases, i);
        const char *const rule = test_string(test_walk(c, "rule"));
        const char *const output = test_string(test_walk(c, "prediction"));
        const char *accepted[64];
        char name[64];
        grq_json_node *answers = test_walk(c, "answers");
        const size_t n = grq_json_count(answers);
        bool expected;
        grq_error err;
        assert_true(n <= ARRAY_LEN(accepted));
        for (size_t k = 0; k < n; k++) accepted[k] = test_string(grq_json_at(answers, k));
        assert_ok(grq_json_bool(c, "expected", &expected, &err), &err);
        const bool opencompass = !strncmp(rule, "opencompass_", 12);
        snprintf(name, sizeof name, "%s%s", rule, opencompass ? "_literal" : "");
        if (matches(name, output, accepted, n) != expected)
            fail_msg("case %s: expected %s", test_string(test_walk(c, "id")), expected ? "right" : "wrong");
        if (matches(rule, output, accepted, n) == expected) continue;
        assert_true(opencompass && expected); /* ours is the stricter one */
        n_ours_differ++;
    }
    assert_int_equal(n_ours_differ, 3); /* an emoji, "---", and initials cut at their full stop */
    grq_json_close(golden);
}

static char *extracted(const char *rule, const char *input)
{
    static const char *const by_rule[][2] = { { "opencompass_triviaqa_prediction", "opencompass_triviaqa" },
                                              { "opencompass_first_capital", "opencompass_first_capital" },
                                              { "cmmlu_extract_choice", "cmmlu_extract_choice" } };
    grq_error err;
    for (size_t i = 0; i < ARRAY_LEN(by_rule); i++) {
        const grq_match_rule *found;
        char *compared;
        if (strcmp(rule, by_rule[i][0])) continue;
        assert_ok(grq_match_rule_find(by_rule[i][1], &found, &err), &err);
        assert_ok(grq_match_compared(found, NULL, input, &compared, &err), &err);
        return compared;
    }
    const grq_match_cut *cut;
    size_t n = strlen(input);
    assert_ok(grq_match_cut_find(rule, &cut, &err), &err);
    cut->cut(&input, &n);
    return strndup(input, n);
}

static void extractions_are_as_published(void **state)
{
    (void)state;
    grq_json *golden = test_golden("answer_matching.json");
    grq_json_node *cases = test_walk(grq_json_root(golden), "extraction");
    assert_int_equal(grq_json_count(cases), 40);
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *c = grq_json_at(cases, i), *expected = test_walk(c, "expected");
        const char *const want = grq_json_kind_of(expected) == GRQ_JSON_NULL ? "" : test_string(expected);
        char *const got = extracted(test_string(test_walk(c, "rule")), test_string(test_walk(c, "input")));
        if (strcmp(got, want))
            fail_msg("case %s: \"%s\" instead of \"%s\"", test_string(test_walk(c, "id")), got, want);
        free(got);
    }
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
    assert_refused(grq_match_rule_find("fuzzy", &rule, &err), GRQ_E_USAGE, &err, "there are: popqa_contains, exact, ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalisations_are_as_published),     cmocka_unit_test(decisions_are_as_published),
        cmocka_unit_test(extractions_are_as_published),        cmocka_unit_test(cases_of_letters_follow_python),
        cmocka_unit_test(forms_that_grow_or_shrink_are_found), cmocka_unit_test(exact_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
