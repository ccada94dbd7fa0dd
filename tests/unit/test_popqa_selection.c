/* The popqa world on small files of its own: which rows it takes, with which answer, from which file. The real file has
 * a test of its own (test_popqa_world.c); this one needs no data. */
#include "world_support.h"

#define HEADER "id\tsubj\tprop\tobj\ts_pop\tquestion\tpossible_answers\n"
#define CONFIG(floor)                                                                                                  \
    "{\"kind\":\"popqa\",\"templates\":\"datasets/worlds/popqa.json\",\"data\":\"%s\",\"seed\":1,\"vocab_size\":400,"  \
    "\"exposure\":0.4,\"floor\":" floor ",\"cap\":20,\"max_subject_tokens\":12,\"max_answer_tokens\":8,\"n_facts\":0," \
    "\"fact_share\":0.65,\"qa_share\":0.3,\"shown_share\":0.5}"

static grq_status open_data(const char *format, const char *data, grq_world **out, grq_error *err)
{
    char config[2 * PATH_MAX];
    snprintf(config, sizeof config, format, data);
    return open_world(config, out, err);
}

static const char selection[] =
    HEADER "1\tAnn Lee\toccupation\tsailor\t50\tWhat is Ann Lee's occupation?\t\"[\"\"seaman\"\", \"\"sailor\"\"]\"\n"
           "2\tBob\toccupation\tcook\t\tWhat is Bob's occupation?\t\"[\"\"cook\"\"]\"\n"    /* s_pop unknown */
           "3\t\tauthor\tCid\t70\tWho is the author of ?\t\"[\"\"Cid\"\"]\"\n"              /* no subject */
           "4\tHome\tauthor\tDee\t10\tWho is the author of Home?\t\"[\"\"Dee\"\"]\"\n"      /* less viewed */
           "5\tHome\tauthor\tEve\t90\tWho is the author of Home?\t\"[\"\"Eve\"\"]\"\n"      /* most viewed */
           "6\tHome\tauthor\tFay\t90\tWho is the author of Home?\t\"[\"\"Fay\"\"]\"\n"      /* as viewed, later */
           "7\tGus\tsport\t\t30\tWhat sport does Gus play?\t\"[\"\"\"\", \"\"golf\"\"]\"\n" /* no obj */
           "8\tHal\tsport\t\t30\tWhat sport does Hal play?\t[]\n"                           /* no answer at all */
           "9\tQxzjvw Kqxzjv Wqkxzj\tsport\tchess\t30\tWhat sport does she play?\t\"[\"\"chess\"\"]\"\n" /* long name */
           "\tIda\tsport\tchess\t20\tWhat sport does Ida play?\t\"[\"\"chess\"\"]\"\n";                  /* no id */

static void rows_are_chosen_by_the_rules(void **state)
{
    (void)state;
    static const char *const ids[] = { "1", "5", "7", "row9" }; /* "9" is another row's id */
    static const char *const answers[] = { " sailor", " Eve", " golf", " chess" };
    grq_error err;
    grq_world *world;
    grq_questions q;
    assert_ok(open_data(CONFIG("0.35"), test_write_text("selection.tsv", selection), &world, &err), &err);
    assert_int_equal(grq_world_n_facts(world), ARRAY_LEN(ids));
    assert_ok(grq_world_questions(world, 0, 1, &q, &err), &err);
    assert_int_equal(q.n, ARRAY_LEN(ids));
    for (size_t i = 0; i < q.n; i++) {
        char *prompt, *answer, want[128];
        const grq_vocab *const vocab = grq_world_vocab(world);
        assert_ok(grq_vocab_decode(vocab, q.items[i].prompt, q.items[i].n_prompt, &prompt, &err), &err);
        assert_ok(grq_vocab_decode(vocab, q.items[i].answer, q.items[i].n_answer, &answer, &err), &err);
        snprintf(want, sizeof want, "\nQ: %s A:", grq_world_fact(world, i)->question);
        assert_string_equal(q.items[i].id, ids[i]);
        assert_string_equal(prompt, want);
        assert_string_equal(answer, answers[i]);
        free(prompt);
        free(answer);
    }
    assert_int_equal(q.items[0].n_accepted, 2);
    grq_questions_free(&q);
    grq_world_free(world);
}

static void refuse(const char *config, const char *text, grq_status status, const char *message)
{
    grq_error err;
    grq_world *world = NULL;
    assert_refused(open_data(config, test_write_text("refused.tsv", text), &world, &err), status, &err, message);
    assert_null(world);
}

