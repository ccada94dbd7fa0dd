/* JSON in: exactly the grammar, exact values, errors that name file, place and value. JSON out: reads back the same. */
#include "support.h"

#include <float.h>

static grq_error err;

static grq_json *parse(const char *text)
{
    grq_json *document;
    assert_ok(grq_json_parse("t.json", text, strlen(text), &document, &err), &err);
    return document;
}

static const struct {
    const char *text, *message;
} broken[] = {
    { "", "t.json:1:1: the text ends too early" },
    { "  \n ", "t.json:2:2: the text ends too early" },
    { "{\"a\": 01}", "t.json:1:7: a number must not start with 0" },
    { "-01", "t.json:1:1: a number must not start with 0" },
    { "[1., 2]", "t.json:1:4: a digit must follow the decimal point" },
    { ".5", "t.json:1:1: not a JSON value" },
    { "+1", "t.json:1:1: not a JSON value" },
    { "-", "the text ends too early" },
    { "-x", "a digit must follow the sign" },
    { "1e", "the text ends too early" },
    { "1e+ ", "a digit must follow the exponent" },
    { "0x10", "t.json:1:2: text after the end" },
    { "NaN", "not a JSON value" },
    { "nan", "not a JSON value" },
    { "Infinity", "not a JSON value" },
    { "-Infinity", "a digit must follow the sign" },
    { "1e999", "t.json: the number is too large" },
    { "{\"a\": [0, -1e400]}", "t.json: a[1]: the number is too large" },
    { "True", "not a JSON value" },
    { "tru", "not a JSON value" },
    { "1 2", "t.json:1:3: text after the end" },
    { "{} x", "text after the end" },
    { "1\v", "text after the end" },
    { "1 // no comments", "text after the end" },
    { "[1,]", "t.json:1:4: not a JSON value" },
    { "[1 2]", "a comma or ] is expected" },
    { "[1", "the text ends too early" },
    { "{\"a\":1,}", "a key in double quotes" },
    { "{\"a\" 1}", "a colon is expected" },
    { "{\"a\":1 \"b\":2}", "a comma or } is expected" },
    { "{a:1}", "t.json:1:2: a key in double quotes" },
    { "{'a':1}", "a key in double quotes" },
    { "{1:1}", "a key in double quotes" },
    { "]", "not a JSON value" },
    { "\"abc", "the text ends too early" },
    { "\"a\tb\"", "a control character" },
    { "\"a\nb\"", "t.json:1:3: a control character" },
    { "\"\\x41\"", "an unknown escape" },
    { "\"\\u12G4\"", "four hexadecimal digits" },
    { "\"\\u0000\"", "\\u0000 is not allowed" },
    { "\"\\uD800\"", "half of a surrogate pair" },
    { "\"\\uDC00\\uD800\"", "half of a surrogate pair" },
    { "\"\\uD800\\u0041\"", "half of a surrogate pair" },
    { "\"\xFF\"", "t.json:1:2: not UTF-8" },
    { "\"\xC0\x80\"", "not UTF-8" },
    { "\"\xE0\x80\x80\"", "not UTF-8" },
    { "\"\xED\xA0\x80\"", "not UTF-8" },
    { "\"\xF4\x90\x80\x80\"", "not UTF-8" },
    { "\"\xE2\x82\"", "not UTF-8" },
    { "\xEF\xBB\xBF{}", "byte order mark" },
    { "{\"a\":1,\"b\":2,\"a\":3}", "t.json: a: appears twice" },
    { "{\"x\":[{\"a\":1,\"\\u0061\":3}]}", "t.json: x[0].a: appears twice" },
    { "{\"\xC3\xA9\xC3\xA9\":1,\n  \"b\": ?}", "t.json:2:8: not a JSON value" }, /* columns count characters */
    { "0.1234567890123456789012345678901234567890123456789012345678901234", "more than 63 characters" },
};

static void broken_text_is_refused_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        grq_json *document = (grq_json *)1;
        const char *const text = broken[i].text;
        const grq_status st = grq_json_parse("t.json", text, strlen(text), &document, &err);
        if (st != GRQ_E_DATA || !strstr(err.message, broken[i].message) || document)
            fail_msg("%s: status %d: %s (instead of %s)", text, (int)st, st ? err.message : "accepted",
                     broken[i].message);
    }
    grq_json *document;
    assert_refused(grq_json_parse("t.json", "[1,\0 2]", 7, &document, &err), GRQ_E_DATA, &err,
                   "t.json:1:4: a NUL byte");
    assert_refused(grq_json_parse("t.json", "1\0", 2, &document, &err), GRQ_E_DATA, &err, "t.json:1:2: a NUL byte");
    assert_refused(grq_json_parse("t.json", "12345", 0, &document, &err), GRQ_E_DATA, &err, "ends too early");
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    char text[2 * 201 + 1] = "";
    for (int depth = 200; depth <= 201; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        grq_json *document;
        const grq_status st = grq_json_parse("t.json", text, 2 * (size_t)depth, &document, &err);
        assert_int_equal(st, depth == 200 ? GRQ_OK : GRQ_E_DATA);
        if (st != GRQ_OK) assert_non_null(strstr(err.message, "nested more than 200"));
        grq_json_close(document);
    }
}

