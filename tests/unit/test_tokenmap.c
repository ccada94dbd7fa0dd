/* The token map: keys of tokens, classes of a tokenizer, a finished map, and the one that DeepSeek released. */
#include "support.h"

#include "gaterq/digest.h"
#include "gaterq/geometry.h"
#include "gaterq/tokenmap.h"
#include "memory/token_key.h"

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static void print_bytes(const char *bytes, size_t n, char text[512])
{
    size_t at = 0;
    for (size_t i = 0; i < n && at + 4 < 512; i++)
        at += (size_t)snprintf(text + at, 512 - at, "%02x ", (unsigned)(unsigned char)bytes[i]);
    text[at] = '\0';
}

static void expect_key(const char *bytes, size_t n_bytes, const char *spelling, const char *want, size_t n_want)
{
    grq_error err;
    char *key, in[512], got[512], wanted[512];
    size_t n_key;
    assert_ok(grq_token_key(bytes, n_bytes, spelling, &key, &n_key, &err), &err);
    print_bytes(bytes, n_bytes, in);
    print_bytes(key, n_key, got);
    print_bytes(want, n_want, wanted);
    if (n_key != n_want || memcmp(key, want, n_want) != 0 || key[n_key])
        fail_msg("key of %s is %s, not %s", in, got, wanted);
    free(key);
}

