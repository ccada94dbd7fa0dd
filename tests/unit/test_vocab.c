/* Vocabularies: exact round trips, learning that does not depend on text order, strict reading. */
#include "support.h"

#include "gaterq/rng.h"
#include "gaterq/vocab.h"
#include "qa/pieces.h"

static grq_vocab *learn(const char *const *texts, size_t n, uint32_t size)
{
    grq_weighted_text list[16];
    grq_error err;
    grq_vocab *vocab;
    for (size_t i = 0; i < n; i++) list[i] = (grq_weighted_text){ texts[i], strlen(texts[i]), 1 + i % 3 };
    assert_ok(grq_vocab_learn_bytes(list, n, size, &vocab, &err), &err);
    return vocab;
}

static void pieces_follow_the_rule(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
    } cases[] = { { "? A: x", 4 },
                  { "Q: x", 2 },
                  { ".\nThe", 2 },
                  { "\n\n", 1 },
                  { " George's", 7 },
                  { "'s house", 2 },
                  { "'so", 1 },
                  { "12", 1 },
                  { " 42", 2 },
                  { " (x", 2 },
                  { "  x", 1 },
                  { "\xC3\xA9t\xC3\xA9 x", 5 },
                  { "_a", 1 },
                  { "\xFF"
                    "a",
                    1 },
                  { " \xFF", 1 },
                  { " _", 1 },
                  { ".", 1 },
                  { "Question", 8 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (grq_piece_length(cases[i].text, strlen(cases[i].text)) != cases[i].length)
            fail_msg("\"%s\": piece of %zu bytes, expected %zu", cases[i].text,
                     grq_piece_length(cases[i].text, strlen(cases[i].text)), cases[i].length);
}

static void every_byte_string_comes_back(void **state)
{
    (void)state;
    static const char *const texts[] = { " the cat sat on the mat", " the hat", " caf\xC3\xA9 caf\xC3\xA9",
                                         "Q: What is it? A: x\n" };
    grq_vocab *vocab = learn(texts, ARRAY_LEN(texts), 300);
    grq_rng rng;
    grq_rng_seed(&rng, test_seed());
    for (int round = 0; round < 3000; round++) {
        char text[64];
        const size_t n = grq_rng_below(&rng, sizeof text);
        for (size_t i = 0; i < n; i++) {
            static const char common[] = "the cat \xC3\xA9? A:'s\n";
            text[i] = grq_rng_below(&rng, 3) ? common[grq_rng_below(&rng, sizeof common - 1)]
                                             : (char)grq_rng_below(&rng, 256);
        }
        grq_error err;
        int32_t *ids;
        size_t n_ids, n_back = 0;
        char *back;
        assert_ok(grq_vocab_encode(vocab, text, n, &ids, &n_ids, &err), &err);
        assert_ok(grq_vocab_decode(vocab, ids, n_ids, &back, &err), &err);
        for (size_t i = 0; i < n_ids; i++) {
            size_t length;
            grq_vocab_token(vocab, ids[i], &length);
            n_back += length;
        }
        if (n_back != n || memcmp(back, text, n)) fail_msg("round %d, %zu bytes do not come back", round, n);
        free(ids);
        free(back);
    }
    grq_vocab_free(vocab);
}

static void learning_does_not_depend_on_order(void **state)
{
    (void)state;
    static const char *const forth[] = { " ab ab abc", " abc bc", " xyz xyz", " ab" };
    grq_weighted_text a[4], b[4];
    for (size_t i = 0; i < 4; i++) {
        a[i] = (grq_weighted_text){ forth[i], strlen(forth[i]), i + 1 };
        b[3 - i] = a[i];
    }
    grq_error err;
    grq_vocab *x, *y;
    assert_ok(grq_vocab_learn_bytes(a, 4, 280, &x, &err), &err);
    assert_ok(grq_vocab_learn_bytes(b, 4, 280, &y, &err), &err);
    assert_int_equal(grq_vocab_size(x), grq_vocab_size(y));
    assert_true(grq_vocab_size(x) > 257);
    for (uint32_t id = 0; id < grq_vocab_size(x); id++) {
        size_t n, m;
        const char *p = grq_vocab_token(x, (int32_t)id, &n), *q = grq_vocab_token(y, (int32_t)id, &m);
        assert_int_equal(n, m);
        assert_memory_equal(p, q, n);
    }
    grq_vocab_free(x);
    grq_vocab_free(y);
}

static void words_are_strict(void **state)
{
    (void)state;
    static const char *const words[] = { "the", "Brae", "." }, *const twice[] = { "a", "b", "a" },
                             *const spaced[] = { "a b" };
    grq_error err;
    grq_vocab *vocab, *none;
    int32_t *ids;
    size_t n;
    char *text;
    assert_ok(grq_vocab_new_words(words, 3, &vocab, &err), &err);
    assert_ok(grq_vocab_encode(vocab, "the  Brae .", 11, &ids, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_ok(grq_vocab_decode(vocab, ids, n, &text, &err), &err);
    assert_string_equal(text, "the Brae .");
    free(ids);
    free(text);
    assert_refused(grq_vocab_encode(vocab, "the cow", 7, &ids, &n, &err), GRQ_E_DATA, &err, "\"cow\"");
    assert_refused(grq_vocab_decode(vocab, (const int32_t[]){ 4 }, 1, &text, &err), GRQ_E_DATA, &err, "id 4");
    assert_refused(grq_vocab_new_words(twice, 3, &none, &err), GRQ_E_DATA, &err, "repeats");
    assert_refused(grq_vocab_new_words(spaced, 1, &none, &err), GRQ_E_USAGE, &err, "space");
    assert_refused(grq_vocab_new_words((const char *const[]){ "<pad>" }, 1, &none, &err), GRQ_E_USAGE, &err, "padding");
    assert_refused(grq_vocab_new_words((const char *const[]){ "\xFF" }, 1, &none, &err), GRQ_E_USAGE, &err, "UTF-8");
    grq_vocab_free(vocab);
}

static grq_vocab *through_json(const grq_vocab *vocab)
{
    grq_error err;
    const char *text;
    grq_json *document;
    grq_vocab *back;
    grq_json_writer *w = grq_json_writer_new();
    grq_vocab_write(vocab, NULL, w);
    assert_ok(grq_json_writer_text(w, true, &text, &err), &err);
    assert_ok(grq_json_parse("vocab", text, strlen(text), &document, &err), &err);
    assert_ok(grq_vocab_read(grq_json_root(document), &back, &err), &err);
    grq_json_close(document);
    grq_json_writer_free(w);
    return back;
}

static void a_vocabulary_survives_json(void **state)
{
    (void)state;
    static const char *const texts[] = { " the cat sat on the mat", " the hat the hat" };
    grq_vocab *vocab = learn(texts, 2, 290), *back = through_json(vocab);
    assert_int_equal(grq_vocab_size(vocab), grq_vocab_size(back));
    grq_error err;
    int32_t *a, *b;
    size_t n, m;
    assert_ok(grq_vocab_encode(vocab, " the mat", 8, &a, &n, &err), &err);
    assert_ok(grq_vocab_encode(back, " the mat", 8, &b, &m, &err), &err);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n * sizeof *a);
    free(a);
    free(b);
    grq_vocab_free(vocab);
    grq_vocab_free(back);
    static const char *const broken[] = {
        "{\"kind\":\"bytes\",\"merges\":[\"1 300\"]}",   "{\"kind\":\"bytes\",\"merges\":[\"0 1\"]}",
        "{\"kind\":\"bytes\",\"merges\":[\"1  x\"]}",    "{\"kind\":\"tokens\"}",
        "{\"kind\":\"bytes\",\"merges\":[\" 1 2\"]}",    "{\"kind\":\"bytes\",\"merges\":[\"1 +2\"]}",
        "{\"kind\":\"bytes\",\"merges\":[\"01 2\"]}",    "{\"kind\":\"bytes\",\"merges\":[\"1 2\",\"1 2\"]}",
        "{\"kind\":\"words\",\"words\":[\"a\"],\"x\":1}"
    };
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        grq_json *document;
        assert_ok(grq_json_parse("vocab", broken[i], strlen(broken[i]), &document, &err), &err);
        if (grq_vocab_read(grq_json_root(document), &back, &err) == GRQ_OK) fail_msg("accepted: %s", broken[i]);
        grq_json_close(document);
    }
}

/* Every merge doubles the one before: forty of them would ask for a terabyte. */
static void doubling_merges_are_refused(void **state)
{
    (void)state;
    char text[2048] = "{\"kind\":\"bytes\",\"merges\":[\"1 1\"";
    grq_error err;
    grq_json *document;
    grq_vocab *vocab;
    for (int id = 257; id < 297; id++) sprintf(text + strlen(text), ",\"%d %d\"", id, id);
    strcat(text, "]}");
    assert_ok(grq_json_parse("vocab", text, strlen(text), &document, &err), &err);
    assert_refused(grq_vocab_read(grq_json_root(document), &vocab, &err), GRQ_E_DATA, &err, "would have 1024 bytes");
    assert_null(vocab);
    grq_json_close(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_follow_the_rule),
        cmocka_unit_test(every_byte_string_comes_back),
        cmocka_unit_test(learning_does_not_depend_on_order),
        cmocka_unit_test(words_are_strict),
        cmocka_unit_test(a_vocabulary_survives_json),
        cmocka_unit_test(doubling_merges_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
