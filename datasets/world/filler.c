/* Filler paragraphs: a small topic grammar. Words of a paragraph come from a cast drawn once per paragraph, and verbs
 * agree with their nouns, so that attention can predict what no local n-gram holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world_internal.h"

/* ---- words, in a fixed order ---- */

static grq_status visit_list(grq_json_node *object, const char *key, const char *plural, world_word_visitor *visit,
                             void *context, grq_error *err)
{
    grq_json_node *list;
    grq_status st = grq_json_array(object, key, &list, err);
    for (size_t i = 0; st == GRQ_OK && i < grq_json_count(list); i++) {
        const char *word;
        st = grq_json_as_string(grq_json_at(list, i), &word, err);
        if (st != GRQ_OK) break;
        visit(context, word);
        if (!plural) continue;
        char inflected_word[128];
        if (snprintf(inflected_word, sizeof inflected_word, "%s%s", word, plural) >= (int)sizeof inflected_word)
            return grq_fail(err, GRQ_E_USAGE, "%s: a word is longer than 120 bytes", grq_json_where(list));
        visit(context, inflected_word);
    }
    return st;
}

/* "n3_5": the fifth noun of topic 3 of a generated world. */
static void topic_word(char kind, uint64_t topic, uint64_t i, const char *suffix, char out[64])
{
    snprintf(out, 64, "%c%llu_%llu%s", kind, (unsigned long long)topic, (unsigned long long)i, suffix);
}

typedef struct {
    uint64_t nouns, verbs, adjectives;
} topic_sizes;

static grq_status read_sizes(grq_json_node *filler, topic_sizes *s, grq_error *err)
{
    grq_json_node *object;
    grq_status st = grq_json_object(filler, "generated_topics", &object, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "nouns", 2, FILLER_MAX_WORDS, &s->nouns, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "verbs", 2, FILLER_MAX_WORDS, &s->verbs, err);
    if (st == GRQ_OK) st = grq_json_u64(object, "adjectives", 2, FILLER_MAX_WORDS, &s->adjectives, err);
    return st == GRQ_OK ? grq_json_finish(object, err) : st;
}

static void visit_generated(const topic_sizes *s, uint64_t n_topics, const char *plural, world_word_visitor *visit,
                            void *context)
{
    char word[64];
    for (uint64_t t = 0; t < n_topics; t++) {
        for (uint64_t i = 0; i < s->nouns; i++) {
            topic_word('n', t, i, "", word);
            visit(context, word);
            topic_word('n', t, i, plural, word);
            visit(context, word);
        }
        for (uint64_t i = 0; i < s->verbs; i++) {
            topic_word('v', t, i, "", word);
            visit(context, word);
            topic_word('v', t, i, plural, word);
            visit(context, word);
        }
        for (uint64_t i = 0; i < s->adjectives; i++) {
            topic_word('a', t, i, "", word);
            visit(context, word);
        }
    }
}

static grq_status visit_topics(grq_json_node *filler, const char *plural, world_word_visitor *visit, void *context,
                               grq_error *err)
{
    grq_json_node *topics;
    grq_status st = grq_json_array(filler, "topics", &topics, err);
    for (size_t t = 0; st == GRQ_OK && t < grq_json_count(topics); t++) {
        grq_json_node *topic = grq_json_at(topics, t);
        st = visit_list(topic, "nouns", plural, visit, context, err);
        if (st == GRQ_OK) st = visit_list(topic, "verbs", plural, visit, context, err);
        if (st == GRQ_OK) st = visit_list(topic, "adjectives", NULL, visit, context, err);
    }
    return st;
}

grq_status world_filler_words(grq_json_node *filler, uint64_t n_generated_topics, bool inflected_forms,
                              world_word_visitor *visit, void *context, grq_error *err)
{
    static const char *const keys[] = { "article", "first_article", "of" };
    const char *word, *plural;
    grq_status st = grq_json_string(filler, "plural", &plural, err);
    for (size_t i = 0; st == GRQ_OK && i < sizeof keys / sizeof *keys; i++) {
        st = grq_json_string(filler, keys[i], &word, err);
        if (st == GRQ_OK) visit(context, word);
    }
    if (st == GRQ_OK) st = visit_list(filler, "prepositions", NULL, visit, context, err);
    if (st == GRQ_OK) st = visit_list(filler, "conjunctions", NULL, visit, context, err);
    if (st == GRQ_OK && n_generated_topics) {
        topic_sizes sizes;
        st = read_sizes(filler, &sizes, err);
        if (st == GRQ_OK) visit_generated(&sizes, n_generated_topics, plural, visit, context);
        return st;
    }
    return st == GRQ_OK ? visit_topics(filler, inflected_forms ? plural : NULL, visit, context, err) : st;
}