/* Every row of the specification's table, and each step of the chain alone. */
static void texts_have_their_keys(void **state)
{
    (void)state;
    static const struct {
        const char *text, *key;
    } rows[] = {
        { "the", "the" },
        { " the", "the" },
        { "The", "the" },
        { " THE", "the" },
        /* blanks of any kind and number are one space */
        { " ", " " },
        { "\t", " " },
        { "\n", " " },
        { "\r\n", " " },
        { " \t\r\n ", " " },
        { "\u00A0", " " },
        { "\u3000", " " },
        { "\u2003\u2003", " " },
        /* other white space is trimmed to nothing, so it stays what it is */
        { "\v", "\v" },
        { "\f", "\f" },
        { "\v\f", "\v\f" },
        { "\xC2\x85", "\xC2\x85" },
        { "\u1680", "\u1680" },
        { "\u2028", "\u2028" },
        { "\u2029", "\u2029" },
        { "\va\f", "a" },
        { "\u2029 b\xC2\x85\n", "b" },
        { "\u1680b\u2028", "b" },
        { "a\vb", "a\vb" },
        { " \v", " \v" }, /* one space and VT: no lone space; trimmed to nothing */
        { "\x1C", "\x1C" },
        { "\x1C x", "\x1C x" }, /* no White_Space in Unicode, though Python strips it */
        /* so are combining marks alone; elsewhere they vanish: Mn, Mc, Me */
        { "\u0301", "\u0301" },
        { "\u0301\u093E\u20DD", "\u0301\u093E\u20DD" },
        { " \u0301", " " },
        { "a\u0301", "a" },
        { "\u0915\u093E", "\u0915" },
        { "\u0B95\u0BBE", "\u0B95" },
        { "a\u20DD", "a" },
        /* accents, width, compatibility forms */
        { "\u00E1", "a" },
        { " \u00C4", "a" },
        { "\uFF41", "a" },
        { "\u00BD", "1\u20442" },
        { "\u2026", "..." },
        { "...", "..." },
        { "\uFF0C", "," },
        { "\uFB01", "fi" },
        { "\u1E9B\u0323", "s" }, /* long s with dots: NFKC composes it first */
        { "\uC774", "\u110B\u1175" },
        { "\u212B", "a" },
        { "\u2126", "\u03C9" },
        /* small letters: the full mapping without context */
        { "\u03A3", "\u03C3" },
        { "\u039F\u03A3", "\u03BF\u03C3" }, /* no final sigma */
        { "\u03C2", "\u03C2" },
        { "\u0130", "i" },
        { "\u1E9E", "\u00DF" },
        { "\u00DF", "\u00DF" },
        { "\u00D8", "\u00F8" },
        { "\u00C6", "\u00E6" },
        { "\u0141", "\u0142" },
        { "\u0131", "\u0131" },
        { "\U00010400", "\U00010428" },
        /* runs inside, and the character that stands for a lone space */
        { "a \n\tb", "a b" },
        { "a\u00A0 b", "a b" },
        { " a  ", "a" },
        { "\uE000", " " },
        { "a\uE000", "a " },
        { " \uE000", " " },
        /* step order: a mark between blanks goes before the run is replaced */
        { "a \u0301 b", "a b" },
        { "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        expect_key(rows[i].text, strlen(rows[i].text), "spelling", rows[i].key, strlen(rows[i].key));
    expect_key("A\0B", 3, "spelling", "a\0b", 3);
}

static void bytes_that_are_no_text_have_their_spelling_as_key(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "\x80",   "\xC3",    "a\xC3", "\xE4\xB8", " \xE2\x80", "\xED\xA0\x80", "\xC0\xAF", "\xF4\x90\x80\x80",
        "\uFFFD", "a\uFFFD", /* the replacement character itself */
    };
    for (size_t i = 0; i < ARRAY_LEN(broken); i++)
        expect_key(broken[i], strlen(broken[i]), " \u0120The", " \u0120The", 6); /* not normalised */
}

static size_t from_hex(const char *hex, char *bytes, size_t room)
{
    const size_t n = strlen(hex) / 2;
    assert_true(n <= room);
    for (size_t i = 0; i < n; i++) {
        const char digits[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
        bytes[i] = (char)strtoul(digits, NULL, 16);
    }
    return n;
}

static void golden_cases_have_their_keys(void **state)
{
    (void)state;
    grq_json *golden = test_golden("engram_hash.json");
    grq_json_node *const cases = test_walk(grq_json_root(golden), "v41.token_map.cases");
    assert_true(grq_json_count(cases) == 50);
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        grq_json_node *const c = grq_json_at(cases, i);
        char bytes[256];
        const char *const key = test_string(test_walk(c, "key"));
        const size_t n = from_hex(test_string(test_walk(c, "decoded_utf8_hex")), bytes, sizeof bytes);
        /* Broken bytes are given decoded, with U+FFFD in them; their key is the spelling. */
        expect_key(bytes, n, strstr(test_string(test_walk(c, "why")), "partial") ? key : "", key, strlen(key));
    }
    grq_json_close(golden);
}

/* ---- tokenizers made here ---------------------------------------------------------------------------------------- */

/* The byte-level alphabet, written down a second time. */
static const char *spell(const char *bytes, size_t n)
{
    static char text[512];
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned b = (unsigned char)bytes[i];
        const unsigned c = b <= 0x20   ? 0x100 + b
                           : b < 0x7F  ? b
                           : b <= 0xA0 ? 0x100 + 0x21 + (b - 0x7F)
                           : b == 0xAD ? 0x143
                                       : b;
        if (c >= 0x80) text[at++] = (char)(0xC0 | c >> 6);
        text[at++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3F) : c);
    }
    text[at] = '\0';
    return text;
}

/* A tokenizer.json whose vocabulary is `tokens`, by id, each spelled already. */
static const char *write_tokenizer(const char *const *tokens, size_t n)
{
    const char *const path = test_path("tokenizer.json");
    grq_error err;
    grq_json_writer *w = grq_json_writer_new();
    grq_json_begin_object(w, NULL);
    grq_json_put_string(w, "version", "1.0");
    grq_json_begin_object(w, "decoder");
    grq_json_put_string(w, "type", "ByteLevel");
    grq_json_end_object(w);
    grq_json_begin_object(w, "model");
    grq_json_put_string(w, "type", "BPE");
    grq_json_begin_object(w, "vocab");
    for (size_t i = n; i-- > 0;) grq_json_put_u64(w, tokens[i], i); /* the file's order is not that of the ids */
    grq_json_end_object(w);
    grq_json_end_object(w);
    grq_json_end_object(w);
    assert_ok(grq_json_writer_save(w, path, &err), &err);
    grq_json_writer_free(w);
    return path;
}

