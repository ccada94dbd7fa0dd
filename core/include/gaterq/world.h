/* gaterq/world.h - a knowledge world: facts, the text that teaches them, the questions that ask for them.
 *
 * Two worlds share all of this code: the generated one (entities with multi-token names, Zipf popularity) and real
 * PopQA facts. Either is a fact file in PopQA's layout plus a JSON file of templates; the text around the facts is
 * generated. Nothing here sees gates, row counts or evaluation results. Recipes: specs/miniature.md and
 * specs/miniature-popqa.md. */
#ifndef GATERQ_WORLD_H
#define GATERQ_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/facts.h"
#include "gaterq/json.h"
#include "gaterq/progress.h"
#include "gaterq/status.h"
#include "gaterq/vocab.h"

/* Where a token of the corpus comes from. */
typedef enum {
    GRQ_TEXT_STATEMENT, /* a fact in a sentence */
    GRQ_TEXT_INFOBOX,   /* several facts of one entity in a row */
    GRQ_TEXT_QA,        /* a fact as question and answer */
    GRQ_TEXT_FILLER,    /* a paragraph of the topic grammar */
    GRQ_TEXT_PROMPT,    /* an evaluation prompt with its answer */
    GRQ_N_TEXT_KINDS
} grq_text_kind;
const char *grq_text_kind_name(grq_text_kind kind); /* "statement", ... */

typedef struct grq_world grq_world;

/* Reads the "world" object of an experiment config. `folder` is where relative paths in it start (the repository's
 * root); real data is looked for in $GATERQ_DATA, then ../shared/datasets. When it is nowhere, the error says so and
 * how to get it. All randomness of the world comes from the object's own "seed". */
grq_status grq_world_read(grq_json_node *object, const char *folder, grq_world **out, grq_error *err);
void grq_world_free(grq_world *world);

const grq_vocab *grq_world_vocab(const grq_world *world);
size_t grq_world_n_facts(const grq_world *world);
const grq_fact *grq_world_fact(const grq_world *world, size_t index);
const char *grq_world_name(const grq_world *world);   /* "generated" or "popqa" */
const char *grq_world_rule(const grq_world *world);   /* matching rule of its questions, see match.h */
int32_t grq_world_stop_token(const grq_world *world); /* ends an answer: "." or newline */
/* Counts of the selection, for the report: object with rows read, rows kept, reasons. */
void grq_world_describe(const grq_world *world, const char *key, grq_json_writer *writer);
grq_status grq_world_save_facts(const grq_world *world, const char *path, grq_error *err);

/* Text of exactly n_tokens tokens, a function of (world, seed) only. `kinds` (n_tokens, of grq_text_kind) may be NULL.
 * `mentions` (n_facts) may be NULL; else it counts how often each fact was stated. */
grq_status grq_world_corpus(const grq_world *world, size_t n_tokens, uint64_t seed, int32_t *tokens, uint8_t *kinds,
                            uint64_t *mentions, grq_error *err);

typedef struct {
    const char *id; /* the fact's id */
    size_t fact;    /* index into the world's facts */
    const char *subject, *relation;
    const int32_t *prompt; /* starts with the token that ends a line or sentence, so that nothing precedes it */
    size_t n_prompt;
    const int32_t *answer; /* the trained answer, without the stop token */
    size_t n_answer;
    size_t n_accepted;
    const char *const *accepted;
    double popularity;
    uint32_t quartile; /* 0 coldest .. 3 hottest among the questions returned; equal popularities together */
    bool held;         /* this fact's question form is never in the training text */
} grq_question;

/* Texts and ids belong to the world, which must outlive the questions. */
typedef struct {
    size_t n;
    grq_question *items;
} grq_questions;

/* The cold-facts suite: `limit` questions (0: all) drawn uniformly over facts by `seed`, in fact order. */
grq_status grq_world_questions(const grq_world *world, size_t limit, uint64_t seed, grq_questions *out, grq_error *err);
void grq_questions_free(grq_questions *questions);

#endif
