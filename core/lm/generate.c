/* Greedy generation and log-likelihoods: prompts in batches, through the decoder. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/model.h"
#include "lm/decoder.h"
#include "lm/model_internal.h"

enum { MAX_BATCH = 256 }; /* sequences that share a decoder, and with a policy reader one budget */

/* What both functions need for one batch. */
typedef struct {
    grq_decoder *decoder;
    uint32_t n;
    uint32_t n_new[MAX_BATCH];
    int32_t *tokens; /* of one step */
    float *logits;
} batch;

static void batch_free(batch *b)
{
    grq_decoder_free(b->decoder);
    free(b->tokens);
    free(b->logits);
}

static grq_status batch_new(const grq_model *model, const grq_memory_hook *hook, uint32_t n, uint64_t max_tokens,
                            size_t step_tokens, size_t n_logits, batch *out, grq_error *err)
{
    *out = (batch){ .n = n };
    if (max_tokens > UINT32_MAX)
        return grq_fail(err, GRQ_E_USAGE, "a sequence of %" PRIu64 " tokens is too long", max_tokens);
    out->tokens = calloc(step_tokens ? step_tokens : 1, sizeof *out->tokens);
    out->logits = lm_allocate(n_logits, model->shape.vocab_size * sizeof *out->logits);
    if (!out->tokens || !out->logits) return grq_fail(err, GRQ_E_NOMEM, "no memory for a batch of %u prompts", n);
    return grq_decoder_new(model, hook, n, (uint32_t)max_tokens, &out->decoder, err);
}

static int32_t best_id(const float *logits, uint32_t n_ids)
{
    uint32_t best = 0;
    for (uint32_t v = 1; v < n_ids; v++)
        if (logits[v] > logits[best]) best = v;
    return (int32_t)best;
}

/* Takes one token from every sequence that was just fed; those that go on feed it next. */
static size_t take_tokens(batch *b, uint32_t vocab_size, uint32_t max_new, int32_t stop_token, int32_t *const *outputs,
                          uint32_t *n_outputs)
{
    size_t n_next = 0;
    for (uint32_t s = 0; s < b->n; s++) {
        if (b->n_new[s] == 0) continue;
        const int32_t id = best_id(b->logits + (size_t)s * vocab_size, vocab_size);
        b->n_new[s] = 0;
        if (id == stop_token) continue;
        outputs[s][n_outputs[s]++] = id;
        if (n_outputs[s] == max_new) continue;
        b->n_new[s] = 1;
        b->tokens[n_next++] = id;
    }
    return n_next;
}

static grq_status generate_batch(const grq_model *model, const grq_memory_hook *hook, const grq_prompt *prompts,
                                 uint32_t n, uint32_t max_new, int32_t stop_token, int32_t *const *outputs,
                                 uint32_t *n_outputs, grq_error *err)
{
    size_t n_tokens = 0, longest = 0;
    for (uint32_t s = 0; s < n; s++) {
        n_tokens += prompts[s].n_tokens;
        if (prompts[s].n_tokens > longest) longest = prompts[s].n_tokens;
    }
    batch b;
    /* The last token written is never fed, so a sequence holds max_new - 1 of them. */
    grq_status st = batch_new(model, hook, n, longest + max_new - 1, n_tokens > n ? n_tokens : n, n, &b, err);
    size_t at = 0;
    for (uint32_t s = 0; s < n && st == GRQ_OK; s++) {
        memcpy(b.tokens + at, prompts[s].tokens, prompts[s].n_tokens * sizeof *b.tokens);
        b.n_new[s] = (uint32_t)prompts[s].n_tokens;
        at += prompts[s].n_tokens;
    }
    while (st == GRQ_OK && at > 0) {
        st = grq_decoder_step(b.decoder, b.n_new, b.tokens, b.logits, NULL, err);
        if (st == GRQ_OK) at = take_tokens(&b, model->shape.vocab_size, max_new, stop_token, outputs, n_outputs);
    }
    batch_free(&b);
    return st;
}

grq_status grq_generate(const grq_model *model, const grq_memory_hook *hook, const grq_prompt *prompts,
                        size_t n_prompts, uint32_t max_new, int32_t stop_token, int32_t *const *outputs,
                        uint32_t *n_outputs, grq_error *err)
{
    for (size_t i = 0; i < n_prompts; i++) {
        n_outputs[i] = 0;
        if (prompts[i].n_tokens == 0 || prompts[i].n_tokens > UINT32_MAX)
            return grq_fail(err, GRQ_E_USAGE, "prompt %zu has %zu tokens; it needs at least one", i,
                            prompts[i].n_tokens);
    }
    grq_status st = GRQ_OK;
    for (size_t i = 0; max_new > 0 && i < n_prompts && st == GRQ_OK; i += MAX_BATCH) {
        const uint32_t n = n_prompts - i < MAX_BATCH ? (uint32_t)(n_prompts - i) : MAX_BATCH;
        st = generate_batch(model, hook, prompts + i, n, max_new, stop_token, outputs + i, n_outputs + i, err);
        if (st != GRQ_OK) grq_fail_prefix(err, st, "prompts %zu to %zu", i, i + n - 1);
    }
    return st;
}