static grq_tokenmap *build(const char *path, uint64_t n_ids)
{
    grq_error err;
    grq_tokenmap *map = NULL;
    assert_ok(grq_tokenmap_build(path, n_ids, &map, &err), &err);
    return map;
}

static void expect_ids(const grq_tokenmap *map, const int32_t *want, uint32_t n)
{
    assert_int_equal(grq_tokenmap_n_ids(map), n);
    for (uint32_t i = 0; i < n; i++)
        if (grq_tokenmap_ids(map)[i] != want[i])
            fail_msg("raw id %" PRIu32 " is in class %" PRId32 ", not %" PRId32, i, grq_tokenmap_ids(map)[i], want[i]);
}

static void expect_class_key(const grq_tokenmap *map, int32_t id, const char *want)
{
    size_t n;
    const char *const key = grq_tokenmap_key(map, id, &n);
    assert_non_null(key);
    if (n != strlen(want) || memcmp(key, want, n) != 0)
        fail_msg("the key of class %" PRId32 " is \"%.*s\", not \"%s\"", id, (int)n, key, want);
}

static void classes_are_numbered_by_first_appearance(void **state)
{
    (void)state;
    static const char *const tokens[] = { "the",          "B", "\u0120", "\u0120The", "b", "\u010A",
                                          "\u00C3\u00A1", "a", "\u00C3", "\u0100" };
    static const int32_t want[] = { 0, 1, 2, 0, 1, 2, 3, 3, 4, 5, 6, 7 };
    grq_tokenmap *map = build(write_tokenizer(tokens, ARRAY_LEN(tokens)), 12);
    expect_ids(map, want, 12);
    assert_int_equal(grq_tokenmap_n_classes(map), 8);
    assert_int_equal(grq_tokenmap_n_reserved(map), 2);
    expect_class_key(map, 0, "the");
    expect_class_key(map, 2, " ");
    expect_class_key(map, 3, "a");
    expect_class_key(map, 4, "\u00C3");
    size_t n = 9;
    const char *const nul = grq_tokenmap_key(map, 5, &n);
    assert_true(n == 1 && nul[0] == '\0');
    assert_null(grq_tokenmap_key(map, 6, &n)); /* reserved */
    assert_null(grq_tokenmap_key(map, -1, &n));
    assert_null(grq_tokenmap_key(map, 8, &n));
    grq_tokenmap_close(map);
    map = build(test_path("tokenizer.json"), 0);
    expect_ids(map, want, 10);
    assert_int_equal(grq_tokenmap_n_reserved(map), 0);
    grq_tokenmap_close(map);
    grq_error err;
    assert_refused(grq_tokenmap_build(test_path("tokenizer.json"), 9, &map, &err), GRQ_E_USAGE, &err,
                   "tokenizer.json: has 10 ids, more than the 9 asked for");
    assert_null(map);
    assert_refused(grq_tokenmap_build(test_path("tokenizer.json"), GRQ_TOKENMAP_MAX_IDS + 1, &map, &err), GRQ_E_USAGE,
                   &err, "16777217 ids");
}

/* One dictionary for both kinds of key: a byte that is no text meets the character that spells it. */
static void bytes_share_a_class_with_the_character_that_spells_them(void **state)
{
    (void)state;
    grq_json *golden = test_golden("engram_hash.json");
    grq_json_node *const list = test_walk(grq_json_root(golden), "v41.token_map.partial_vs_normal_key_collisions");
    const size_t n = grq_json_count(list);
    assert_int_equal(n, 27);
    char *tokens[2 * 27 + 1];
    for (size_t i = 0; i < n; i++) {
        const char *const text = test_string(test_walk(grq_json_at(list, i), "with_decoded"));
        tokens[i] = strdup(test_string(test_walk(grq_json_at(list, i), "raw_token")));
        tokens[n + i] = strdup(spell(text, strlen(text)));
    }
    tokens[2 * n] = strdup(spell("\u00E9", 2)); /* its key is "e": byte E9, whose spelling is this, is alone */
    grq_tokenmap *map = build(write_tokenizer((const char *const *)tokens, 2 * n + 1), 0);
    const int32_t *const ids = grq_tokenmap_ids(map);
    for (size_t i = 0; i < n; i++)
        if (ids[i] != (int32_t)i || ids[n + i] != (int32_t)i)
            fail_msg("%s is in class %" PRId32 ", its character in %" PRId32, tokens[i], ids[i], ids[n + i]);
    assert_int_equal(grq_tokenmap_n_classes(map), 28);
    grq_tokenmap_close(map);
    for (size_t i = 0; i < 2 * n + 1; i++) free(tokens[i]);
    grq_json_close(golden);
}

