/* Damaged files: flipped, cut, repeated and inserted bytes end in a clean error or in a document that can be walked.
 * Meant for the sanitizers, which see the reads and leaks that a plain run does not. */
#include "support.h"

#include "gaterq/rng.h"
#include "gaterq/safetensors.h"

enum { ROUNDS = 3000, MAX_BYTES = 1 << 14 };

static const char json_sample[] =
    "{\"id\": \"demo\", \"seed\": 7, \"big\": \"18446744073709551615\", \"rate\": 2.5e-3,\n"
    " \"train\": {\"batch\": 16, \"steps\": [1, 2, {\"x\": null}], \"name\": \"r\\u00e9\\ud83d\\ude00 \xC3\xA9\"}, "
    "\"on\": true}\n";

typedef struct {
    unsigned char bytes[MAX_BYTES];
    size_t n;
} sample;

/* One to four edits; says in `what` what they were. */
static void damage(grq_rng *rng, sample *s, size_t first, char *what, size_t room)
{
    size_t n_what = 0;
    for (uint64_t edits = 1 + grq_rng_below(rng, 4); edits > 0 && s->n > first; edits--) {
        const size_t at = first + (size_t)grq_rng_below(rng, s->n - first);
        const unsigned kind = (unsigned)grq_rng_below(rng, 5), byte = (unsigned)grq_rng_below(rng, 256);
        switch (kind) {
        case 0: s->bytes[at] ^= (unsigned char)(1u << byte % 8); break;
        case 1: s->bytes[at] = (unsigned char)byte; break;
        case 2: s->n = at; break;
        case 3: /* a piece of JSON where it does not belong */
            s->bytes[at] = (unsigned char)"{}[]\",:0-.eu\\ntf "[byte % 17];
            break;
        default: /* a byte more */
            if (s->n == MAX_BYTES) break;
            memmove(s->bytes + at + 1, s->bytes + at, s->n - at);
            s->n++;
            s->bytes[at] = (unsigned char)byte;
        }
        if (n_what < room)
            n_what += (size_t)snprintf(what + n_what, room - n_what, " kind %u at %zu byte %u;", kind, at, byte);
    }
}

/* Touches everything, so that a sanitizer sees what is wrong. */
static size_t walk(grq_json_node *node)
{
    size_t n = 1 + strlen(grq_json_where(node));
    const char *text = NULL;
    if (grq_json_as_string(node, &text, NULL) == GRQ_OK) n += strlen(text);
    for (size_t i = 0; i < grq_json_count(node); i++) {
        grq_json_node *const child = grq_json_at(node, i);
        if (grq_json_kind_of(node) == GRQ_JSON_OBJECT && grq_json_find(node, grq_json_key_at(node, i)) != child)
            fail_msg("%s is not found by its key", grq_json_where(child));
        n += walk(child);
    }
    return n;
}

static void assert_clean_error(grq_status st, const grq_error *err, uint64_t seed, const char *what)
{
    if (st != GRQ_E_DATA || err->status != st || !err->message[0])
        fail_msg("seed %" PRIu64 ",%s: status %d, message \"%s\"", seed, what, (int)st, err->message);
}

static void damaged_json(void **state)
{
    (void)state;
    const uint64_t seed = test_seed();
    unsigned n_accepted = 0;
    for (uint64_t n = seed; n < seed + ROUNDS; n++) {
        grq_rng rng;
        grq_rng_seed_for(&rng, n, "damaged json");
        sample s = { .n = sizeof json_sample - 1 };
        memcpy(s.bytes, json_sample, s.n);
        char what[256] = "";
        damage(&rng, &s, 0, what, sizeof what);
        char *const exact = malloc(s.n ? s.n : 1); /* of this very size: a read past it is seen */
        assert_non_null(exact);
        memcpy(exact, s.bytes, s.n);
        grq_json *document;
        grq_error err = { 0 };
        const grq_status st = grq_json_parse("damaged", exact, s.n, &document, &err);
        free(exact);
        if (st == GRQ_OK) n_accepted += walk(grq_json_root(document)) > 0;
        else assert_clean_error(st, &err, n, what);
        grq_json_close(document);
    }
    print_message("%u of %d damaged documents are still JSON\n", n_accepted, ROUNDS);
}