static void values_arrive_as_written(void **state)
{
    (void)state;
    grq_json *const d =
        parse(" {\"s\":\"\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\", \"n\":null, \"t\":true, \"i\":-12,\t\"x\":1.5e-3,\r\n"
              "\"big\":\"18446744073709551615\", \"a\":[1,[],{}], \"o\":{\"k\":0}, \"edge\":9007199254740991 } ");
    grq_json_node *const root = grq_json_root(d);
    assert_int_equal(grq_json_count(root), 9);
    assert_string_equal(grq_json_key_at(root, 3), "i");
    assert_null(grq_json_key_at(root, 9));
    assert_null(grq_json_at(root, 9));
    const char *s;
    assert_ok(grq_json_string(root, "s", &s, &err), &err);
    assert_string_equal(s, "\xC3\xA9\xF0\x9F\x98\x80\n\"\\/");
    assert_int_equal(grq_json_kind_of(grq_json_find(root, "n")), GRQ_JSON_NULL);
    bool t = false;
    assert_ok(grq_json_bool(root, "t", &t, &err), &err);
    assert_true(t);
    int64_t i = 0;
    assert_ok(grq_json_i64(root, "i", -12, -12, &i, &err), &err);
    assert_true(i == -12);
    double x = 0;
    assert_ok(grq_json_f64(root, "x", 0, 1, &x, &err), &err);
    assert_true(x == 1.5e-3);
    uint64_t u = 0;
    assert_ok(grq_json_u64(root, "big", 0, UINT64_MAX, &u, &err), &err);
    assert_true(u == UINT64_MAX);
    assert_ok(grq_json_u64(root, "edge", 0, UINT64_MAX, &u, &err), &err);
    assert_true(u == 9007199254740991u);
    grq_json_node *a, *o;
    assert_ok(grq_json_array(root, "a", &a, &err), &err);
    assert_int_equal(grq_json_count(a), 3);
    assert_ok(grq_json_object(root, "o", &o, &err), &err);
    assert_ok(grq_json_u64(o, "k", 0, 0, &u, &err), &err);
    assert_ok(grq_json_finish(root, &err), &err);
    assert_ok(grq_json_finish(o, &err), &err);
    grq_json_close(d);
    grq_json_close(NULL);
}

static void wrong_values_are_refused_by_path(void **state)
{
    (void)state;
    grq_json *const d =
        parse("{\"train\":{\"batch\":2.5,\"rate\":7,\"name\":3,\"huge\":9007199254740993,\"minus\":-1,\"word\":\"12a\","
              "\"wide\":\"18446744073709551616\",\"low\":\"-9223372036854775809\",\"lowest\":\"-9223372036854775808\","
              "\"zeros\":\"007\",\"list\":[1,\"x\"],\"flag\":1}}");
    grq_json_node *train, *list, *none;
    uint64_t u;
    int64_t i;
    double x;
    bool b;
    const char *s;
    assert_ok(grq_json_object(grq_json_root(d), "train", &train, &err), &err);
    assert_refused(grq_json_u64(train, "batch", 1, 9, &u, &err), GRQ_E_DATA, &err,
                   "t.json: train.batch: must be a whole number, is 2.5");
    assert_refused(grq_json_f64(train, "rate", 0, 1, &x, &err), GRQ_E_DATA, &err,
                   "t.json: train.rate: must be from 0 to 1, is 7");
    assert_refused(grq_json_string(train, "name", &s, &err), GRQ_E_DATA, &err,
                   "train.name: must be a string, is a number");
    assert_refused(grq_json_u64(train, "huge", 0, UINT64_MAX, &u, &err), GRQ_E_DATA, &err,
                   "write it as a decimal string");
    assert_refused(grq_json_u64(train, "minus", 0, 9, &u, &err), GRQ_E_DATA, &err, "must be from 0 to 9, is -1");
    assert_refused(grq_json_u64(train, "word", 0, 9, &u, &err), GRQ_E_DATA, &err, "is \"12a\"");
    assert_refused(grq_json_u64(train, "wide", 0, 9, &u, &err), GRQ_E_DATA, &err, "is \"18446744073709551616\"");
    assert_refused(grq_json_u64(train, "zeros", 0, 9, &u, &err), GRQ_E_DATA, &err, "is \"007\"");
    assert_refused(grq_json_i64(train, "low", INT64_MIN, INT64_MAX, &i, &err), GRQ_E_DATA, &err,
                   "is -9223372036854775809");
    assert_ok(grq_json_i64(train, "lowest", INT64_MIN, INT64_MAX, &i, &err), &err);
    assert_true(i == INT64_MIN);
    assert_refused(grq_json_bool(train, "flag", &b, &err), GRQ_E_DATA, &err,
                   "train.flag: must be true or false, is a number");
    assert_refused(grq_json_object(train, "flag", &none, &err), GRQ_E_DATA, &err, "must be an object");
    assert_refused(grq_json_u64(train, "absent", 0, 9, &u, &err), GRQ_E_DATA, &err,
                   "t.json: train: the key \"absent\" is missing");
    assert_ok(grq_json_array(train, "list", &list, &err), &err);
    assert_refused(grq_json_as_u64(grq_json_at(list, 1), 0, 9, &u, &err), GRQ_E_DATA, &err, "t.json: train.list[1]:");
    assert_string_equal(grq_json_where(grq_json_at(list, 0)), "t.json: train.list[0]");
    assert_string_equal(grq_json_where(grq_json_root(d)), "t.json");
    assert_refused(grq_json_string(list, "k", &s, &err), GRQ_E_DATA, &err,
                   "train.list: must be an object, is an array");
    grq_json_close(d);
}