/* All 256 bytes: the alphabet covers each once, and the 128 that are no text are keyed by it. */
static void single_bytes_are_all_there(void **state)
{
    (void)state;
    char *tokens[256];
    for (int b = 0; b < 256; b++) tokens[b] = strdup(spell((const char[]){ (char)b }, 1));
    grq_tokenmap *map = build(write_tokenizer((const char *const *)tokens, 256), 0);
    for (int b = 0x80; b < 256; b++) expect_class_key(map, grq_tokenmap_ids(map)[b], tokens[b]);
    for (int b = 0; b < 0x80; b++) {
        size_t n;
        const char *const key = grq_tokenmap_key(map, grq_tokenmap_ids(map)[b], &n);
        const int want = b >= 'A' && b <= 'Z' ? b + 32 : b == '\t' || b == '\n' || b == '\r' ? ' ' : b;
        if (n != 1 || key[0] != want) fail_msg("the key of byte %02x is %02x", (unsigned)b, (unsigned)key[0]);
    }
    assert_int_equal(grq_tokenmap_n_classes(map), 256 - 26 - 3);
    grq_tokenmap_close(map);
    for (int b = 0; b < 256; b++) free(tokens[b]);
}

/* As the tokenizers crate 0.22.2 decodes them (checked with it): an added token whose characters are all in the
 * alphabet goes through it, any other one is literal. */
static void added_tokens_are_decoded_like_the_others(void **state)
{
    (void)state;
    grq_tokenmap *map =
        build(test_write_text("added.json", "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"e x\": 1}},"
                                            " \"added_tokens\": [{\"id\": 2, \"content\": \"\\u00e8\"},"
                                            " {\"id\": 1, \"content\": \"e x\", \"special\": true},"
                                            " {\"id\": 3, \"content\": \"\\u00e9 X\"},"
                                            " {\"id\": 4, \"content\": \"<\\uff5c\\u0108A\\uff5c>\"},"
                                            " {\"id\": 5, \"content\": \"\\u0120\"},"
                                            " {\"id\": 6, \"content\": \"\\u00c3\\u00aa\"}]}"),
              0);
    expect_ids(map, (const int32_t[]){ 0, 1, 2, 1, 3, 4, 5 }, 7);
    expect_class_key(map, 2, "\u00E8");
    expect_class_key(map, 3, "<|ca|>");
    expect_class_key(map, 4, " ");
    expect_class_key(map, 5, "e");
    grq_tokenmap_close(map);
}

static void refuse_tokenizer(const char *text, const char *message)
{
    grq_error err;
    grq_tokenmap *map;
    assert_refused(grq_tokenmap_build(test_write_text("broken.json", text), 0, &map, &err), GRQ_E_DATA, &err, message);
    assert_null(map);
    assert_non_null(strstr(err.message, "broken.json"));
}

#define MODEL(vocab) "{\"model\": {\"type\": \"BPE\", \"vocab\": " vocab "}"
#define ADDED(list) MODEL("{\"a\": 0}") ", \"added_tokens\": " list "}"

