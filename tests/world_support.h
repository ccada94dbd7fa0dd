/* tests/world_support.h - worlds from config texts. */
#ifndef GATERQ_TESTS_WORLD_SUPPORT_H
#define GATERQ_TESTS_WORLD_SUPPORT_H

#include "support.h"

#include "gaterq/world.h"

#define GENERATED_CONFIG(entities, syllables)                                                                          \
    "{\"kind\":\"generated\",\"templates\":\"datasets/worlds/generated.json\",\"seed\":1,\"n_entities\":" entities     \
    ",\"n_syllables\":" syllables ",\"zipf\":0.9,\"floor\":0.2,\"n_people\":120,\"n_cities\":120,\"n_topics\":10,"     \
    "\"fact_share\":0.65,\"infobox_share\":0.45,\"qa_share\":0.15,\"shown_share\":0.5}"

static inline grq_status open_world(const char *config, grq_world **out, grq_error *err)
{
    grq_json *document;
    grq_status st = grq_json_parse("config", config, strlen(config), &document, err);
    if (st != GRQ_OK) return st;
    st = grq_world_read(grq_json_root(document), GATERQ_SOURCE_DIR, out, err);
    grq_json_close(document);
    return st;
}

static inline int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Distinct n-grams of a text whose ids are below 2^16; n <= 4. */
static inline size_t distinct_ngrams(const int32_t *tokens, size_t n_tokens, unsigned order)
{
    uint64_t *keys = malloc(n_tokens * sizeof *keys);
    size_t n = 0, distinct = 0;
    for (size_t i = order - 1; i < n_tokens; i++) {
        uint64_t key = 0;
        for (unsigned k = 0; k < order; k++) key = key << 16 | (uint64_t)tokens[i - k];
        keys[n++] = key;
    }
    qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 0; i < n; i++) distinct += i == 0 || keys[i] != keys[i - 1];
    free(keys);
    return distinct;
}

#endif