static void misspelt_keys_are_found(void **state)
{
    (void)state;
    grq_json *const d = parse("{\"seed\":1,\"bacth\":4}");
    uint64_t seed;
    assert_ok(grq_json_u64(grq_json_root(d), "seed", 0, 9, &seed, &err), &err);
    assert_null(grq_json_find(grq_json_root(d), "batch"));
    assert_refused(grq_json_finish(grq_json_root(d), &err), GRQ_E_DATA, &err,
                   "t.json: bacth: unknown key; known here: seed, batch");
    grq_json_close(d);
}

static void files_are_opened_by_name(void **state)
{
    (void)state;
    grq_json *document;
    assert_refused(grq_json_open("missing.json", &document, &err), GRQ_E_IO, &err, "missing.json: No such file");
    assert_refused(grq_json_open(test_write("empty.json", "", 0), &document, &err), GRQ_E_DATA, &err,
                   "empty.json: empty");
    assert_refused(grq_json_open(test_write_text("cut.json", "{\"a\":"), &document, &err), GRQ_E_DATA, &err,
                   "cut.json:1:6:");
}

/* 300,000 members: quadratic work would take minutes. */
static void many_members_take_no_time(void **state)
{
    (void)state;
    enum { N = 300000 };
    grq_json_writer *const w = grq_json_writer_new();
    grq_json_begin_object(w, NULL);
    for (int i = 0; i < N; i++) {
        char key[32];
        snprintf(key, sizeof key, "key %d", (int)(i * INT64_C(7919) % N)); /* out of order */
        grq_json_put_u64(w, key, (uint64_t)i);
    }
    grq_json_end_object(w);
    const char *text;
    assert_ok(grq_json_writer_text(w, true, &text, &err), &err);
    const clock_t begin = clock();
    grq_json *const d = parse(text);
    uint64_t sum = 0;
    for (int i = 0; i < N; i++) {
        char key[32];
        uint64_t value;
        snprintf(key, sizeof key, "key %d", i);
        assert_ok(grq_json_u64(grq_json_root(d), key, 0, N, &value, &err), &err);
        sum += value;
    }
    assert_true(sum == (uint64_t)N * (N - 1) / 2);
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 20);
    grq_json_close(d);
    grq_json_writer_free(w);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void written_text_looks_as_promised(void **state)
{
    (void)state;
    grq_json_writer *const w = grq_json_writer_new();
    grq_json_begin_object(w, NULL);
    grq_json_put_string(w, "s", "tab\t \"q\" \\ \x01 \xC3\xA9 \xFF]");
    grq_json_put_f64(w, "x", 0.1);
    grq_json_put_f64(w, "nan", NAN);
    grq_json_put_u64(w, "edge", UINT64_C(1) << 53);
    grq_json_put_i64(w, "low", INT64_MIN);
    grq_json_put_i64(w, "minus", -3);
    grq_json_begin_array(w, "a");
    grq_json_put_u64(w, NULL, 1);
    grq_json_put_bool(w, NULL, false);
    grq_json_end_array(w);
    grq_json_begin_array(w, "deep");
    grq_json_begin_object(w, NULL);
    grq_json_put_string(w, "k", NULL);
    grq_json_end_object(w);
    grq_json_begin_object(w, NULL);
    grq_json_end_object(w);
    grq_json_begin_array(w, NULL);
    grq_json_end_array(w);
    grq_json_end_array(w);
    grq_json_end_object(w);
    const char *compact, *indented;
    assert_ok(grq_json_writer_text(w, true, &compact, &err), &err);
    assert_string_equal(compact,
                        "{\"s\":\"tab\\t \\\"q\\\" \\\\ \\u0001 \xC3\xA9 \xEF\xBF\xBD]\",\"x\":0.1,\"nan\":null,"
                        "\"edge\":\"9007199254740992\",\"low\":\"-9223372036854775808\",\"minus\":-3,"
                        "\"a\":[1,false],\"deep\":[{\"k\":null},{},[]]}");
    assert_ok(grq_json_writer_text(w, false, &indented, &err), &err);
    assert_string_equal(indented,
                        "{\n  \"s\": \"tab\\t \\\"q\\\" \\\\ \\u0001 \xC3\xA9 \xEF\xBF\xBD]\",\n  \"x\": 0.1,\n"
                        "  \"nan\": null,\n  \"edge\": \"9007199254740992\",\n  \"low\": \"-9223372036854775808\",\n"
                        "  \"minus\": -3,\n  \"a\": [1, false],\n  \"deep\": [\n    {\n      \"k\": null\n    },\n"
                        "    {},\n    []\n  ]\n}");
    const char *const path = test_path("written.json");
    assert_ok(grq_json_writer_save(w, path, &err), &err);
    grq_json *d;
    assert_ok(grq_json_open(path, &d, &err), &err);
    int64_t low;
    assert_ok(grq_json_i64(grq_json_root(d), "low", INT64_MIN, 0, &low, &err), &err);
    assert_true(low == INT64_MIN);
    grq_json_close(d);
    grq_json_writer_free(w);
    grq_json_writer_free(NULL);
}

