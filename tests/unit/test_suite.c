/* Suites' readers: what each format means, and what is refused with its place. The real files: test_suite_data.c. */
#include "support.h"

#include "gaterq/suite.h"

static grq_error err;

static grq_suite *open_text(const char *name, const char *text)
{
    grq_suite *suite = NULL;
    assert_ok(grq_suite_open(name, test_write_text("suite", text), &suite, &err), &err);
    return suite;
}

static void refuse(const char *name, const char *text, const char *message)
{
    grq_suite *suite = NULL;
    assert_refused(grq_suite_open(name, test_write_text("suite", text), &suite, &err), GRQ_E_DATA, &err, message);
    assert_null(suite);
}

static void expect_texts(const char *const *texts, size_t n, const char *joined)
{
    char found[512] = "";
    for (size_t i = 0; i < n; i++) snprintf(found + strlen(found), sizeof found - strlen(found), "%s|", texts[i]);
    assert_string_equal(found, joined);
}

static void expect_list(grq_answer_list list, const char *joined)
{
    expect_texts(list.texts, list.n, joined);
}

/* ---- TriviaQA ---- */

static void kinds_of_answers_stay_apart(void **state)
{
    (void)state;
    /* The official file, whatever the order of its keys, and the copies' spelling. */
    static const char *const texts[] = {
        "{\"Data\": [{\"QuestionId\": \"tc_1\", \"Question\": \"q\", \"Answer\": {\"NormalizedAliases\": [\"spider "
        "man\"], "
        "\"HumanAnswers\": [\"Spidey\"], \"Aliases\": [\"Spider-Man\", \"\", \"Peter\"], \"Value\": \"SPIDER\"}}]}",
        "{\"question_id\": \"tc_1\", \"question\": \"q\", \"answer\": {\"value\": \"SPIDER\", \"aliases\": "
        "[\"Spider-Man\", "
        "\"\", \"Peter\"], \"normalized_aliases\": [\"spider man\"], \"human_answers\": [\"Spidey\"]}}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        grq_suite *const suite = open_text("triviaqa", texts[i]);
        const grq_suite_item *const item = grq_suite_items(suite);
        assert_int_equal(grq_suite_count(suite), 1);
        assert_string_equal(item->id, "tc_1");
        assert_string_equal(item->shown, "SPIDER");
        expect_texts(item->accepted, item->n_accepted, "SPIDER|Spider-Man|Peter|spider man|Spidey|");
        expect_list(item->aliases, "Spider-Man|Peter|");
        expect_list(item->normalized, "spider man|");
        expect_list(item->human, "Spidey|");
        grq_suite_close(suite);
    }
    refuse("triviaqa", "{\"Data\": [{\"Question\": \"q\", \"Answer\": {\"Aliases\": [], \"aliases\": [\"x\"]}}]}",
           "the answer has aliases too");
}

static void lines_of_other_projects(void **state)
{
    (void)state;
    /* FiD: the canonical answer is shown, and accepted only where the list has it. */
    grq_suite *suite = open_text("triviaqa", "{\"question\": \"q\", \"answers\": [\"🚁\", \"Helicopters\"], \"target\": "
                                             "\"Helicopter\"}\n{\"question\": \"r\", \"answers\": [\"x\", \"y\"]}\r\n");
    const grq_suite_item *item = grq_suite_items(suite);
    assert_string_equal(item[0].id, "0");
    assert_string_equal(item[0].shown, "Helicopter");
    expect_texts(item[0].accepted, item[0].n_accepted, "🚁|Helicopters|");
    expect_list(item[0].aliases, "🚁|Helicopters|");
    assert_string_equal(item[1].shown, "x");
    assert_int_equal(item[1].aliases.n, 0);
    grq_suite_close(suite);
    /* llm-foundry: the question is wrapped in its prompt. */
    suite = open_text("triviaqa", "{\"context\": \"Question: Which?\\nAnswer:\", \"answer\": \"Onion\", \"aliases\": "
                                  "[\"Bulb\", \"Onion\"]}\n");
    item = grq_suite_items(suite);
    assert_string_equal(item->question, "Which?");
    assert_string_equal(item->shown, "Onion");
    expect_list(item->aliases, "Bulb|Onion|");
    grq_suite_close(suite);
    refuse("triviaqa", "{\"context\": \"Which?\", \"answer\": \"Onion\"}\n", "context: not \"Question: ");
    refuse("triviaqa", "{\"context\": \"Question: \\nAnswer:\", \"answer\": \"x\"}\n", "the question is blank");
    refuse("triviaqa", "{\"question\": \"q\", \"answers\": [\"x\"], \"target\": 5}\n", "target");
}

