/* Text in and out: random facts through files, random bytes through vocabularies, and both halves of the byte-pair code
 * against their definitions written the slow way. Failures print the seed (at the start) and the round. */
#include "support.h"

#include "gaterq/facts.h"
#include "gaterq/rng.h"
#include "gaterq/vocab.h"
#include "qa/pieces.h"

static grq_rng rng;

static size_t below(size_t n)
{
    return grq_rng_below(&rng, n);
}

/* Up to `max` characters of valid UTF-8, rich in what a TSV or JSON file must quote. Caller frees. */
static char *random_text(size_t max)
{
    static const char *const parts[] = { "a",    "Z",   " ",  "\"",   "\\",   "\t",           "\n",   "\r",
                                         "\r\n", ",",   "[",  "]",    "{",    "\\u0041",      "/",    "é",
                                         "ß",    "中",  "🇨🇽", "\x01", "\x7F", "\xEF\xBB\xBF", "\"\"", "'",
                                         "0",    "null" };
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    assert_non_null(to);
    for (size_t left = below(max + 1); left; left--) fputs(parts[below(ARRAY_LEN(parts))], to);
    assert_int_equal(fclose(to), 0);
    return text;
}

/* ---- facts ---- */

enum { MAX_FACTS = 8, MAX_ANSWERS = 4 };

static grq_fact random_fact(size_t row)
{
    const char **accepted = calloc(MAX_ANSWERS, sizeof *accepted);
    char *id, *question, *tail = random_text(8);
    grq_fact fact = {
        .subject = random_text(8), .relation = random_text(4), .object = random_text(8), .accepted = accepted
    };
    assert_true(asprintf(&id, "%zu %s", row, tail) > 0); /* the row number makes it unique */
    assert_true(asprintf(&question, "?%s", tail) > 0);
    fact.id = id;
    fact.question = question;
    fact.popularity = below(3) ? ldexp((double)below(1u << 30), (int)below(40) - 20) : NAN;
    for (size_t n = below(MAX_ANSWERS + 1); n; n--) {
        char *answer = random_text(6);
        if (*answer) accepted[fact.n_accepted++] = answer;
        else free(answer); /* empty answers are left out on reading */
    }
    free(tail);
    return fact;
}

static void free_fact(grq_fact *fact)
{
    const char *const texts[] = { fact->id, fact->subject, fact->relation, fact->object, fact->question };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) free((char *)texts[i]);
    for (size_t i = 0; i < fact->n_accepted; i++) free((char *)fact->accepted[i]);
    free((void *)fact->accepted);
}

static void check_same_fact(int round, const grq_fact *x, const grq_fact *y)
{
    if (strcmp(x->id, y->id) || strcmp(x->subject, y->subject) || strcmp(x->relation, y->relation) ||
        strcmp(x->object, y->object) || strcmp(x->question, y->question))
        fail_msg("round %d: a text of fact \"%s\" changed", round, x->id);
    if (x->popularity != y->popularity && !(isnan(x->popularity) && isnan(y->popularity)))
        fail_msg("round %d, fact \"%s\": popularity %a became %a", round, x->id, x->popularity, y->popularity);
    if (x->n_accepted != y->n_accepted)
        fail_msg("round %d, fact \"%s\": %zu answers became %zu", round, x->id, x->n_accepted, y->n_accepted);
    for (size_t k = 0; k < x->n_accepted; k++)
        if (strcmp(x->accepted[k], y->accepted[k]))
            fail_msg("round %d, fact \"%s\": answer \"%s\" became \"%s\"", round, x->id, x->accepted[k],
                     y->accepted[k]);
}

static void facts_come_back(void **state)
{
    (void)state;
    grq_rng_seed(&rng, test_seed());
    for (int round = 0; round < 100; round++) {
        grq_fact facts[MAX_FACTS];
        grq_facts *back;
        grq_error err;
        const size_t n = 1 + below(MAX_FACTS);
        for (size_t i = 0; i < n; i++) facts[i] = random_fact(i);
        assert_ok(grq_facts_write(test_path("facts.tsv"), facts, n, &err), &err);
        assert_ok(grq_facts_open(test_path("facts.tsv"), &back, &err), &err);
        assert_int_equal(grq_facts_count(back), n);
        for (size_t i = 0; i < n; i++) check_same_fact(round, &facts[i], grq_facts_at(back, i));
        grq_facts_close(back);
        for (size_t i = 0; i < n; i++) free_fact(&facts[i]);
    }
}

