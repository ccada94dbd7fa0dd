/* Learning byte-pair merges: the most frequent pair of neighbours becomes a token, again and again. */
#include <stdlib.h>
#include <string.h>

#include "qa/pieces.h"
#include "qa/vocab_internal.h"

/* One distinct piece of text, as the tokens it is made of so far. */
typedef struct {
    const char *text; /* where it was first seen; borrowed */
    size_t n_bytes;
    int32_t *tokens; /* (n_bytes) room */
    size_t n_tokens;
    uint64_t weight;
} piece;

/* Two neighbouring tokens, how often they occur, and which pieces may hold them (some no longer do). */
typedef struct {
    int32_t left, right;
    uint64_t weight;
    uint32_t *pieces;
    size_t n_pieces, room;
} pair;

typedef struct {
    piece *pieces;
    size_t n_pieces, pieces_room;
    uint32_t *piece_table; /* index + 1; open addressing */
    size_t piece_table_size;
    pair *pairs;
    size_t n_pairs, pairs_room;
    uint32_t *pair_table;
    size_t pair_table_size;
    grq_vocab *vocab;
} learner;

static grq_status no_memory(grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "no memory to learn a vocabulary");
}

/* Room for one more element; doubles. */
static bool grow(void **array, size_t n, size_t *room, size_t bytes)
{
    if (n < *room) return true;
    const size_t wanted = *room ? 2 * *room : 16;
    void *larger = realloc(*array, wanted * bytes);
    if (!larger) return false;
    *array = larger;
    *room = wanted;
    return true;
}

static uint64_t hash_text(const char *text, size_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
    return h ^ (h >> 29);
}

static uint64_t hash_pair(int32_t left, int32_t right)
{
    const uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 31);
}

/* ---- pieces ---- */

static bool rehash_pieces(learner *l)
{
    const size_t size = l->piece_table_size ? 2 * l->piece_table_size : 4096;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < l->n_pieces; i++) {
        size_t slot = hash_text(l->pieces[i].text, l->pieces[i].n_bytes) & (size - 1);
        while (table[slot]) slot = (slot + 1) & (size - 1);
        table[slot] = (uint32_t)i + 1;
    }
    free(l->piece_table);
    l->piece_table = table;
    l->piece_table_size = size;
    return true;
}

static bool add_piece(learner *l, const char *text, size_t n, uint64_t weight)
{
    if (2 * l->n_pieces >= l->piece_table_size && !rehash_pieces(l)) return false;
    size_t slot = hash_text(text, n) & (l->piece_table_size - 1);
    for (; l->piece_table[slot]; slot = (slot + 1) & (l->piece_table_size - 1)) {
        piece *known = &l->pieces[l->piece_table[slot] - 1];
        if (known->n_bytes == n && !memcmp(known->text, text, n)) {
            known->weight += weight;
            return true;
        }
    }
    if (!grow((void **)&l->pieces, l->n_pieces, &l->pieces_room, sizeof *l->pieces)) return false;
    piece *p = &l->pieces[l->n_pieces];
    *p = (piece){
        .text = text, .n_bytes = n, .tokens = malloc((n + 1) * sizeof *p->tokens), .n_tokens = n, .weight = weight
    };
    if (!p->tokens) return false;
    for (size_t i = 0; i < n; i++) p->tokens[i] = VOCAB_FIRST_BYTE + (unsigned char)text[i];
    l->piece_table[slot] = (uint32_t)++l->n_pieces;
    return true;
}

/* ---- pairs ---- */

static bool rehash_pairs(learner *l)
{
    const size_t size = l->pair_table_size ? 2 * l->pair_table_size : 4096;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < l->n_pairs; i++) {
        size_t slot = hash_pair(l->pairs[i].left, l->pairs[i].right) & (size - 1);
        while (table[slot]) slot = (slot + 1) & (size - 1);
        table[slot] = (uint32_t)i + 1;
    }
    free(l->pair_table);
    l->pair_table = table;
    l->pair_table_size = size;
    return true;
}

static pair *find_pair(learner *l, int32_t left, int32_t right)
{
    if (2 * l->n_pairs >= l->pair_table_size && !rehash_pairs(l)) return NULL;
    size_t slot = hash_pair(left, right) & (l->pair_table_size - 1);
    for (; l->pair_table[slot]; slot = (slot + 1) & (l->pair_table_size - 1)) {
        pair *known = &l->pairs[l->pair_table[slot] - 1];
        if (known->left == left && known->right == right) return known;
    }
    if (!grow((void **)&l->pairs, l->n_pairs, &l->pairs_room, sizeof *l->pairs)) return NULL;
    pair *p = &l->pairs[l->n_pairs];
    *p = (pair){ .left = left, .right = right };
    l->pair_table[slot] = (uint32_t)++l->n_pairs;
    return p;
}

/* Counts the neighbours of one piece in, and notes the piece with each of its pairs. */
static bool count_in(learner *l, size_t index)
{
    const piece *p = &l->pieces[index];
    for (size_t i = 0; i + 1 < p->n_tokens; i++) {
        pair *q = find_pair(l, p->tokens[i], p->tokens[i + 1]);
        if (!q || !grow((void **)&q->pieces, q->n_pieces, &q->room, sizeof *q->pieces)) return false;
        q->weight += p->weight;
        if (!q->n_pieces || q->pieces[q->n_pieces - 1] != index) q->pieces[q->n_pieces++] = (uint32_t)index;
    }
    return true;
}