static double log_probability(const float *logits, uint32_t n_ids, int32_t id)
{
    double top = logits[0];
    for (uint32_t v = 1; v < n_ids; v++) top = logits[v] > top ? logits[v] : top;
    double sum = exp(logits[0] - top);
    for (uint32_t v = 1; v < n_ids; v++) sum += exp(logits[v] - top);
    return logits[id] - top - log(sum);
}

/* `first` is the number within the step of the token after which the continuation starts. */
static double continuation_of(batch *b, uint32_t vocab_size, size_t first, const grq_prompt *continuation)
{
    double sum = 0;
    for (size_t i = 0; i < continuation->n_tokens; i += LM_CHUNK) {
        const size_t n = continuation->n_tokens - i < LM_CHUNK ? continuation->n_tokens - i : LM_CHUNK;
        lm_decoder_logits(b->decoder, first + i, n, NULL, b->logits);
        for (size_t k = 0; k < n; k++)
            sum += log_probability(b->logits + k * vocab_size, vocab_size, continuation->tokens[i + k]);
    }
    return sum;
}

/* A sequence is its context and all of its continuation but the last token, which is only predicted. */
static size_t fed_tokens(const grq_prompt *context, const grq_prompt *continuation)
{
    return continuation->n_tokens == 0 ? 0 : context->n_tokens + continuation->n_tokens - 1;
}

static grq_status loglikelihood_batch(const grq_model *model, const grq_memory_hook *hook, const grq_prompt *contexts,
                                      const grq_prompt *continuations, uint32_t n, double *results, grq_error *err)
{
    size_t n_tokens = 0, longest = 1;
    for (uint32_t s = 0; s < n; s++) {
        const size_t fed = fed_tokens(&contexts[s], &continuations[s]);
        n_tokens += fed;
        if (fed > longest) longest = fed;
    }
    batch b;
    grq_status st = batch_new(model, hook, n, longest, n_tokens, LM_CHUNK, &b, err);
    size_t at = 0;
    for (uint32_t s = 0; s < n && st == GRQ_OK; s++) {
        b.n_new[s] = (uint32_t)fed_tokens(&contexts[s], &continuations[s]);
        if (b.n_new[s] == 0) continue;
        memcpy(b.tokens + at, contexts[s].tokens, contexts[s].n_tokens * sizeof *b.tokens);
        memcpy(b.tokens + at + contexts[s].n_tokens, continuations[s].tokens,
               (continuations[s].n_tokens - 1) * sizeof *b.tokens);
        at += b.n_new[s];
    }
    if (st == GRQ_OK) st = lm_decoder_feed(b.decoder, b.n_new, b.tokens, &n_tokens, err);
    at = 0;
    for (uint32_t s = 0; s < n && st == GRQ_OK; at += b.n_new[s++])
        results[s] = continuation_of(&b, model->shape.vocab_size, at + contexts[s].n_tokens - 1, &continuations[s]);
    batch_free(&b);
    return st;
}

static grq_status check_pair(const grq_model *model, size_t i, const grq_prompt *context,
                             const grq_prompt *continuation, grq_error *err)
{
    if (context->n_tokens == 0)
        return grq_fail(err, GRQ_E_USAGE, "context %zu is empty; nothing predicts the first token after it", i);
    for (size_t k = 0; k < continuation->n_tokens; k++) /* the last one is never fed, so the decoder cannot check it */
        if (continuation->tokens[k] < 0 || (uint32_t)continuation->tokens[k] >= model->shape.vocab_size)
            return grq_fail(err, GRQ_E_DATA, "continuation %zu, position %zu: token %d is outside the vocabulary of %u",
                            i, k, continuation->tokens[k], model->shape.vocab_size);
    return GRQ_OK;
}

grq_status grq_loglikelihood(const grq_model *model, const grq_memory_hook *hook, const grq_prompt *contexts,
                             const grq_prompt *continuations, size_t n, double *results, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t i = 0; i < n && st == GRQ_OK; i++) st = check_pair(model, i, &contexts[i], &continuations[i], err);
    for (size_t i = 0; i < n && st == GRQ_OK; i += MAX_BATCH) {
        const uint32_t size = n - i < MAX_BATCH ? (uint32_t)(n - i) : MAX_BATCH;
        st = loglikelihood_batch(model, hook, contexts + i, continuations + i, size, results + i, err);
        if (st != GRQ_OK) grq_fail_prefix(err, st, "items %zu to %zu", i, i + size - 1);
    }
    return st;
}