static void dpr_files(void **state)
{
    (void)state;
    grq_suite *const suite =
        open_text("triviaqa", "\"\"\"Who sang \"\"\"\"Hey\"\"\"\" ?\"\"\"\t\"[\"\"It's\"\", 'a\\'b', "
                              "'\\xe9\\U0001f3c0']\"\r\nNothing?\t[]\r\n");
    const grq_suite_item *const item = grq_suite_items(suite);
    assert_string_equal(item[0].question, "Who sang \"Hey\" ?");
    expect_texts(item[0].accepted, item[0].n_accepted, "It's|a'b|é🏀|");
    assert_int_equal(item[1].n_accepted, 0); /* stays, and nothing is right for it */
    assert_null(item[1].shown);
    grq_suite_close(suite);
    refuse("triviaqa", "q\t['a']\n \t['a']\n", "line 2, column 1: the question is blank");
    refuse("triviaqa", "q\rz\t['a']\n", "line 1, column 1: a carriage return without a line feed");
    refuse("triviaqa", "q\t['a']\n\"q\t['a']\n", "line 2, column 1: a quoted field has no end");
    refuse("triviaqa", "q\t['a']\nq\t['a']\tx\n", "line 2: a question and its answers");
    refuse("triviaqa", "q\t['a' 'b']\n", "line 1: the answers are no list");
}

static void ids(void **state)
{
    (void)state;
    char text[512];
    grq_suite *const suite = open_text("triviaqa", "{\"id\": 7, \"question\": \"q\", \"answers\": []}\n{\"question\": "
                                                   "\"q\", \"answers\": []}\n");
    assert_string_equal(grq_suite_items(suite)[0].id, "7");
    assert_string_equal(grq_suite_items(suite)[1].id, "1");
    grq_suite_close(suite);
    refuse("triviaqa", "{\"id\": \"\", \"question\": \"q\", \"answers\": []}\n", "id: an id of 0 bytes");
    snprintf(text, sizeof text, "{\"id\": \"%0320d\", \"question\": \"q\", \"answers\": []}\n", 1);
    refuse("triviaqa", text, "id: an id of 320 bytes; 1 to 319 are allowed");
    refuse("triviaqa", "{\"id\": 1.5, \"question\": \"q\", \"answers\": []}\n", "id");
    refuse("triviaqa", "{\"id\": 1, \"question\": \"q\", \"answers\": []}\n{\"question\": \"q\", \"answers\": []}\n",
           "item 1 is there twice");
}

/* ---- NQ-open ---- */

static void nq_open_lines(void **state)
{
    (void)state;
    grq_suite *const suite = open_text(
        "nq_open",
        "\xEF\xBB\xBF{\"question\": \"q\", \"answer\": [\"6 geese\"], \"answer_and_def_correct_predictions\": "
        "[\"6 geese\", \"six geese\"], \"poss_correct_predictions\": [\"gifts\"], \"id\": \"x\"}\r\n\r\n"
        "{\"question\": \"r\", \"answer\": [\"\\ud83c\\udde8\\ud83c\\uddfd\", \"\"]}");
    const grq_suite_item *const item = grq_suite_items(suite);
    assert_int_equal(grq_suite_count(suite), 2);
    assert_string_equal(item[0].id, "0"); /* rows, whatever ids the file has */
    expect_texts(item[0].accepted, item[0].n_accepted, "6 geese|six geese|");
    assert_string_equal(item[1].id, "1");
    expect_texts(item[1].accepted, item[1].n_accepted, "🇨🇽|");
    assert_true(isnan(item[0].popularity));
    assert_null(item[0].group);
    size_t n_groups = 7;
    grq_suite_groups(suite, &n_groups);
    assert_int_equal(n_groups, 0);
    grq_suite_close(suite);
}