static void count_out(learner *l, size_t index)
{
    const piece *p = &l->pieces[index];
    for (size_t i = 0; i + 1 < p->n_tokens; i++) {
        pair *q = find_pair(l, p->tokens[i], p->tokens[i + 1]); /* exists: it was counted in */
        if (q) q->weight -= p->weight;
    }
}

/* ---- merging ---- */

static int compare_tokens(const grq_vocab *v, int32_t a, int32_t b)
{
    const vocab_token *x = &v->tokens[a], *y = &v->tokens[b];
    const int order = memcmp(x->bytes, y->bytes, x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes);
    if (order) return order;
    return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

/* The heaviest pair; of equal ones that with the larger bytes, left token first. Independent of the order of texts. */
static const pair *heaviest(const learner *l)
{
    const pair *best = NULL;
    for (size_t i = 0; i < l->n_pairs; i++) {
        const pair *p = &l->pairs[i];
        if (p->weight <= 1 || (best && p->weight < best->weight)) continue;
        if (best && p->weight == best->weight) {
            int order = compare_tokens(l->vocab, p->left, best->left);
            if (order == 0) order = compare_tokens(l->vocab, p->right, best->right);
            if (order < 0) continue;
        }
        best = p;
    }
    return best;
}

static bool holds(const piece *p, int32_t left, int32_t right)
{
    for (size_t i = 0; i + 1 < p->n_tokens; i++)
        if (p->tokens[i] == left && p->tokens[i + 1] == right) return true;
    return false;
}

static void join(piece *p, int32_t left, int32_t right, int32_t merged)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_tokens; i++) {
        const bool here = i + 1 < p->n_tokens && p->tokens[i] == left && p->tokens[i + 1] == right;
        p->tokens[n++] = here ? merged : p->tokens[i];
        i += here;
    }
    p->n_tokens = n;
}

static grq_status merge_heaviest(learner *l, const pair *best, grq_error *err)
{
    const int32_t left = best->left, right = best->right, merged = (int32_t)l->vocab->size;
    const grq_status st = vocab_add_merge(l->vocab, left, right, err);
    if (st != GRQ_OK) return st;
    const size_t index = (size_t)(best - l->pairs), n = best->n_pieces;
    uint32_t *pieces = l->pairs[index].pieces; /* taken over: the list of pairs may move below */
    l->pairs[index].pieces = NULL;
    l->pairs[index].n_pieces = l->pairs[index].room = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        piece *p = &l->pieces[pieces[i]];
        if (!holds(p, left, right)) continue;
        count_out(l, pieces[i]);
        join(p, left, right, merged);
        ok = count_in(l, pieces[i]);
    }
    free(pieces);
    return ok ? GRQ_OK : no_memory(err);
}

static grq_status collect(learner *l, const grq_weighted_text *texts, size_t n_texts, grq_error *err)
{
    for (size_t i = 0; i < n_texts; i++)
        for (size_t at = 0; at < texts[i].n_bytes;) {
            const size_t length = grq_piece_length(texts[i].text + at, texts[i].n_bytes - at);
            if (!add_piece(l, texts[i].text + at, length, texts[i].weight)) return no_memory(err);
            at += length;
        }
    for (size_t i = 0; i < l->n_pieces; i++)
        if (!count_in(l, i)) return no_memory(err);
    return GRQ_OK;
}

static void free_learner(learner *l)
{
    for (size_t i = 0; i < l->n_pieces; i++) free(l->pieces[i].tokens);
    for (size_t i = 0; i < l->n_pairs; i++) free(l->pairs[i].pieces);
    free(l->pieces);
    free(l->pairs);
    free(l->piece_table);
    free(l->pair_table);
}

grq_status grq_vocab_learn_bytes(const grq_weighted_text *texts, size_t n_texts, uint32_t vocab_size, grq_vocab **out,
                                 grq_error *err)
{
    *out = NULL;
    if (vocab_size < VOCAB_FIRST_MERGE || vocab_size > 1 << 24)
        return grq_fail(err, GRQ_E_USAGE, "vocab_size %u is not %d to %d", vocab_size, VOCAB_FIRST_MERGE, 1 << 24);
    learner l = { 0 };
    grq_status st = vocab_new(false, vocab_size, &l.vocab, err);
    if (st == GRQ_OK) st = vocab_add_bytes(l.vocab, err);
    if (st == GRQ_OK) st = collect(&l, texts, n_texts, err);
    while (st == GRQ_OK && l.vocab->size < vocab_size) {
        const pair *best = heaviest(&l);
        if (!best) break;
        st = merge_heaviest(&l, best, err);
    }
    if (st == GRQ_OK) st = vocab_index(l.vocab, err);
    free_learner(&l);
    if (st == GRQ_OK) *out = l.vocab;
    else grq_vocab_free(l.vocab);
    return st;
}
