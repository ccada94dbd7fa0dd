/* Fact files: strict about what they refuse, exact about what they keep. */
#include "support.h"

#include "gaterq/facts.h"

#define HEADER "id\tsubj\tprop\tobj\ts_pop\tquestion\tpossible_answers\n"

static grq_facts *open_text(const char *text)
{
    grq_error err;
    grq_facts *facts = NULL;
    assert_ok(grq_facts_open(test_write_text("facts.tsv", text), &facts, &err), &err);
    return facts;
}

static void refuse(const char *text, const char *message)
{
    grq_error err;
    grq_facts *facts = NULL;
    assert_refused(grq_facts_open(test_write_text("facts.tsv", text), &facts, &err), GRQ_E_DATA, &err, message);
    assert_null(facts);
}

static void fields_are_read_as_written(void **state)
{
    (void)state;
    grq_facts *facts =
        open_text("\xEF\xBB\xBF" HEADER
                  "7\tAnn \"A\" Lee\tsport\ttennis\t12\tWhat?\t\"[\"\"tennis\"\", \"\"\\u00e9\"\", \"\"\"\"]\"\r\n"
                  "\n"
                  "8\t\"two\nlines\"\tfather\t\t\tWho?\t\"[\"\"Bob\"\"]\"");
    assert_int_equal(grq_facts_count(facts), 2);
    const grq_fact *a = grq_facts_at(facts, 0), *b = grq_facts_at(facts, 1);
    assert_string_equal(a->id, "7");
    assert_string_equal(a->subject, "Ann \"A\" Lee");
    assert_true(a->popularity == 12);
    assert_int_equal(a->n_accepted, 2); /* the empty string is left out */
    assert_string_equal(a->accepted[1], "\xC3\xA9");
    assert_string_equal(b->subject, "two\nlines");
    assert_string_equal(b->object, "");
    assert_true(isnan(b->popularity));
    grq_facts_close(facts);
}

static void blank_ids_become_row_numbers(void **state)
{
    (void)state;
    grq_facts *facts = open_text(HEADER "1\ta\tr\tx\t1\tq1\t[]\n\tb\tr\tx\t1\tq2\t[]\n\tc\tr\tx\t1\tq3\t[]\n");
    assert_string_equal(grq_facts_at(facts, 1)->id, "row1"); /* "1" is another row's official id */
    assert_string_equal(grq_facts_at(facts, 2)->id, "2");
    grq_facts_close(facts);
    facts = open_text(HEADER "  \ta\tr\tx\t1\tq1\t[]\n"); /* spaces are blank too */
    assert_string_equal(grq_facts_at(facts, 0)->id, "0");
    grq_facts_close(facts);
    refuse(HEADER "1\ta\tr\tx\t1\tq\t[]\n\tb\tr\tx\t1\tq\t[]\nrow1\tc\tr\tx\t1\tq\t[]\n",
           "row 1 has a blank id, and both that could stand in for it");
    refuse(HEADER "0\ta\tr\tx\t1\tq\t[]\n0\tb\tr\tx\t1\tq\t[]\n", "rows 0 and 1 have the same id \"0\"");
}