static void broken_tokenizers_are_refused_with_their_field(void **state)
{
    (void)state;
    refuse_tokenizer("", "empty");
    refuse_tokenizer("[]", "must be an object");
    refuse_tokenizer("{}", "the key \"model\" is missing");
    refuse_tokenizer("{\"model\": []}", "model: must be an object, is an array");
    refuse_tokenizer("{\"model\": {\"vocab\": {}}}", "model: the key \"type\" is missing");
    refuse_tokenizer("{\"model\": {\"type\": \"Unigram\", \"vocab\": []}}", "model: type must be \"BPE\"");
    refuse_tokenizer("{\"model\": {\"type\": \"BPE\"}}", "model: the key \"vocab\" is missing");
    refuse_tokenizer(MODEL("[\"a\"]") "}", "model.vocab: must be an object");
    refuse_tokenizer(MODEL("{}") "}", "model.vocab: has no token");
    refuse_tokenizer(MODEL("{\"a\": 0, \"a\": 1}") "}", "model.vocab.a: appears twice");
    refuse_tokenizer(MODEL("{\"a\": 0, \"b\": 0}") "}", "model.vocab.b: id 0 is \"a\" already");
    refuse_tokenizer(MODEL("{\"a\": 0, \"b\": 2}") "}", "model.vocab.b: id 2, but the file has 2 tokens only");
    refuse_tokenizer(MODEL("{\"a\": 1}") "}", "model.vocab.a: id 1");
    refuse_tokenizer(MODEL("{\"a\": 16777216}") "}", "model.vocab.a: must be from 0 to 16777215, is 16777216");
    refuse_tokenizer(MODEL("{\"a\": -1}") "}", "model.vocab.a: must be from 0");
    refuse_tokenizer(MODEL("{\"a\": 0.5}") "}", "model.vocab.a: must be a whole number");
    refuse_tokenizer(MODEL("{\"a\": \"0\"}") "}", "model.vocab.a: must be a number");
    refuse_tokenizer(MODEL("{\"\\u2581the\": 0}") "}", "\"\u2581the\" (id 0) has a character outside the byte-level");
    refuse_tokenizer(MODEL("{\"a b\": 0}") "}", "outside the byte-level alphabet");
    refuse_tokenizer(MODEL("{\"\\u0144\": 0}") "}", "outside the byte-level alphabet"); /* the first past it */
    refuse_tokenizer(MODEL("{\"\\u00ad\": 0}") "}", "outside the byte-level alphabet"); /* soft hyphen: U+0143 */
    refuse_tokenizer(MODEL("{\"a\": 0}") ", \"decoder\": null}", "decoder: must be an object");
    refuse_tokenizer(MODEL("{\"a\": 0}") ", \"decoder\": {\"type\": \"Metaspace\"}}", "must be \"ByteLevel\"");
    refuse_tokenizer(ADDED("{}"), "added_tokens: must be an array");
    refuse_tokenizer(ADDED("[1]"), "added_tokens[0]: must be an object");
    refuse_tokenizer(ADDED("[{\"id\": 1}]"), "added_tokens[0]: the key \"content\" is missing");
    refuse_tokenizer(ADDED("[{\"content\": \"b\"}]"), "added_tokens[0]: the key \"id\" is missing");
    refuse_tokenizer(ADDED("[{\"id\": 0, \"content\": \"b\"}]"), "added_tokens[0].id: id 0 is \"a\" already");
    refuse_tokenizer(ADDED("[{\"id\": 1, \"content\": \"a\"}]"), "ids 0 and 1 are both \"a\"");
    refuse_tokenizer(ADDED("[{\"id\": 1, \"content\": \"b\"}, {\"id\": 1, \"content\": \"b\"}]"),
                     "added_tokens[1].id: id 1 is \"b\" already");
    /* A repeated token leaves room for an id that looks possible, and is past a hole. */
    refuse_tokenizer(ADDED("[{\"id\": 0, \"content\": \"a\"}, {\"id\": 2, \"content\": \"b\"}]"),
                     "model.vocab, added_tokens: no token has id 1; the largest is 2");
    refuse_tokenizer(MODEL("{\"a\": 0}"), "broken.json"); /* cut off */
    grq_error err;
    grq_tokenmap *map;
    assert_refused(grq_tokenmap_build(test_path("missing.json"), 0, &map, &err), GRQ_E_IO, &err, "missing.json");
}

/* ---- finished maps ----------------------------------------------------------------------------------------------- */

