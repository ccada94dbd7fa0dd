#include "gaterq/ask.h"

#include <stdlib.h>

/* One batch: prompts in, greedy tokens out. outputs (GRQ_ASK_BATCH, max_new) is the caller's. */
static grq_status ask_batch(const grq_model *model, const grq_memory_hook *hook, const grq_question *items, size_t n,
                            int32_t stop_token, uint32_t max_new, int32_t *tokens, uint32_t *n_tokens, grq_error *err)
{
    grq_prompt prompts[GRQ_ASK_BATCH];
    int32_t *outputs[GRQ_ASK_BATCH];
    for (size_t i = 0; i < n; i++) {
        prompts[i] = (grq_prompt){ items[i].prompt, items[i].n_prompt };
        outputs[i] = tokens + i * max_new;
    }
    return grq_generate(model, hook, prompts, n, max_new, stop_token, outputs, n_tokens, err);
}

static grq_status mark(const grq_model *model, const grq_match_rule *rule, const grq_question *item,
                       const int32_t *tokens, uint32_t n_tokens, char **output, bool *correct, grq_error *err)
{
    grq_status st = grq_vocab_decode(grq_model_vocab(model), tokens, n_tokens, output, err);
    if (st == GRQ_OK) st = grq_match(rule, *output, item->accepted, item->n_accepted, correct, err);
    if (st != GRQ_OK) grq_fail_prefix(err, st, "question %s", item->id);
    return st;
}

grq_status grq_ask(const grq_model *model, const grq_memory_hook *hook, const grq_questions *questions,
                   const grq_match_rule *rule, int32_t stop_token, uint32_t max_new, const grq_progress *progress,
                   grq_answers *out, grq_error *err)
{
    const size_t n = questions->n;
    *out = (grq_answers){ .n = n,
                          .outputs = calloc(n + 1, sizeof *out->outputs),
                          .correct = calloc(n + 1, sizeof *out->correct) };
    int32_t *tokens = calloc((size_t)GRQ_ASK_BATCH * max_new + 1, sizeof *tokens);
    uint32_t n_tokens[GRQ_ASK_BATCH];
    grq_status st = GRQ_OK;
    if (!out->outputs || !out->correct || !tokens) st = grq_fail(err, GRQ_E_NOMEM, "no memory for %zu answers", n);
    for (size_t start = 0; st == GRQ_OK && start < n; start += GRQ_ASK_BATCH) {
        const size_t count = n - start < GRQ_ASK_BATCH ? n - start : GRQ_ASK_BATCH;
        st = ask_batch(model, hook, questions->items + start, count, stop_token, max_new, tokens, n_tokens, err);
        for (size_t i = 0; st == GRQ_OK && i < count; i++)
            st = mark(model, rule, &questions->items[start + i], tokens + i * max_new, n_tokens[i],
                      &out->outputs[start + i], &out->correct[start + i], err);
        if (st == GRQ_OK && progress && progress->stop_requested && progress->stop_requested(progress->context))
            st = grq_fail(err, GRQ_E_INTERRUPTED, "stopped after %zu of %zu questions", start + count, n);
    }
    free(tokens);
    if (st != GRQ_OK) grq_answers_free(out);
    return st;
}

void grq_answers_free(grq_answers *answers)
{
    if (answers->outputs)
        for (size_t i = 0; i < answers->n; i++) free(answers->outputs[i]);
    free(answers->outputs);
    free(answers->correct);
    *answers = (grq_answers){ 0 };
}
