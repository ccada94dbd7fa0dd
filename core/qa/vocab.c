#include "gaterq/vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "qa/pieces.h"
#include "qa/vocab_internal.h"

/* ---- building ---- */

static grq_status no_memory(grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "no memory for a vocabulary");
}

grq_status vocab_new(bool words, uint32_t room, grq_vocab **out, grq_error *err)
{
    grq_vocab *v = calloc(1, sizeof *v);
    *out = NULL;
    if (!v) return no_memory(err);
    v->words = words;
    v->room = room;
    v->tokens = calloc((size_t)room + 1, sizeof *v->tokens);
    v->merges = words ? NULL : calloc((size_t)room + 1, sizeof *v->merges);
    if (!v->tokens || (!words && !v->merges)) {
        grq_vocab_free(v);
        return no_memory(err);
    }
    *out = v;
    return vocab_add(v, "<pad>", words ? 5 : 0, err);
}

grq_status vocab_add(grq_vocab *v, const char *bytes, size_t n_bytes, grq_error *err)
{
    if (v->size == v->room)
        return grq_fail(err, GRQ_E_DATA, "the vocabulary has more than %" PRIu32 " entries", v->room);
    char *copy = malloc(n_bytes + 1);
    if (!copy) return no_memory(err);
    memcpy(copy, bytes, n_bytes);
    copy[n_bytes] = '\0';
    v->tokens[v->size++] = (vocab_token){ copy, n_bytes };
    return GRQ_OK;
}

grq_status vocab_add_bytes(grq_vocab *v, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (int b = 0; st == GRQ_OK && b < 256; b++) st = vocab_add(v, (const char[]){ (char)b }, 1, err);
    return st;
}

grq_status vocab_add_merge(grq_vocab *v, int32_t left, int32_t right, grq_error *err)
{
    const vocab_token *a = &v->tokens[left], *b = &v->tokens[right];
    /* No text has a longer token; a file whose merges keep doubling would fill the memory. */
    if (a->n_bytes + b->n_bytes > PIECE_MAX_BYTES)
        return grq_fail(err, GRQ_E_DATA, "vocabulary entry %" PRIu32 " would have %zu bytes, more than %d", v->size,
                        a->n_bytes + b->n_bytes, PIECE_MAX_BYTES);
    char *joined = malloc(a->n_bytes + b->n_bytes + 1);
    if (!joined) return no_memory(err);
    memcpy(joined, a->bytes, a->n_bytes);
    memcpy(joined + a->n_bytes, b->bytes, b->n_bytes);
    const grq_status st = vocab_add(v, joined, a->n_bytes + b->n_bytes, err);
    if (st == GRQ_OK) {
        v->merges[v->size - 1 - VOCAB_FIRST_MERGE][0] = left;
        v->merges[v->size - 1 - VOCAB_FIRST_MERGE][1] = right;
    }
    free(joined);
    return st;
}

/* ---- the look-up table ---- */

static uint64_t hash_bytes(const char *bytes, size_t n)
{
    uint64_t h = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3;
    return h ^ (h >> 29);
}

static uint64_t hash_pair(int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 31);
}

static bool same_word(const grq_vocab *v, uint32_t id, const char *bytes, size_t n)
{
    return v->tokens[id].n_bytes == n && !memcmp(v->tokens[id].bytes, bytes, n);
}

static bool same_pair(const grq_vocab *v, uint32_t id, int32_t left, int32_t right)
{
    const int32_t *pair = v->merges[id - VOCAB_FIRST_MERGE];
    return pair[0] == left && pair[1] == right;
}

int32_t vocab_find_word(const grq_vocab *v, const char *bytes, size_t n)
{
    for (size_t slot = hash_bytes(bytes, n) & (v->table_size - 1); v->table[slot];
         slot = (slot + 1) & (v->table_size - 1))
        if (same_word(v, v->table[slot], bytes, n)) return (int32_t)v->table[slot];
    return -1;
}

int32_t vocab_find_pair(const grq_vocab *v, int32_t left, int32_t right)
{
    for (size_t slot = hash_pair(left, right) & (v->table_size - 1); v->table[slot];
         slot = (slot + 1) & (v->table_size - 1))
        if (same_pair(v, v->table[slot], left, right)) return (int32_t)v->table[slot];
    return -1;
}