static void assert_misused(grq_json_writer *w, const char *message)
{
    const char *text;
    assert_refused(grq_json_writer_text(w, true, &text, &err), GRQ_E_DATA, &err, message);
    grq_json_writer_free(w);
}

static void misuse_is_reported(void **state)
{
    (void)state;
    grq_json_writer *w = grq_json_writer_new();
    assert_misused(w, "no value");
    w = grq_json_writer_new();
    grq_json_begin_object(w, NULL);
    assert_misused(w, "still open");
    w = grq_json_writer_new();
    grq_json_begin_object(w, NULL);
    grq_json_put_u64(w, NULL, 1);
    assert_misused(w, "without a key");
    w = grq_json_writer_new();
    grq_json_begin_array(w, NULL);
    grq_json_put_u64(w, "k", 1);
    assert_misused(w, "the key \"k\" outside an object");
    w = grq_json_writer_new();
    grq_json_begin_array(w, NULL);
    grq_json_end_object(w);
    assert_misused(w, "was not begun");
    w = grq_json_writer_new();
    grq_json_put_null(w, NULL);
    grq_json_put_null(w, NULL);
    assert_misused(w, "after the end");
    w = grq_json_writer_new();
    for (int i = 0; i < 65; i++) grq_json_begin_array(w, NULL);
    assert_misused(w, "nested more than");
}

static const char *decimal(grq_json_writer **w, double x)
{
    const char *text;
    *w = grq_json_writer_new();
    grq_json_put_f64(*w, NULL, x);
    assert_ok(grq_json_writer_text(*w, true, &text, &err), &err);
    return text;
}

static void doubles_are_short_and_exact(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *text;
    } cases[] = {
        { 0.1, "0.1" },
        { 1.0 / 3, "0.3333333333333333" },
        { 5e-324, "5e-324" },
        { 1e23, "1e+23" },
        { -0.0, "-0" },
        { 3, "3" },
        { DBL_MAX, "1.7976931348623157e+308" },
        { DBL_MIN, "2.2250738585072014e-308" },
        { 0.1 + 0.2, "0.30000000000000004" },
    };
    grq_json_writer *w;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(decimal(&w, cases[i].x), cases[i].text);
        grq_json_writer_free(w);
    }
    uint64_t bits = test_seed();
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double x, back;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x)) continue;
        grq_json *const d = parse(decimal(&w, x));
        assert_ok(grq_json_as_f64(grq_json_root(d), -DBL_MAX, DBL_MAX, &back, &err), &err);
        if (memcmp(&x, &back, sizeof x) != 0) fail_msg("%a came back as %a", x, back);
        grq_json_close(d);
        grq_json_writer_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_text_is_refused_with_its_place),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(values_arrive_as_written),
        cmocka_unit_test(wrong_values_are_refused_by_path),
        cmocka_unit_test(misspelt_keys_are_found),
        cmocka_unit_test(files_are_opened_by_name),
        cmocka_unit_test(many_members_take_no_time),
        cmocka_unit_test(written_text_looks_as_promised),
        cmocka_unit_test(misuse_is_reported),
        cmocka_unit_test(doubles_are_short_and_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