static void broken_files_are_refused_with_their_place(void **state)
{
    (void)state;
    refuse("", "empty");
    refuse(HEADER, "no row");
    refuse("id\tsubj\tobj\n1\ta\tx\n", "no column \"prop\", \"s_pop\", \"question\", \"possible_answers\"");
    refuse("id\tid\tsubj\tprop\tobj\ts_pop\tquestion\tpossible_answers\n", "twice");
    refuse(HEADER "1\ta\tr\tx\tmany\tq\t[]\n", "line 2, column s_pop");
    refuse(HEADER "1\ta\tr\tx\t-3\tq\t[]\n", "line 2, column s_pop");
    refuse(HEADER "1\ta\tr\tx\t0x10\tq\t[]\n", "\"0x10\" is not a page-view count");
    refuse(HEADER "1\ta\tr\tx\tinf\tq\t[]\n", "line 2, column s_pop");
    refuse(HEADER "1\ta\tr\tx\t1e999\tq\t[]\n", "line 2, column s_pop");
    refuse(HEADER "1\ta\tr\tx\t\"\t5\"\tq\t[]\n", "line 2, column s_pop");
    refuse(HEADER "1\ta\tr\tx\t1\tq\t[\n", "line 2, column possible_answers");
    refuse(HEADER "1\ta\tr\tx\t1\tq\t[1]\n", "possible_answers");
    refuse(HEADER "1\ta\tr\tx\t1\tq\t{}\n", "not a list");
    refuse(HEADER "1\ta\tr\tx\t1\t\t[]\n", "line 2 has no question");
    refuse(HEADER "1\ta\tr\n", "line 2 has 3 columns; the header has 7");
    refuse(HEADER "1\ta\tr\tx\t1\tq\t[]\textra\n", "line 2 has 8 columns; the header has 7");
    refuse(HEADER "1\ta\tr\tx\t1\tq\t[]\r", "line 2, column 7: a carriage return without a line feed");
    refuse(HEADER "1\ta\tr\tx\t1\tq\t\"[]\"\rjunk\n", "follows a closing quote");
    refuse(HEADER "1\ta\tr\tx\t1\tq\t\"[\"\"\\ud83c\"\"]\"\n", "half of a surrogate pair");
    refuse(HEADER "1\t\"a\tr\tx\t1\tq\t[]\n", "has no end");
    refuse(HEADER "1\t\"a\"b\tr\tx\t1\tq\t[]\n", "follows a closing quote");
    refuse(HEADER "1\ta\tr\tx\t1\tq\t[]\n1\tb\tr\tx\t1\tq\t[]\n", "same id \"1\"");
    refuse(HEADER "1\t\xC3\x28\tr\tx\t1\tq\t[]\n", "line 2 is not valid UTF-8");
    grq_error err;
    grq_facts *facts;
    static const char nul[] = HEADER "1\ta\0b\tr\tx\t1\tq\t[]\n";
    assert_refused(grq_facts_open(test_write("nul.tsv", nul, sizeof nul - 1), &facts, &err), GRQ_E_DATA, &err, "NUL");
    assert_refused(grq_facts_open(test_path("missing.tsv"), &facts, &err), GRQ_E_IO, &err, "missing.tsv");
}

static void every_cut_of_a_file_is_read_or_refused(void **state)
{
    (void)state;
    static const char text[] =
        HEADER "7\t\"A \"\"B\"\"\"\tsport\ttennis\t12\tWhat?\t\"[\"\"tennis\"\", \"\"x\"\"]\"\n8\tb\tr\tx\t1\tq\t[]\n";
    for (size_t n = 0; n < sizeof text; n++) {
        grq_error err;
        grq_facts *facts = NULL;
        const grq_status st = grq_facts_open(test_write("cut.tsv", text, n), &facts, &err);
        if (st != GRQ_OK) assert_non_null(strstr(err.message, "cut.tsv"));
        grq_facts_close(facts);
    }
}

static void written_facts_read_back_equal(void **state)
{
    (void)state;
    static const char *const accepted[] = { "tab\there", "quote \" and, comma", "line\nbreak", "caf\xC3\xA9" };
    const grq_fact facts[] = {
        { .id = "a",
          .subject = "S\t1",
          .relation = "r",
          .object = "\"o\"",
          .question = "q\n?",
          .popularity = 0.1,
          .n_accepted = 4,
          .accepted = accepted },
        { .id = "b",
          .subject = "",
          .relation = "r",
          .object = "",
          .question = "q",
          .popularity = NAN,
          .n_accepted = 0,
          .accepted = NULL },
    };
    grq_error err;
    grq_facts *back;
    const char *path = test_path("written.tsv");
    assert_ok(grq_facts_write(path, facts, 2, &err), &err);
    assert_ok(grq_facts_open(path, &back, &err), &err);
    assert_int_equal(grq_facts_count(back), 2);
    for (size_t i = 0; i < 2; i++) {
        const grq_fact *x = &facts[i], *y = grq_facts_at(back, i);
        assert_string_equal(x->id, y->id);
        assert_string_equal(x->subject, y->subject);
        assert_string_equal(x->object, y->object);
        assert_string_equal(x->question, y->question);
        assert_true(x->popularity == y->popularity || (isnan(x->popularity) && isnan(y->popularity)));
        assert_int_equal(x->n_accepted, y->n_accepted);
        for (size_t k = 0; k < x->n_accepted; k++) assert_string_equal(x->accepted[k], y->accepted[k]);
    }
    grq_facts_close(back);
}

