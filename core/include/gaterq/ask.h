/* gaterq/ask.h - asks a model the questions of a suite, greedily, and marks the answers. */
#ifndef GATERQ_ASK_H
#define GATERQ_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "gaterq/match.h"
#include "gaterq/model.h"
#include "gaterq/progress.h"
#include "gaterq/world.h"

typedef struct {
    size_t n;
    char **outputs; /* raw text, up to the stop token */
    bool *correct;
} grq_answers;

/* Prompts go to the model in question order, GRQ_ASK_BATCH at a time: with a policy reader that is the batch whose
 * look-ups share one budget. `progress` is only asked whether to stop, after every batch. The caller ends *out with
 * grq_answers_free. */
enum { GRQ_ASK_BATCH = 256 };
grq_status grq_ask(const grq_model *model, const grq_memory_hook *hook, const grq_questions *questions,
                   const grq_match_rule *rule, int32_t stop_token, uint32_t max_new, const grq_progress *progress,
                   grq_answers *out, grq_error *err);
void grq_answers_free(grq_answers *answers);

#endif