static void a_saved_map_reads_back_equal(void **state)
{
    (void)state;
    static const char *const tokens[] = { "a", "b", "A", "\u00C3" };
    grq_tokenmap *map = build(write_tokenizer(tokens, ARRAY_LEN(tokens)), 6), *back;
    const char *const path = test_path("saved.map");
    grq_error err;
    assert_ok(grq_tokenmap_save(map, path, &err), &err);
    static const unsigned char want[24] = { 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0 };
    char *bytes, sha256[GRQ_SHA256_HEX];
    size_t n_bytes;
    assert_ok(grq_file_read(path, 0, &bytes, &n_bytes, &err), &err);
    assert_int_equal(n_bytes, sizeof want);
    assert_memory_equal(bytes, want, sizeof want);
    free(bytes);
    assert_ok(grq_sha256_file(path, sha256, &err), &err);
    assert_string_equal(grq_tokenmap_sha256(map), sha256);
    assert_ok(grq_tokenmap_open(path, 6, 5, sha256, &back, &err), &err);
    expect_ids(back, grq_tokenmap_ids(map), 6);
    assert_int_equal(grq_tokenmap_n_classes(back), 5);
    assert_int_equal(grq_tokenmap_n_reserved(back), 0);
    assert_null(grq_tokenmap_key(back, 0, &n_bytes));
    grq_tokenmap_close(back);
    assert_refused(grq_tokenmap_save(map, test_folder(), &err), GRQ_E_IO, &err, "is a folder");
    assert_int_equal(test_count_files(".tmp-"), 0);
    grq_tokenmap_close(map);
    grq_tokenmap_close(NULL);
}

static void refuse_map(const void *bytes, size_t n_bytes, const char *message)
{
    grq_error err;
    grq_tokenmap *map;
    const char *const path = test_write("broken.map", bytes, n_bytes);
    assert_refused(grq_tokenmap_open(path, 0, 0, NULL, &map, &err), GRQ_E_DATA, &err, message);
    assert_null(map);
    assert_non_null(strstr(err.message, "broken.map"));
}

static void broken_maps_are_refused(void **state)
{
    (void)state;
    refuse_map("", 0, "0 bytes are no list of 32-bit ids");
    refuse_map("\0\0\0\0\1\0\0", 7, "7 bytes");
    refuse_map((const int32_t[]){ 0, 1, -1 }, 12, "raw id 2 maps to -1, which is negative");
    refuse_map((const int32_t[]){ 1, 0 }, 8, "raw id 0 maps to 1 before anything maps to 0");
    refuse_map((const int32_t[]){ 0, 1, 0, 3, 2 }, 20, "raw id 3 maps to 3 before anything maps to 2");
    refuse_map((const int32_t[]){ 0, INT32_MAX }, 8, "raw id 1 maps to 2147483647");
    grq_error err;
    grq_tokenmap *map;
    const char *const path = test_write("good.map", (const int32_t[]){ 0, 1, 0, 2 }, 16);
    assert_refused(grq_tokenmap_open(path, 5, 0, NULL, &map, &err), GRQ_E_DATA, &err, "maps 4 ids; 5 are expected");
    assert_refused(grq_tokenmap_open(path, 4, 4, NULL, &map, &err), GRQ_E_DATA, &err, "has 3 classes; 4 are expected");
    assert_refused(grq_tokenmap_open(path, 4, 3, GRQ_TOKENMAP_V41_SHA256, &map, &err), GRQ_E_DATA, &err,
                   "good.map: SHA-256 is ");
    assert_null(map);
    assert_refused(grq_tokenmap_open(test_path("missing.map"), 0, 0, NULL, &map, &err), GRQ_E_IO, &err, "missing.map");
    const char *const large = test_write("large.map", "", 0); /* one id too many, as a hole in the file */
    assert_int_equal(truncate(large, 4 * ((off_t)GRQ_TOKENMAP_MAX_IDS + 1)), 0);
    assert_refused(grq_tokenmap_open(large, 0, 0, NULL, &map, &err), GRQ_E_DATA, &err, "large.map: larger than");
}