grq_status vocab_index(grq_vocab *v, grq_error *err)
{
    v->table_size = 16;
    while (v->table_size < 2 * (size_t)v->size) v->table_size *= 2;
    v->table = calloc(v->table_size, sizeof *v->table);
    if (!v->table) return no_memory(err);
    for (uint32_t id = v->words ? 1 : VOCAB_FIRST_MERGE; id < v->size; id++) {
        const vocab_token *t = &v->tokens[id];
        const int32_t *pair = v->words ? NULL : v->merges[id - VOCAB_FIRST_MERGE];
        const int32_t known =
            v->words ? vocab_find_word(v, t->bytes, t->n_bytes) : vocab_find_pair(v, pair[0], pair[1]);
        if (known >= 0)
            return grq_fail(err, GRQ_E_DATA, "vocabulary entry %" PRIu32 " \"%.60s\" repeats entry %" PRId32, id,
                            t->bytes, known);
        size_t slot = (v->words ? hash_bytes(t->bytes, t->n_bytes) : hash_pair(pair[0], pair[1])) & (v->table_size - 1);
        while (v->table[slot]) slot = (slot + 1) & (v->table_size - 1);
        v->table[slot] = id;
    }
    return GRQ_OK;
}

grq_status grq_vocab_new_words(const char *const *words, size_t n_words, grq_vocab **out, grq_error *err)
{
    *out = NULL;
    if (n_words > INT32_MAX - 1) return grq_fail(err, GRQ_E_USAGE, "a vocabulary of %zu words is too large", n_words);
    grq_vocab *v = NULL;
    grq_status st = vocab_new(true, (uint32_t)n_words + 1, &v, err);
    for (size_t i = 0; st == GRQ_OK && i < n_words; i++) {
        if (!*words[i] || strchr(words[i], ' '))
            st = grq_fail(err, GRQ_E_USAGE, "vocabulary word %zu \"%s\" is empty or holds a space", i, words[i]);
        else if (!strcmp(words[i], v->tokens[GRQ_PAD_TOKEN].bytes))
            st = grq_fail(err, GRQ_E_USAGE, "vocabulary word %zu \"%s\" is the name of the padding", i, words[i]);
        else if (!grq_utf8_valid(words[i])) /* a model file could not carry it */
            st = grq_fail(err, GRQ_E_USAGE, "vocabulary word %zu is not valid UTF-8", i);
        else st = vocab_add(v, words[i], strlen(words[i]), err);
    }
    if (st == GRQ_OK) st = vocab_index(v, err);
    if (st == GRQ_OK) *out = v;
    else grq_vocab_free(v);
    return st;
}

void grq_vocab_free(grq_vocab *v)
{
    if (!v) return;
    for (uint32_t i = 0; v->tokens && i < v->size; i++) free(v->tokens[i].bytes);
    free(v->tokens);
    free(v->table);
    free(v->merges);
    free(v);
}

grq_status grq_vocab_copy(const grq_vocab *vocab, grq_vocab **out, grq_error *err)
{
    grq_vocab *v = NULL;
    *out = NULL;
    grq_status st = vocab_new(vocab->words, vocab->size, &v, err);
    for (uint32_t i = 1; st == GRQ_OK && i < vocab->size; i++)
        st = vocab_add(v, vocab->tokens[i].bytes, vocab->tokens[i].n_bytes, err);
    if (st == GRQ_OK && !vocab->words)
        memcpy(v->merges, vocab->merges, (vocab->size - VOCAB_FIRST_MERGE) * sizeof *v->merges);
    if (st == GRQ_OK) st = vocab_index(v, err);
    if (st == GRQ_OK) *out = v;
    else grq_vocab_free(v);
    return st;
}

uint32_t grq_vocab_size(const grq_vocab *v)
{
    return v->size;
}

const char *grq_vocab_kind(const grq_vocab *v)
{
    return v->words ? "words" : "bytes";
}

const char *grq_vocab_token(const grq_vocab *v, int32_t id, size_t *n_bytes)
{
    if (id < 0 || (uint32_t)id >= v->size) return NULL;
    *n_bytes = v->tokens[id].n_bytes;
    return v->tokens[id].bytes;
}

