/* Strict JSON in, plain JSON out. */
#include "support.h"

static grq_status parse(const char *text, grq_json **document, grq_error *err)
{
    return grq_json_parse("t.json", text, strlen(text), document, err);
}

static void what_is_not_json_is_refused(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\":1}{",
        "{\"a\":1} x",
        "{'a':1}",
        "{a:1}",
        "[1 2]",
        "nul",
        "truee",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "NaN",
        "Infinity",
        "-",
        "1e999",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"a\nb\"",
        "\"",
        "{\"a\" 1}",
        "[\"a\":1]",
        "\xEF\xBB\xBF{}",
        "\"\xC3\x28\"",
        "{\"a\":1,\"a\":2}",
        "{\"a\":{\"b\":1,\"b\":1}}",
        "// c\n{}",
    };
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        grq_error err;
        grq_json *document = NULL;
        const grq_status st = parse(broken[i], &document, &err);
        if (st == GRQ_OK) fail_msg("accepted: %s", broken[i]);
        assert_null(document);
        assert_non_null(strstr(err.message, "t.json"));
    }
    grq_error err;
    grq_json *document;
    static const char nul[] = "{\"a\":1}\0";
    assert_int_not_equal(grq_json_parse("t.json", nul, sizeof nul, &document, &err), GRQ_OK);
    char deep[20001];
    memset(deep, '[', 20000);
    deep[20000] = '\0';
    assert_int_not_equal(parse(deep, &document, &err), GRQ_OK);
}

static void every_cut_of_a_document_is_refused(void **state)
{
    (void)state;
    static const char whole[] = "{\"a\": [1, 2.5e3, true, null, \"x\\u00e9\\n\"], \"b\": {\"c\": -7}}";
    grq_error err;
    grq_json *document;
    assert_ok(parse(whole, &document, &err), &err);
    grq_json_close(document);
    for (size_t n = 0; n < strlen(whole); n++)
        if (grq_json_parse("t.json", whole, n, &document, &err) == GRQ_OK) fail_msg("accepted the first %zu bytes", n);
}

static void getters_name_the_place(void **state)
{
    (void)state;
    grq_error err;
    grq_json *document;
    grq_json_node *train;
    uint64_t u;
    int64_t i;
    double d;
    bool b;
    const char *s;
    assert_ok(parse("{\"train\": {\"batch\": 24, \"rate\": 0.5, \"name\": \"x\", \"on\": true, \"big\": "
                    "\"18446744073709551615\", \"half\": 1.5, "
                    "\"neg\": -3, \"large\": 9007199254740993}}",
                    &document, &err),
              &err);
    assert_ok(grq_json_object(grq_json_root(document), "train", &train, &err), &err);
    assert_ok(grq_json_u64(train, "batch", 1, 100, &u, &err), &err);
    assert_int_equal(u, 24);
    assert_ok(grq_json_u64(train, "big", 0, UINT64_MAX, &u, &err), &err);
    assert_true(u == UINT64_MAX);
    assert_ok(grq_json_i64(train, "neg", -5, 5, &i, &err), &err);
    assert_int_equal(i, -3);
    assert_ok(grq_json_f64(train, "rate", 0, 1, &d, &err), &err);
    assert_true(d == 0.5);
    assert_ok(grq_json_bool(train, "on", &b, &err), &err);
    assert_refused(grq_json_finish(train, &err), GRQ_E_DATA, &err, "train.name");
    assert_ok(grq_json_string(train, "name", &s, &err), &err);
    assert_refused(grq_json_u64(train, "batch", 1, 20, &u, &err), GRQ_E_DATA, &err, "train.batch");
    assert_refused(grq_json_u64(train, "half", 0, 9, &u, &err), GRQ_E_DATA, &err, "train.half");
    assert_refused(grq_json_u64(train, "neg", 0, 9, &u, &err), GRQ_E_DATA, &err, "train.neg");
    assert_refused(grq_json_u64(train, "large", 0, UINT64_MAX, &u, &err), GRQ_E_DATA, &err, "decimal string");
    assert_refused(grq_json_u64(train, "missing", 0, 9, &u, &err), GRQ_E_DATA, &err, "missing");
    assert_refused(grq_json_string(train, "rate", &s, &err), GRQ_E_DATA, &err, "train.rate");
    assert_ok(grq_json_finish(train, &err), &err);
    grq_json_close(document);
}

static void written_numbers_read_back(void **state)
{
    (void)state;
    static const double values[] = { 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789.125, 1e21, 2.5 };
    grq_error err;
    const char *text;
    grq_json *document;
    grq_json_writer *w = grq_json_writer_new();
    grq_json_begin_array(w, NULL);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) grq_json_put_f64(w, NULL, values[i]);
    grq_json_put_f64(w, NULL, NAN);
    grq_json_put_string(w, NULL, "quote \" backslash \\ tab \t bell \x07 broken \xFF end");
    grq_json_end_array(w);
    assert_ok(grq_json_writer_text(w, true, &text, &err), &err);
    assert_ok(parse(text, &document, &err), &err);
    grq_json_node *root = grq_json_root(document);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        const double back = test_f64(grq_json_at(root, i));
        assert_memory_equal(&back, &values[i], sizeof back);
    }
    assert_int_equal(grq_json_kind_of(grq_json_at(root, ARRAY_LEN(values))), GRQ_JSON_NULL);
    assert_string_equal(test_string(grq_json_at(root, ARRAY_LEN(values) + 1)),
                        "quote \" backslash \\ tab \t bell \x07 broken \xEF\xBF\xBD end");
    grq_json_close(document);
    grq_json_writer_free(w);
}

static void misuse_of_the_writer_is_reported(void **state)
{
    (void)state;
    grq_error err;
    const char *text;
    grq_json_writer *w = grq_json_writer_new();
    grq_json_begin_object(w, NULL);
    grq_json_put_u64(w, "a", 1);
    assert_int_not_equal(grq_json_writer_text(w, true, &text, &err), GRQ_OK); /* still open */
    grq_json_writer_free(w);
    w = grq_json_writer_new();
    grq_json_begin_object(w, NULL);
    grq_json_end_array(w);
    assert_int_not_equal(grq_json_writer_text(w, true, &text, &err), GRQ_OK);
    grq_json_writer_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_json_is_refused),      cmocka_unit_test(every_cut_of_a_document_is_refused),
        cmocka_unit_test(getters_name_the_place),           cmocka_unit_test(written_numbers_read_back),
        cmocka_unit_test(misuse_of_the_writer_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