/* ---- words as tokens ---- */

/* A word inside a sentence: byte vocabularies write the space before it. */
static grq_status encode_word(const grq_world *w, const char *word, token_run *out, grq_error *err)
{
    char text[160];
    const char *lead = strcmp(grq_vocab_kind(w->vocab), "bytes") ? "" : " ";
    if (snprintf(text, sizeof text, "%s%s", lead, word) >= (int)sizeof text)
        return grq_fail(err, GRQ_E_USAGE, "filler word \"%.40s...\" is longer than 150 bytes", word);
    return world_encode(w, text, out, err);
}

/* Singular and plural. Byte vocabularies keep the ending as a token of its own, so that agreement can be learnt. */
static grq_status encode_inflected(const grq_world *w, const char *word, const char *plural, inflected *out,
                                   grq_error *err)
{
    grq_status st = encode_word(w, word, &out->singular, err);
    if (st != GRQ_OK) return st;
    if (strcmp(grq_vocab_kind(w->vocab), "bytes")) {
        char text[160];
        snprintf(text, sizeof text, "%s%s", word, plural);
        return world_encode(w, text, &out->plural, err);
    }
    token_run ending = { 0 };
    st = world_encode(w, plural, &ending, err);
    if (st != GRQ_OK) return st;
    out->plural.n = out->singular.n + ending.n;
    out->plural.ids = malloc((out->plural.n + 1) * sizeof(int32_t));
    if (out->plural.ids) {
        memcpy(out->plural.ids, out->singular.ids, out->singular.n * sizeof(int32_t));
        memcpy(out->plural.ids + out->singular.n, ending.ids, ending.n * sizeof(int32_t));
    } else {
        st = grq_fail(err, GRQ_E_NOMEM, "no memory for a word");
    }
    token_run_free(&ending);
    return st;
}

static grq_status encode_list(const grq_world *w, grq_json_node *object, const char *key, token_run *out, uint32_t *n,
                              grq_error *err)
{
    grq_json_node *list;
    grq_status st = grq_json_array(object, key, &list, err);
    if (st != GRQ_OK) return st;
    if (grq_json_count(list) < 2 || grq_json_count(list) > FILLER_MAX_WORDS)
        return grq_fail(err, GRQ_E_USAGE, "%s: 2 to %d words", grq_json_where(list), FILLER_MAX_WORDS);
    for (*n = 0; st == GRQ_OK && *n < grq_json_count(list); ++*n) {
        const char *word;
        st = grq_json_as_string(grq_json_at(list, *n), &word, err);
        if (st == GRQ_OK) st = encode_word(w, word, &out[*n], err);
    }
    return st;
}

static grq_status encode_inflected_list(const grq_world *w, grq_json_node *object, const char *key, const char *plural,
                                        inflected *out, uint32_t *n, grq_error *err)
{
    grq_json_node *list;
    grq_status st = grq_json_array(object, key, &list, err);
    if (st != GRQ_OK) return st;
    if (grq_json_count(list) < 2 || grq_json_count(list) > FILLER_MAX_WORDS)
        return grq_fail(err, GRQ_E_USAGE, "%s: 2 to %d words", grq_json_where(list), FILLER_MAX_WORDS);
    for (*n = 0; st == GRQ_OK && *n < grq_json_count(list); ++*n) {
        const char *word;
        st = grq_json_as_string(grq_json_at(list, *n), &word, err);
        if (st == GRQ_OK) st = encode_inflected(w, word, plural, &out[*n], err);
    }
    return st;
}

static grq_status compile_generated_topic(const grq_world *w, const topic_sizes *s, uint64_t t, const char *plural,
                                          filler_topic *topic, grq_error *err)
{
    char word[64];
    grq_status st = GRQ_OK;
    for (; st == GRQ_OK && topic->n_nouns < s->nouns; topic->n_nouns++) {
        topic_word('n', t, topic->n_nouns, "", word);
        st = encode_inflected(w, word, plural, &topic->nouns[topic->n_nouns], err);
    }
    for (; st == GRQ_OK && topic->n_verbs < s->verbs; topic->n_verbs++) {
        topic_word('v', t, topic->n_verbs, "", word);
        st = encode_inflected(w, word, plural, &topic->verbs[topic->n_verbs], err);
    }
    for (; st == GRQ_OK && topic->n_adjectives < s->adjectives; topic->n_adjectives++) {
        topic_word('a', t, topic->n_adjectives, "", word);
        st = encode_word(w, word, &topic->adjectives[topic->n_adjectives], err);
    }
    return st;
}