static void broken_lines_are_refused_with_their_place(void **state)
{
    (void)state;
#define SOUND "{\"question\": \"q\", \"answer\": [\"a\"]}\n"
    refuse("nq_open", "", "there is no question");
    refuse("nq_open", "\n\n", "there is no question");
    refuse("nq_open", SOUND "{\"question\": \" \", \"answer\": [\"a\"]}\n", "line 2: question: the question is blank");
    refuse("nq_open", SOUND "{\"question\": 5, \"answer\": [\"a\"]}\n", "line 2: question");
    refuse("nq_open", SOUND "{\"question\": \"q\", \"answer\": [\"a\", [\"b\"]]}\n",
           "answer[1]: answers must be texts");
    refuse("nq_open", SOUND "{\"question\": \"q\", \"answer\": null}\n", "answer: answers must be texts");
    refuse("nq_open", SOUND "{\"question\": \"q\"}\n", "line 2: there is no answer");
    refuse("nq_open", SOUND "[1]\n", "line 2: not an object");
    refuse("nq_open", SOUND SOUND "{\"question\": \"q\", \"answer\": [\"a\"]} x\n", "line 3:1:");
    refuse("nq_open", SOUND "{\"question\": \"q\", \"answer\": [\"a\"], \"answer\": [\"b\"]}\n",
           "line 2: answer: appears twice");
    refuse("nq_open", SOUND "{\"question\": \"q\\ud83c\", \"answer\": [\"a\"]}\n", "line 2");
    refuse("nq_open", SOUND "{\"question\": \"q\xFF\", \"answer\": [\"a\"]}\n", "line 2 is not valid UTF-8");
    refuse("nq_open", SOUND "{\"question\": \"q", "line 2");
    static const char nul[] = SOUND "{\"question\": \"q\0\", \"answer\": [\"a\"]}\n";
    grq_suite *suite = NULL;
    assert_refused(grq_suite_open("nq_open", test_write("nul", nul, sizeof nul - 1), &suite, &err), GRQ_E_DATA, &err,
                   "line 2 holds a NUL byte");
    assert_refused(grq_suite_open("nq_open", test_path("missing"), &suite, &err), GRQ_E_IO, &err, "missing");
    assert_refused(grq_suite_open("squad", test_path("missing"), &suite, &err), GRQ_E_USAGE, &err, "popqa, triviaqa");
}

/* ---- PopQA: test_facts.c has the layout's own traps ---- */

static void popqa_items(void **state)
{
    (void)state;
#define COLUMNS "id\tsubj\tprop\tobj\ts_aliases\ts_pop\tquestion\tpossible_answers\n"
    grq_suite *const suite =
        open_text("popqa", COLUMNS "5\t\tscreenwriter\tB\t[\"\\ud83c\\udde8\"]\t12\tWho was the screenwriter for "
                                   "?\t\"[\"\"A\"\", \"\"B\"\"]\"\n6\tx\tcolor\t\t[]\t\tq\t\"[\"\"🇨🇽\"\"]\"\n"
                                   "7\ty\tcolor\tred\t[]\t3\tq\t[]\n");
    const grq_suite_item *const item = grq_suite_items(suite);
    size_t n_groups;
    assert_string_equal(item[0].shown, "B"); /* obj, which is not the first accepted */
    assert_string_equal(item[1].shown, "🇨🇽");
    assert_true(item[0].popularity == 12 && isnan(item[1].popularity));
    const grq_suite_group *const groups = grq_suite_groups(suite, &n_groups);
    assert_int_equal(n_groups, 2);
    assert_string_equal(groups[0].name, "color");
    assert_int_equal(groups[0].n, 2);
    assert_int_equal(groups[1].n, 1);
    grq_suite_close(suite);
}