/* One byte of a sound file changed: read or refused by name, never a crash. */
static void damaged_files_are_read_or_refused(void **state)
{
    (void)state;
    grq_rng_seed(&rng, test_seed() + 1);
    grq_fact facts[MAX_FACTS];
    char *bytes;
    size_t n_bytes;
    grq_error err;
    for (size_t i = 0; i < MAX_FACTS; i++) facts[i] = random_fact(i);
    assert_ok(grq_facts_write(test_path("sound.tsv"), facts, MAX_FACTS, &err), &err);
    assert_ok(grq_file_read(test_path("sound.tsv"), 0, &bytes, &n_bytes, &err), &err);
    for (int round = 0; round < 2000; round++) {
        const size_t at = below(n_bytes);
        const char before = bytes[at];
        bytes[at] = (char)below(256);
        grq_facts *read = NULL;
        const grq_status st = grq_facts_open(test_write("damaged.tsv", bytes, n_bytes), &read, &err);
        if (st != GRQ_OK && (st != GRQ_E_DATA || !strstr(err.message, "damaged.tsv")))
            fail_msg("round %d, byte %zu: status %d: %s", round, at, (int)st, err.message);
        grq_facts_close(read);
        bytes[at] = before;
    }
    free(bytes);
    for (size_t i = 0; i < MAX_FACTS; i++) free_fact(&facts[i]);
}

/* ---- byte pairs, the slow way ---- */

enum { MAX_TEXTS = 12, MAX_TEXT = 48, MAX_MERGES = 24 };

typedef struct {
    char bytes[MAX_TEXT];
    size_t n;
} token;

typedef struct {
    token tokens[MAX_TEXT];
    size_t n;
    uint64_t weight;
} piece;

typedef struct {
    piece pieces[MAX_TEXTS * MAX_TEXT];
    size_t n_pieces;
    token merges[MAX_MERGES][2];
    size_t n_merges;
} slow_learner;

static int compare(const token *a, const token *b)
{
    const int order = memcmp(a->bytes, b->bytes, a->n < b->n ? a->n : b->n);
    return order ? order : (a->n > b->n) - (a->n < b->n);
}

static void split(const char *text, size_t n, uint64_t weight, slow_learner *l)
{
    for (size_t at = 0; at < n;) {
        const size_t length = grq_piece_length(text + at, n - at);
        piece *p = &l->pieces[l->n_pieces++];
        *p = (piece){ .n = length, .weight = weight };
        for (size_t i = 0; i < length; i++) p->tokens[i] = (token){ { text[at + i] }, 1 };
        at += length;
    }
}

static uint64_t weigh(const slow_learner *l, const token *left, const token *right)
{
    uint64_t weight = 0;
    for (size_t i = 0; i < l->n_pieces; i++)
        for (size_t k = 0; k + 1 < l->pieces[i].n; k++)
            if (!compare(&l->pieces[i].tokens[k], left) && !compare(&l->pieces[i].tokens[k + 1], right))
                weight += l->pieces[i].weight;
    return weight;
}

static void join_everywhere(piece *p, const token *left, const token *right)
{
    size_t n = 0;
    for (size_t k = 0; k < p->n; k++) {
        token t = p->tokens[k];
        if (k + 1 < p->n && !compare(&t, left) && !compare(&p->tokens[k + 1], right)) {
            memcpy(t.bytes + t.n, right->bytes, right->n);
            t.n += right->n;
            k++;
        }
        p->tokens[n++] = t;
    }
    p->n = n;
}

/* The heaviest pair becomes a token; ties go to the larger bytes; a pair of weight 1 or less is never joined. */
static bool learn_one(slow_learner *l)
{
    const token *left = NULL, *right = NULL;
    uint64_t best = 1;
    for (size_t i = 0; i < l->n_pieces; i++)
        for (size_t k = 0; k + 1 < l->pieces[i].n; k++) {
            const token *a = &l->pieces[i].tokens[k], *b = a + 1;
            const uint64_t weight = weigh(l, a, b);
            const int order = left ? compare(a, left) ? compare(a, left) : compare(b, right) : 1;
            if (weight < best || weight <= 1 || (weight == best && order <= 0)) continue;
            best = weight;
            left = a;
            right = b;
        }
    if (!left) return false;
    token *merge = l->merges[l->n_merges++];
    merge[0] = *left;
    merge[1] = *right;
    for (size_t i = 0; i < l->n_pieces; i++) join_everywhere(&l->pieces[i], &merge[0], &merge[1]);
    return true;
}

static size_t random_words(char text[MAX_TEXT])
{
    static const char letters[] = "aaab  bcé'sQ:.\n1";
    const size_t n = below(MAX_TEXT);
    for (size_t i = 0; i < n; i++) text[i] = below(20) ? letters[below(sizeof letters - 1)] : (char)below(256);
    return n;
}

static grq_vocab *learn(const grq_weighted_text *texts, size_t n)
{
    grq_error err;
    grq_vocab *vocab;
    assert_ok(grq_vocab_learn_bytes(texts, n, 257 + MAX_MERGES, &vocab, &err), &err);
    return vocab;
}

