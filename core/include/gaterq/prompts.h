/* gaterq/prompts.h - what a model is asked: the exact prompt strings of published protocols, zero- and few-shot.
 *
 * Demonstrations are drawn item by item from a stream of the seed and the item's id, so that they depend on nothing
 * else (no other item, no order, no thread), and their ids are returned to be published. Source:
 * specs/evaluation-protocols.md sections 2 to 6. */
#ifndef GATERQ_PROMPTS_H
#define GATERQ_PROMPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "gaterq/suite.h"

typedef enum {
    GRQ_SHOTS_NONE,            /* the protocol has none */
    GRQ_SHOTS_OTHER_RELATIONS, /* PopQA: from other relations of the same file, one each, in random order */
    GRQ_SHOTS_RANDOM,          /* from a file of their own, without repeats */
    GRQ_SHOTS_FIRST            /* CMMLU: the first of the subject's dev questions */
} grq_shot_rule;

typedef struct grq_prompt_protocol grq_prompt_protocol;
struct grq_prompt_protocol {
    const char *name, *suite, *description;
    grq_shot_rule shot_rule;
    uint32_t most_shots;      /* that the rule can give */
    uint32_t max_new_tokens;  /* 0: nothing is generated, continuations are scored */
    const char *stop[4];      /* up to the first NULL */
    const char *continuation; /* what stands before the letter of a choice; NULL: no choices */
    bool whole_prompt;        /* choices: the prompt with the letter in it is scored, not the letter alone */
    const struct grq_prompt_layout *layout;
};

/* NULL past the end. The first of a suite is the one that is taken when none is named. */
const grq_prompt_protocol *grq_prompt_protocol_at(size_t index);
/* `name` NULL: the suite's first. Fails listing the suite's protocols. */
grq_status grq_prompt_protocol_find(const char *suite, const char *name, const grq_prompt_protocol **out,
                                    grq_error *err);

enum { GRQ_MAX_SHOTS = 64 };

/* Demonstrations come from `pool`: PopQA: the items themselves; CMMLU: grq_suite_open_dev; others: another file. */
typedef struct grq_prompter grq_prompter;
grq_status grq_prompter_new(const grq_prompt_protocol *protocol, const grq_suite *pool, uint32_t n_shots, uint64_t seed,
                            grq_prompter **out, grq_error *err);
void grq_prompter_free(grq_prompter *prompter); /* takes NULL */

typedef struct {
    char *text; /* the prompt; generation starts right after its last character */
    uint32_t n_shots;
    const grq_suite_item *shots[GRQ_MAX_SHOTS]; /* in the prompt's order; of the pool */
} grq_prompt_text;

/* The caller ends *out with grq_prompt_text_free. An item that cannot have its demonstrations (a subject without dev
 * questions, fewer relations than shots) is an error that names it. Any number of threads may ask one prompter. */
grq_status grq_prompt_text_make(const grq_prompter *prompter, const grq_suite_item *item, grq_prompt_text *out,
                                grq_error *err);
void grq_prompt_text_free(grq_prompt_text *prompt);

#endif