static size_t make_safetensors(sample *s)
{
    static const float table[24] = { 1, 2, 3 };
    static const uint8_t codes[7] = { 9, 8, 7 };
    const grq_tensor tensors[] = {
        { "table", GRQ_F32, 2, { 8, 3 }, sizeof table, table },
        { "none", GRQ_BF16, 1, { 0 }, 0, NULL },
        { "codes", GRQ_U8, 1, { 7 }, sizeof codes, codes },
    };
    const grq_metadata metadata[] = { { "family", "engram-v1" } };
    const char *const path = test_path("whole.safetensors");
    grq_error err = { 0 };
    assert_ok(grq_safetensors_write(path, tensors, ARRAY_LEN(tensors), metadata, 1, &err), &err);
    char *bytes;
    assert_ok(grq_file_read(path, MAX_BYTES, &bytes, &s->n, &err), &err);
    memcpy(s->bytes, bytes, s->n);
    free(bytes);
    return s->n - sizeof table - sizeof codes; /* where the data begin */
}

/* What an accepted file hands out must lie inside it, without holes. */
static void touch(const grq_safetensors *file)
{
    unsigned sum = 0;
    const unsigned char *next = NULL; /* where the tensor must lie: right behind the one before */
    for (size_t i = 0; i < grq_safetensors_count(file); i++) {
        const grq_tensor *const t = grq_safetensors_at(file, i);
        if (next && (const unsigned char *)t->data != next)
            fail_msg("%s does not follow the tensor before it", t->name);
        next = (const unsigned char *)t->data + t->n_bytes;
        for (uint64_t b = 0; b < t->n_bytes; b++) sum += ((const unsigned char *)t->data)[b];
        assert_ptr_equal(grq_safetensors_find(file, t->name), t);
    }
    if (sum == 12345678) print_message("(never, but the sum is needed)\n");
    grq_safetensors_metadata(file, "family");
}

static void damaged_safetensors(void **state)
{
    (void)state;
    const uint64_t seed = test_seed();
    sample whole;
    make_safetensors(&whole);
    unsigned n_accepted = 0;
    for (uint64_t n = seed; n < seed + ROUNDS; n++) {
        grq_rng rng;
        grq_rng_seed_for(&rng, n, "damaged safetensors");
        sample s = whole;
        char what[256] = "";
        damage(&rng, &s, 0, what, sizeof what);
        grq_safetensors *file;
        grq_error err = { 0 };
        const grq_status st = grq_safetensors_open(test_write("damaged.safetensors", s.bytes, s.n), &file, &err);
        if (st == GRQ_OK) {
            n_accepted++;
            touch(file);
        } else {
            assert_clean_error(st, &err, n, what);
        }
        grq_safetensors_close(file);
    }
    print_message("%u of %d damaged files are still safetensors\n", n_accepted, ROUNDS);
}

static void every_cut_is_noticed(void **state)
{
    (void)state;
    sample whole;
    const size_t n_header = make_safetensors(&whole);
    assert_true(n_header % 64 == 0);
    for (size_t n = 0; n < whole.n; n++) {
        grq_safetensors *file;
        grq_error err = { 0 };
        assert_clean_error(grq_safetensors_open(test_write("cut.safetensors", whole.bytes, n), &file, &err), &err, n,
                           " cut");
        grq_json *document;
        if (n < sizeof json_sample - 2) /* the last byte is a line's end */
            assert_clean_error(grq_json_parse("cut", json_sample, n, &document, &err), &err, n, " cut");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_json),
        cmocka_unit_test(damaged_safetensors),
        cmocka_unit_test(every_cut_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