/* ---- encoding ---- */

static grq_status encode_words(const grq_vocab *v, const char *text, size_t n, int32_t *ids, size_t *n_ids,
                               grq_error *err)
{
    size_t at = 0;
    *n_ids = 0;
    while (at < n) {
        if (text[at] == ' ') {
            at++;
            continue;
        }
        const char *space = memchr(text + at, ' ', n - at);
        const size_t length = space ? (size_t)(space - (text + at)) : n - at;
        const int32_t id = vocab_find_word(v, text + at, length);
        if (id < 0)
            return grq_fail(err, GRQ_E_DATA, "the word \"%.*s\" is not in the vocabulary of %" PRIu32 " entries",
                            (int)(length < 80 ? length : 80), text + at, v->size);
        ids[(*n_ids)++] = id;
        at += length;
    }
    return GRQ_OK;
}

static int32_t merge_at(const grq_vocab *v, const int32_t *ids, size_t i)
{
    const int32_t merged = vocab_find_pair(v, ids[i], ids[i + 1]);
    return merged >= 0 ? merged : INT32_MAX;
}

/* Joins the pair with the earliest merge, the leftmost first, until none is left. A join changes only the merges beside
 * it, so each costs two look-ups and a scan of at most PIECE_MAX_BYTES numbers. */
static size_t encode_piece(const grq_vocab *v, const char *piece, size_t n, int32_t *ids)
{
    int32_t merges[PIECE_MAX_BYTES]; /* (n - 1): what each id and its neighbour would become */
    for (size_t i = 0; i < n; i++) ids[i] = VOCAB_FIRST_BYTE + (unsigned char)piece[i];
    for (size_t i = 0; i + 1 < n; i++) merges[i] = merge_at(v, ids, i);
    while (n > 1) {
        size_t at = 0;
        for (size_t i = 1; i + 1 < n; i++) at = merges[i] < merges[at] ? i : at;
        if (merges[at] == INT32_MAX) break;
        ids[at] = merges[at];
        n--;
        memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
        if (at + 1 < n) {
            memmove(merges + at, merges + at + 1, (n - at - 1) * sizeof *merges);
            merges[at] = merge_at(v, ids, at);
        }
        if (at > 0) merges[at - 1] = merge_at(v, ids, at - 1);
    }
    return n;
}

static size_t encode_bytes(const grq_vocab *v, const char *text, size_t n, int32_t *ids)
{
    size_t n_ids = 0;
    for (size_t at = 0; at < n;) {
        const size_t length = grq_piece_length(text + at, n - at);
        n_ids += encode_piece(v, text + at, length, ids + n_ids);
        at += length;
    }
    return n_ids;
}

grq_status grq_vocab_encode(const grq_vocab *v, const char *text, size_t n_bytes, int32_t **ids, size_t *n_ids,
                            grq_error *err)
{
    int32_t *out = malloc((n_bytes + 1) * sizeof *out);
    *ids = NULL;
    *n_ids = 0;
    if (!out) return grq_fail(err, GRQ_E_NOMEM, "no memory for the tokens of %zu bytes", n_bytes);
    grq_status st = GRQ_OK;
    if (v->words) st = encode_words(v, text, n_bytes, out, n_ids, err);
    else *n_ids = encode_bytes(v, text, n_bytes, out);
    if (st == GRQ_OK) *ids = out;
    else free(out);
    return st;
}

grq_status grq_vocab_decode(const grq_vocab *v, const int32_t *ids, size_t n_ids, char **text, grq_error *err)
{
    size_t total = 0, at = 0;
    *text = NULL;
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= v->size)
            return grq_fail(err, GRQ_E_DATA,
                            "token %zu: id %" PRId32 " is not in the vocabulary of %" PRIu32 " entries", i, ids[i],
                            v->size);
        total += v->tokens[ids[i]].n_bytes + (v->words && i > 0);
    }
    char *out = malloc(total + 1);
    if (!out) return grq_fail(err, GRQ_E_NOMEM, "no memory for a text of %zu bytes", total);
    for (size_t i = 0; i < n_ids; i++) {
        const vocab_token *t = &v->tokens[ids[i]];
        if (v->words && i > 0) out[at++] = ' ';
        memcpy(out + at, t->bytes, t->n_bytes);
        at += t->n_bytes;
    }
    out[at] = '\0';
    *text = out;
    return GRQ_OK;
}