/* ---- CMMLU ---- */

static const char *cmmlu(const char *part, const char *subject, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "cmmlu/%s", part);
    assert_ok(grq_make_directories(test_path(path), &err), &err);
    snprintf(path, sizeof path, "cmmlu/%s/%s.csv", part, subject);
    test_write_text(path, text);
    return test_path("cmmlu");
}

static void refuse_subject(const char *text, const char *message)
{
    grq_suite *suite = NULL;
    assert_refused(grq_suite_open("cmmlu", cmmlu("test", "anatomy", text), &suite, &err), GRQ_E_DATA, &err, message);
    assert_non_null(strstr(err.message, "anatomy.csv"));
}

static void cmmlu_folders(void **state)
{
    (void)state;
#define HEADER ",Question,A,B,C,D,Answer\n"
    grq_suite *suite = NULL;
    cmmlu("test", "virology", HEADER "0,病毒,甲,乙,丙,丁,D\r\n");
    cmmlu("test", "anatomy", HEADER "0,\"问, \n题 \",甲,\" 乙\",\"丙 \"\"x\"\"\",丁,B\n\n1,题,甲,乙,丙,丁,A\n");
    assert_ok(grq_suite_open("cmmlu", test_path("cmmlu"), &suite, &err), &err);
    const grq_suite_item *const item = grq_suite_items(suite);
    assert_int_equal(grq_suite_count(suite), 3);
    assert_string_equal(item[0].id, "anatomy/0");
    assert_string_equal(item[0].question, "问, \n题 "); /* spaces are kept; prompts strip where the protocol does */
    expect_texts(item[0].choices, GRQ_N_CHOICES, "甲| 乙|丙 \"x\"|丁|");
    expect_texts(item[0].accepted, item[0].n_accepted, "B|");
    assert_string_equal(item[2].id, "virology/0");
    assert_string_equal(item[2].group, "virology");
    grq_suite_close(suite);
    assert_refused(grq_suite_open_dev(test_path("cmmlu"), &suite, &err), GRQ_E_IO, &err, "cmmlu/dev");
    refuse_subject("", "the header is not");
    refuse_subject("Question,A,B,C,D,Answer\n", "the header is not");
    refuse_subject(HEADER "0,q,a,b,c,d,A\n1,q,a,b,c,d,E\n", "line 3: the answer is \"E\"");
    refuse_subject(HEADER "0,q,a,b,c,d,a\n", "the answer is \"a\"");
    refuse_subject(HEADER "0,q,a,b,c,d\n", "line 2 has 6 fields");
    refuse_subject(HEADER "0,q,a,b,c,d,A,\n", "line 2 has 8 fields");
    refuse_subject(HEADER "0, ,a,b,c,d,A\n", "line 2: Question is blank");
    refuse_subject(HEADER "0,q,a,b,,d,A\n", "line 2: C is blank");
    refuse_subject(HEADER "0,q\r,a,b,c,d,A\n", "line 2, column 2: a carriage return without a line feed");
    refuse_subject(HEADER "0,\"q\"x,a,b,c,d,A\n", "line 2, column 2: text follows a closing quote");
    refuse_subject(HEADER "0,q\xFF,a,b,c,d,A\n", "line 2 is not valid UTF-8");
    assert_string_equal(grq_cmmlu_subject_name("agronomy"), "农学");
    assert_null(grq_cmmlu_subject_name("alchemy"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_answers_stay_apart),
        cmocka_unit_test(lines_of_other_projects),
        cmocka_unit_test(dpr_files),
        cmocka_unit_test(ids),
        cmocka_unit_test(nq_open_lines),
        cmocka_unit_test(broken_lines_are_refused_with_their_place),
        cmocka_unit_test(popqa_items),
        cmocka_unit_test(cmmlu_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