static void surrogate_pairs_and_raw_text_are_the_same(void **state)
{
    (void)state;
    grq_facts *facts = open_text(HEADER "1\ta\tr\tx\t1\tq\t\"[\"\"\\ud83c\\udde8\\ud83c\\uddfd\"\",\"\"🇨🇽\"\"]\"\n");
    const grq_fact *fact = grq_facts_at(facts, 0);
    assert_int_equal(fact->n_accepted, 2);
    assert_string_equal(fact->accepted[0], "🇨🇽");
    assert_string_equal(fact->accepted[1], "🇨🇽");
    grq_facts_close(facts);
}

static void what_could_not_be_read_is_not_written(void **state)
{
    (void)state;
    static const char *const broken[] = { "\xFF" };
    const grq_fact sound = {
        .id = "1", .subject = "s", .relation = "r", .object = "o", .question = "q", .popularity = 1
    };
    const char *const path = test_path("refused.tsv");
    grq_error err;
    grq_fact fact = sound;
    fact.subject = "\xC3(";
    assert_refused(grq_facts_write(path, &fact, 1, &err), GRQ_E_DATA, &err, "fact 0, subj: not valid UTF-8");
    fact = sound;
    fact.accepted = broken;
    fact.n_accepted = 1;
    assert_refused(grq_facts_write(path, &fact, 1, &err), GRQ_E_DATA, &err, "answer 0: not valid UTF-8");
    fact = sound;
    fact.question = "";
    assert_refused(grq_facts_write(path, &fact, 1, &err), GRQ_E_DATA, &err, "no question");
    fact = sound;
    fact.popularity = -1;
    assert_refused(grq_facts_write(path, &fact, 1, &err), GRQ_E_DATA, &err, "s_pop");
    assert_int_equal(test_count_files("refused"), 0); /* nor anything left behind */
}

static void quartiles_keep_ties_together(void **state)
{
    (void)state;
    const double popularity[] = { 5, NAN, 1, 5, 5, 5, 2, 5, 9 };  /* known: 1 2 5 5 5 5 5 9 */
    static const uint32_t want[] = { 1, 4, 0, 1, 1, 1, 0, 1, 3 }; /* cut points 4.25, 5, 5 */
    uint32_t quartile[ARRAY_LEN(popularity)];
    double cuts[3];
    grq_error err;
    assert_ok(grq_popularity_quartiles(popularity, ARRAY_LEN(popularity), quartile, cuts, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) assert_int_equal(quartile[i], want[i]);
    assert_true(cuts[0] == 4.25 && cuts[1] == 5 && cuts[2] == 5);
    assert_ok(grq_popularity_quartiles(popularity + 1, 1, quartile, cuts, &err), &err);
    assert_int_equal(quartile[0], GRQ_N_QUARTILES);
    assert_true(isnan(cuts[0]) && isnan(cuts[2]));
    assert_ok(grq_popularity_quartiles(NULL, 0, NULL, NULL, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read_as_written),
        cmocka_unit_test(blank_ids_become_row_numbers),
        cmocka_unit_test(broken_files_are_refused_with_their_place),
        cmocka_unit_test(every_cut_of_a_file_is_read_or_refused),
        cmocka_unit_test(written_facts_read_back_equal),
        cmocka_unit_test(surrogate_pairs_and_raw_text_are_the_same),
        cmocka_unit_test(what_could_not_be_read_is_not_written),
        cmocka_unit_test(quartiles_keep_ties_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