/* ---- JSON ---- */

void grq_vocab_write(const grq_vocab *v, const char *key, grq_json_writer *writer)
{
    grq_json_begin_object(writer, key);
    grq_json_put_string(writer, "kind", grq_vocab_kind(v));
    grq_json_begin_array(writer, v->words ? "words" : "merges");
    for (uint32_t id = v->words ? 1 : VOCAB_FIRST_MERGE; id < v->size; id++) {
        if (v->words) {
            grq_json_put_string(writer, NULL, v->tokens[id].bytes);
            continue;
        }
        char pair[32];
        snprintf(pair, sizeof pair, "%" PRId32 " %" PRId32, v->merges[id - VOCAB_FIRST_MERGE][0],
                 v->merges[id - VOCAB_FIRST_MERGE][1]);
        grq_json_put_string(writer, NULL, pair);
    }
    grq_json_end_array(writer);
    grq_json_end_object(writer);
}

static grq_status read_words(grq_json_node *object, grq_vocab **out, grq_error *err)
{
    grq_json_node *list;
    grq_status st = grq_json_array(object, "words", &list, err);
    if (st != GRQ_OK) return st;
    const size_t n = grq_json_count(list);
    const char **words = calloc(n + 1, sizeof *words);
    if (!words) return no_memory(err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) st = grq_json_as_string(grq_json_at(list, i), &words[i], err);
    if (st == GRQ_OK) st = grq_vocab_new_words(words, n, out, err);
    free(words);
    return st;
}

static grq_status read_merge(grq_vocab *v, grq_json_node *node, grq_error *err)
{
    const char *text;
    const grq_status st = grq_json_as_string(node, &text, err);
    if (st != GRQ_OK) return st;
    char *middle, again[64];
    const long left = strtol(text, &middle, 10), right = strtol(middle, NULL, 10);
    snprintf(again, sizeof again, "%ld %ld", left, right); /* in the one way that _write has, or not at all */
    if (strcmp(text, again) || left < 1 || right < 1 || left >= (long)v->size || right >= (long)v->size)
        return grq_fail(err, GRQ_E_DATA, "%s: \"%s\" is no pair of earlier ids", grq_json_where(node), text);
    return vocab_add_merge(v, (int32_t)left, (int32_t)right, err);
}

static grq_status read_merges(grq_json_node *object, grq_vocab **out, grq_error *err)
{
    grq_json_node *list;
    grq_vocab *v = NULL;
    grq_status st = grq_json_array(object, "merges", &list, err);
    if (st != GRQ_OK) return st;
    const size_t n = grq_json_count(list);
    if (n > 1 << 24) return grq_fail(err, GRQ_E_DATA, "%s: %zu merges are too many", grq_json_where(list), n);
    st = vocab_new(false, VOCAB_FIRST_MERGE + (uint32_t)n, &v, err);
    if (st == GRQ_OK) st = vocab_add_bytes(v, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) st = read_merge(v, grq_json_at(list, i), err);
    if (st == GRQ_OK) st = vocab_index(v, err);
    if (st == GRQ_OK) *out = v;
    else grq_vocab_free(v);
    return st;
}

grq_status grq_vocab_read(grq_json_node *object, grq_vocab **out, grq_error *err)
{
    const char *kind;
    *out = NULL;
    grq_status st = grq_json_string(object, "kind", &kind, err);
    if (st != GRQ_OK) return st;
    if (!strcmp(kind, "words")) st = read_words(object, out, err);
    else if (!strcmp(kind, "bytes")) st = read_merges(object, out, err);
    else return grq_fail(err, GRQ_E_DATA, "%s: kind \"%s\" is neither words nor bytes", grq_json_where(object), kind);
    if (st == GRQ_OK) st = grq_json_finish(object, err);
    if (st != GRQ_OK) {
        grq_vocab_free(*out);
        *out = NULL;
    }
    return st;
}