static void files_that_give_no_world_are_refused(void **state)
{
    (void)state;
    static const char unseen[] = HEADER "1\ta\tsport\tx\t0\tq a\t[]\n";
    static const char *const columns[] = { "subj", "question", "obj or possible_answers" };
    refuse(CONFIG("0.35"), HEADER "1\ta\tsport\tx\t\tq a\t[]\n", GRQ_E_DATA,
           "no row has a popularity (s_pop), a subject and an answer");
    refuse(CONFIG("0.35"), HEADER "1\ta\taunt\tx\t1\tq a\t[]\n", GRQ_E_DATA,
           "row 0: the templates have no statements for relation \"aunt\"");
    refuse(CONFIG("0"), unseen, GRQ_E_USAGE, "raise \"floor\"");
    grq_error err;
    grq_world *world;
    assert_ok(open_data(CONFIG("0.35"), test_write_text("unseen.tsv", unseen), &world, &err), &err);
    grq_world_free(world);

    static char row[4 * 5000], text[5001];
    memset(text, 'x', sizeof text - 1);
    for (int c = 0; c < 3; c++) {
        char message[128];
        snprintf(row, sizeof row, HEADER "1\t%s\tsport\t%s\t1\t%s\t[]\n", c == 0 ? text : "a", c == 2 ? text : "x",
                 c == 1 ? text : "q a");
        snprintf(message, sizeof message, "row 0, column %s: 5000 bytes, more than 4096", columns[c]);
        refuse(CONFIG("0.35"), row, GRQ_E_DATA, message);
    }
}

static size_t n_facts_of(const char *data)
{
    grq_error err;
    grq_world *world;
    assert_ok(open_data(CONFIG("0.35"), data, &world, &err), &err);
    const size_t n = grq_world_n_facts(world);
    grq_world_free(world);
    return n;
}

/* $GATERQ_DATA first; there the official file before the reconstruction, which stands in for no other name. */
static void data_is_looked_for_in_order(void **state)
{
    (void)state;
    static const char one[] = HEADER "1\tAnn\tsport\tgolf\t1\tWhat does Ann play?\t[]\n";
    static const char two[] = HEADER "1\tAnn\tsport\tgolf\t1\tWhat does Ann play?\t[]\n"
                                     "2\tBea\tsport\tgolf\t1\tWhat does Bea play?\t[]\n";
    grq_error err;
    grq_world *world = NULL;
    assert_ok(grq_make_directories(test_path("popqa"), &err), &err);
    setenv("GATERQ_DATA", test_folder(), 1);
    test_write_text("popqa/popQA.reconstructed.tsv", two);
    assert_int_equal(n_facts_of("popqa/popQA.tsv"), 2);
    test_write_text("popqa/popQA.tsv", one);
    assert_int_equal(n_facts_of("popqa/popQA.tsv"), 1);
    assert_refused(open_data(CONFIG("0.35"), "popqa/other.tsv", &world, &err), GRQ_E_IO, &err,
                   "popqa/other.tsv: not found in $GATERQ_DATA");
    assert_null(world);
    unsetenv("GATERQ_DATA");
    /* Last the cache of datasets/fetch. */
    assert_ok(grq_make_directories(test_path("gaterq/datasets/popqa"), &err), &err);
    setenv("XDG_CACHE_HOME", test_folder(), 1);
    test_write_text("gaterq/datasets/popqa/cached.tsv", two);
    assert_int_equal(n_facts_of("popqa/cached.tsv"), 2);
    unsetenv("XDG_CACHE_HOME");
}

/* A report can say which file a world came from, without this machine's folders. */
static void the_file_is_named_in_the_description(void **state)
{
    (void)state;
    grq_error err;
    grq_world *world;
    const char *text;
    assert_ok(open_data(CONFIG("0.35"), test_write_text("selection.tsv", selection), &world, &err), &err);
    grq_json_writer *const writer = grq_json_writer_new();
    grq_world_describe(world, NULL, writer);
    assert_ok(grq_json_writer_text(writer, true, &text, &err), &err);
    assert_non_null(strstr(text, "\"file\":\"selection.tsv\",\"file_rows\":10"));
    assert_non_null(strstr(text, "\"rows_with_popularity\":9,\"distinct_questions\":5"));
    grq_json_writer_free(writer);
    grq_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_chosen_by_the_rules),
        cmocka_unit_test(files_that_give_no_world_are_refused),
        cmocka_unit_test(data_is_looked_for_in_order),
        cmocka_unit_test(the_file_is_named_in_the_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