static void ids_are_mapped_or_refused(void **state)
{
    (void)state;
    grq_error err;
    grq_tokenmap *map;
    assert_ok(grq_tokenmap_open(test_write("small.map", (const int32_t[]){ 0, 1, 0, 2 }, 16), 0, 0, NULL, &map, &err),
              &err);
    int32_t ids[] = { 3, 2, 1, 0, 3 };
    assert_ok(grq_tokenmap_apply(map, 1, ids, 5, ids, &err), &err);
    assert_memory_equal(ids, ((const int32_t[]){ 2, 0, GRQ_DEAD, 0, 2 }), sizeof ids);
    const int32_t raw[] = { 1, 3, -1 }, past[] = { 0, 4 }, least[] = { INT32_MIN };
    int32_t out[3] = { 7, 7, 7 };
    assert_ok(grq_tokenmap_apply(map, -1, raw, 2, out, &err), &err); /* no id is dead */
    assert_memory_equal(out, ((const int32_t[]){ 1, 2, 7 }), sizeof out);
    out[0] = 7;
    assert_refused(grq_tokenmap_apply(map, -1, raw, 3, out, &err), GRQ_E_DATA, &err, "position 2: raw id -1");
    assert_int_equal(out[0], 7); /* untouched */
    assert_refused(grq_tokenmap_apply(map, 2, past, 2, out, &err), GRQ_E_DATA, &err,
                   "position 1: raw id 4 is not among the map's ids, 0 to 3");
    assert_refused(grq_tokenmap_apply(map, 2, least, 1, out, &err), GRQ_E_DATA, &err, "raw id -2147483648");
    assert_ok(grq_tokenmap_apply(map, 2, NULL, 0, NULL, &err), &err);
    grq_tokenmap_close(map);
}

/* ---- the released map -------------------------------------------------------------------------------------------- */

static void skip_loudly(const char *missing)
{
    fprintf(stderr, "\nSKIPPED: %s\n\n", missing);
    skip();
}

static int32_t expect_i32(grq_json_node *node, const char *path)
{
    return (int32_t)test_i64(test_walk(node, path));
}

static void expect_class(const grq_tokenmap *map, int32_t raw, int32_t want)
{
    if (grq_tokenmap_ids(map)[raw] != want)
        fail_msg("raw id %" PRId32 " is in class %" PRId32 ", not %" PRId32, raw, grq_tokenmap_ids(map)[raw], want);
}

/* A map of the released model: every fact that the golden file tells. */
static void expect_golden_map(const grq_tokenmap *map)
{
    grq_json *document = test_golden("engram_hash.json");
    grq_json_node *const golden = test_walk(grq_json_root(document), "v41.token_map");
    const uint32_t n_ids = grq_tokenmap_n_ids(map), n_classes = grq_tokenmap_n_classes(map);
    assert_int_equal(n_ids, test_u64(test_walk(golden, "entries")));
    assert_int_equal(n_classes, test_u64(test_walk(golden, "compressed_vocab_size")));
    assert_string_equal(grq_tokenmap_sha256(map), test_string(test_walk(golden, "sha256_as_int32_le")));
    uint32_t *sizes = calloc(n_classes, sizeof *sizes);
    int64_t *wide = malloc(n_ids * sizeof *wide);
    for (uint32_t i = 0; i < n_ids; i++) {
        wide[i] = grq_tokenmap_ids(map)[i];
        sizes[wide[i]]++;
    }
    grq_error err;
    char sha256[GRQ_SHA256_HEX];
    assert_ok(grq_sha256(wide, n_ids * sizeof *wide, sha256, &err), &err);
    assert_string_equal(sha256, test_string(test_walk(golden, "sha256_as_int64_le")));
    for (uint32_t i = 0; i < 4; i++)
        expect_class(map, (int32_t)(n_ids - 4 + i),
                     (int32_t)test_i64(grq_json_at(test_walk(golden, "last_entries"), i)));
    grq_json_node *const cases = test_walk(golden, "cases");
    for (size_t i = 0; i < grq_json_count(cases); i++)
        expect_class(map, expect_i32(grq_json_at(cases, i), "raw_id"),
                     expect_i32(grq_json_at(cases, i), "compressed_id"));
    grq_json_node *const pairs = test_walk(golden, "partial_vs_normal_key_collisions");
    for (size_t i = 0; i < grq_json_count(pairs); i++) {
        grq_json_node *const pair = grq_json_at(pairs, i);
        expect_class(map, expect_i32(pair, "partial_raw_id"), expect_i32(pair, "shares_compressed_id"));
        expect_class(map, expect_i32(pair, "with_raw_id"), expect_i32(pair, "shares_compressed_id"));
    }
    grq_json_node *const largest = test_walk(golden, "largest_classes");
    for (size_t i = 0; i < grq_json_count(largest); i++)
        assert_int_equal(sizes[expect_i32(grq_json_at(largest, i), "compressed_id")],
                         test_u64(test_walk(grq_json_at(largest, i), "size")));
    free(wide);
    free(sizes);
    grq_json_close(document);
}