static grq_status compile_topics(grq_world *w, grq_json_node *filler, uint64_t n_generated, const char *plural,
                                 grq_error *err)
{
    filler_grammar *g = &w->filler;
    topic_sizes sizes = { 0 };
    grq_json_node *topics = NULL;
    grq_status st = n_generated ? read_sizes(filler, &sizes, err) : grq_json_array(filler, "topics", &topics, err);
    if (st != GRQ_OK) return st;
    const size_t n = n_generated ? n_generated : grq_json_count(topics);
    g->topics = calloc(n + 1, sizeof *g->topics);
    if (!g->topics) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu topics", n);
    for (; st == GRQ_OK && g->n_topics < n; g->n_topics++) {
        filler_topic *topic = &g->topics[g->n_topics];
        if (n_generated) {
            st = compile_generated_topic(w, &sizes, g->n_topics, plural, topic, err);
            continue;
        }
        grq_json_node *node = grq_json_at(topics, g->n_topics);
        st = encode_inflected_list(w, node, "nouns", plural, topic->nouns, &topic->n_nouns, err);
        if (st == GRQ_OK) st = encode_inflected_list(w, node, "verbs", plural, topic->verbs, &topic->n_verbs, err);
        if (st == GRQ_OK) st = encode_list(w, node, "adjectives", topic->adjectives, &topic->n_adjectives, err);
        if (st == GRQ_OK) st = grq_json_finish(node, err);
    }
    return st;
}

grq_status world_compile_filler(grq_world *w, grq_json_node *filler, uint64_t n_generated_topics, grq_error *err)
{
    filler_grammar *g = &w->filler;
    const char *article, *first, *of, *end, *plural;
    const bool bytes = !strcmp(grq_vocab_kind(w->vocab), "bytes");
    grq_status st = grq_json_string(filler, "article", &article, err);
    if (st == GRQ_OK) st = grq_json_string(filler, "first_article", &first, err);
    if (st == GRQ_OK) st = grq_json_string(filler, "of", &of, err);
    if (st == GRQ_OK) st = grq_json_string(filler, "end", &end, err);
    if (st == GRQ_OK) st = grq_json_string(filler, "plural", &plural, err);
    if (st == GRQ_OK) st = grq_json_f64(filler, "preposition_share", 0, 1, &g->preposition_share, err);
    if (st == GRQ_OK) st = encode_word(w, article, &g->article, err);
    /* A paragraph's first word follows the end of another text: no space before it. */
    if (st == GRQ_OK)
        st = bytes ? world_encode(w, first, &g->first_article, err) : encode_word(w, first, &g->first_article, err);
    if (st == GRQ_OK) st = encode_word(w, of, &g->of, err);
    if (st == GRQ_OK) st = world_encode(w, end, &g->end, err);
    if (st == GRQ_OK) st = encode_list(w, filler, "prepositions", g->prepositions, &g->n_prepositions, err);
    if (st == GRQ_OK) st = encode_list(w, filler, "conjunctions", g->conjunctions, &g->n_conjunctions, err);
    if (st == GRQ_OK) st = compile_topics(w, filler, n_generated_topics, plural, err);
    return st == GRQ_OK ? grq_json_finish(filler, err) : st;
}

static void free_inflected(inflected *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        token_run_free(&list[i].singular);
        token_run_free(&list[i].plural);
    }
}

void world_free_filler(filler_grammar *g)
{
    for (size_t t = 0; g->topics && t < g->n_topics; t++) {
        free_inflected(g->topics[t].nouns, FILLER_MAX_WORDS);
        free_inflected(g->topics[t].verbs, FILLER_MAX_WORDS);
        for (uint32_t i = 0; i < FILLER_MAX_WORDS; i++) token_run_free(&g->topics[t].adjectives[i]);
    }
    for (uint32_t i = 0; i < FILLER_MAX_WORDS; i++) {
        token_run_free(&g->prepositions[i]);
        token_run_free(&g->conjunctions[i]);
    }
    token_run_free(&g->article);
    token_run_free(&g->first_article);
    token_run_free(&g->of);
    token_run_free(&g->end);
    free(g->topics);
    *g = (filler_grammar){ 0 };
}