static void check_merges(int round, const slow_learner *l, const grq_vocab *vocab)
{
    if (grq_vocab_size(vocab) != 257 + l->n_merges)
        fail_msg("round %d: %u entries instead of %zu", round, grq_vocab_size(vocab), 257 + l->n_merges);
    for (size_t m = 0; m < l->n_merges; m++) {
        token want = l->merges[m][0], got = { .n = 0 };
        memcpy(want.bytes + want.n, l->merges[m][1].bytes, l->merges[m][1].n);
        want.n += l->merges[m][1].n;
        const char *bytes = grq_vocab_token(vocab, (int32_t)(257 + m), &got.n);
        memcpy(got.bytes, bytes, got.n);
        if (compare(&want, &got))
            fail_msg("round %d, merge %zu: \"%.*s\" instead of \"%.*s\"", round, m, (int)got.n, got.bytes, (int)want.n,
                     want.bytes);
    }
}

/* Encoding by definition: in every piece, merge after merge in the order they were learnt. */
static void check_encoding(int round, slow_learner *l, const grq_vocab *vocab, const char *text, size_t n)
{
    grq_error err;
    int32_t *ids;
    size_t n_ids, k = 0, n_back = 0;
    char *back;
    l->n_pieces = 0;
    split(text, n, 1, l);
    for (size_t m = 0; m < l->n_merges; m++)
        for (size_t i = 0; i < l->n_pieces; i++) join_everywhere(&l->pieces[i], &l->merges[m][0], &l->merges[m][1]);
    assert_ok(grq_vocab_encode(vocab, text, n, &ids, &n_ids, &err), &err);
    for (size_t i = 0; i < l->n_pieces; i++)
        for (size_t t = 0; t < l->pieces[i].n; t++, k++) {
            size_t length = 0;
            const char *bytes = k < n_ids ? grq_vocab_token(vocab, ids[k], &length) : NULL;
            if (!bytes || length != l->pieces[i].tokens[t].n || memcmp(bytes, l->pieces[i].tokens[t].bytes, length))
                fail_msg("round %d: token %zu of \"%.*s\" is not the definition's", round, k, (int)n, text);
            n_back += length;
        }
    if (k != n_ids || n_back != n) fail_msg("round %d: %zu tokens instead of %zu", round, n_ids, k);
    assert_ok(grq_vocab_decode(vocab, ids, n_ids, &back, &err), &err);
    if (memcmp(back, text, n)) fail_msg("round %d: \"%.*s\" does not come back", round, (int)n, text);
    free(ids);
    free(back);
}

static void byte_pairs_follow_their_definition(void **state)
{
    (void)state;
    static slow_learner l;
    grq_rng_seed(&rng, test_seed() + 2);
    for (int round = 0; round < 60; round++) {
        char bytes[MAX_TEXTS][MAX_TEXT];
        grq_weighted_text texts[MAX_TEXTS];
        const size_t n = 1 + below(MAX_TEXTS);
        l = (slow_learner){ 0 };
        for (size_t i = 0; i < n; i++) {
            texts[i] = (grq_weighted_text){ bytes[i], random_words(bytes[i]), 1 + below(4) };
            split(bytes[i], texts[i].n_bytes, texts[i].weight, &l);
        }
        while (l.n_merges < MAX_MERGES && learn_one(&l)) {
        }
        grq_vocab *vocab = learn(texts, n);
        check_merges(round, &l, vocab);
        grq_vocab_free(vocab);
        for (size_t i = n; i-- > 1;) { /* in another order: the same */
            const size_t other = below(i + 1);
            const grq_weighted_text t = texts[i];
            texts[i] = texts[other];
            texts[other] = t;
        }
        vocab = learn(texts, n);
        check_merges(round, &l, vocab);
        for (size_t i = 0; i < 10; i++) {
            char text[MAX_TEXT];
            const size_t length = random_words(text);
            check_encoding(round, &l, vocab, text, length);
        }
        grq_vocab_free(vocab);
    }
}

/* A "word" of a megabyte: pieces stay bounded, whole characters stay whole, and the bytes come back. */
static void endless_words_are_cut(void **state)
{
    (void)state;
    enum { N = 1000000 };
    grq_error err;
    char *text = malloc(N), *back;
    int32_t *ids;
    size_t n_ids, n_pieces = 0;
    for (size_t i = 0; i < N; i++) text[i] = i % 2 ? '\xA9' : '\xC3';
    for (size_t at = 0; at < N; n_pieces++) {
        const size_t length = grq_piece_length(text + at, N - at);
        assert_in_range(length, 1, PIECE_MAX_BYTES);
        assert_int_equal(length % 2, 0);
        at += length;
    }
    assert_int_equal(n_pieces, (N + PIECE_MAX_BYTES - 1) / PIECE_MAX_BYTES);
    const grq_weighted_text whole = { text, N, 1 };
    grq_vocab *vocab = learn(&whole, 1);
    assert_ok(grq_vocab_encode(vocab, text, N, &ids, &n_ids, &err), &err);
    assert_ok(grq_vocab_decode(vocab, ids, n_ids, &back, &err), &err);
    assert_memory_equal(back, text, N);
    free(ids);
    free(back);
    free(text);
    grq_vocab_free(vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_come_back),
        cmocka_unit_test(damaged_files_are_read_or_refused),
        cmocka_unit_test(byte_pairs_follow_their_definition),
        cmocka_unit_test(endless_words_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