static void the_constants_are_those_of_the_family(void **state)
{
    (void)state;
    grq_error err;
    grq_geometry g;
    assert_ok(grq_geometry_family("deepseek-v41", &g, &err), &err);
    assert_int_equal(g.n_ids, GRQ_TOKENMAP_V41_CLASSES);
}

static void the_released_map_is_read(void **state)
{
    (void)state;
    static const char path[] = GATERQ_SOURCE_DIR "/../shared/specs/golden/engram_token_map_v41.i32le";
    if (access(path, R_OK) != 0) skip_loudly(path);
    grq_error err;
    grq_tokenmap *map;
    assert_ok(
        grq_tokenmap_open(path, GRQ_TOKENMAP_V41_IDS, GRQ_TOKENMAP_V41_CLASSES, GRQ_TOKENMAP_V41_SHA256, &map, &err),
        &err);
    expect_golden_map(map);
    grq_tokenmap_close(map);
}

static void the_released_map_is_built(void **state)
{
    (void)state;
    const char *const path = getenv("GATERQ_DEEPSEEK_TOKENIZER");
    if (!path || !*path)
        skip_loudly("GATERQ_DEEPSEEK_TOKENIZER names no tokenizer.json of DeepSeek-V3 or V4.1 to build the map from");
    grq_tokenmap *map = build(path, GRQ_TOKENMAP_V41_IDS);
    expect_golden_map(map);
    grq_json *document = test_golden("engram_hash.json");
    grq_json_node *const largest = test_walk(grq_json_root(document), "v41.token_map.largest_classes");
    for (size_t i = 0; i < grq_json_count(largest); i++)
        expect_class_key(map, expect_i32(grq_json_at(largest, i), "compressed_id"),
                         test_string(test_walk(grq_json_at(largest, i), "key")));
    if (grq_tokenmap_n_reserved(map) > 0) { /* DeepSeek-V3's */
        grq_tokenmap *v3 = build(path, 0);
        grq_json_node *const demo = test_walk(grq_json_root(document), "original_demo");
        assert_int_equal(grq_tokenmap_n_ids(v3), test_u64(test_walk(demo, "raw_vocab_size")));
        assert_int_equal(grq_tokenmap_n_classes(v3), test_u64(test_walk(demo, "compressed_vocab_size")));
        grq_tokenmap_close(v3);
    }
    grq_tokenmap_close(map);
    grq_json_close(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_have_their_keys),
        cmocka_unit_test(bytes_that_are_no_text_have_their_spelling_as_key),
        cmocka_unit_test(golden_cases_have_their_keys),
        cmocka_unit_test(classes_are_numbered_by_first_appearance),
        cmocka_unit_test(bytes_share_a_class_with_the_character_that_spells_them),
        cmocka_unit_test(single_bytes_are_all_there),
        cmocka_unit_test(added_tokens_are_decoded_like_the_others),
        cmocka_unit_test(broken_tokenizers_are_refused_with_their_field),
        cmocka_unit_test(a_saved_map_reads_back_equal),
        cmocka_unit_test(broken_maps_are_refused),
        cmocka_unit_test(ids_are_mapped_or_refused),
        cmocka_unit_test(the_constants_are_those_of_the_family),
        cmocka_unit_test(the_released_map_is_read),
        cmocka_unit_test(the_released_map_is_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
