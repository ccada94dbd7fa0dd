/* The decoder against the model's definition, against the training forward pass, against itself in pieces, and what is
 * built on it. */
#include "lm_support.h"

#include "gaterq/hash.h"
#include "lm/model_internal.h"
#include "lm/pass.h"

/* Logits of these models are of order 1. Sums of at most 64 terms in another order: a few float roundings per layer. */
static const double TOLERANCE = 2e-5;

static grq_model *trained_looking(lm_test_shape shape)
{
    grq_model *model = lm_make_model(shape, 3);
    grq_rng rng;
    grq_rng_seed(&rng, 4);
    for (size_t i = 0; i < model->layout.n_tensors; i++) {
        const lm_tensor *t = &model->layout.tensors[i];
        for (size_t k = 0; k < t->n; k++)
            model->weights[t->at + k] += (float)((t->role == LM_TABLE ? 0.5 : 0.1) * grq_rng_normal(&rng));
    }
    return model;
}

static void assert_close(const float *got, const float *want, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= TOLERANCE))
            fail_msg("%s: element %zu: got %.9g, want %.9g", what, i, got[i], want[i]);
}

/* ---- the model by definition, one token and one number at a time, in double ---- */

enum { MAX_TOKENS = 48, MAX_WIDTH = 32, MAX_BRANCHES = 4 };

typedef struct {
    const grq_model *model;
    size_t n, d, m;
    double h[MAX_TOKENS][MAX_BRANCHES][MAX_WIDTH];
} reference;

static double dot_of(const float *w, const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += w[i] * x[i];
    return sum;
}

/* RMS-normalised sum_b read_b h_b of token t. */
static void reference_read(const reference *r, size_t t, const float *read, const float *gain, double *y)
{
    double squares = 0;
    for (size_t i = 0; i < r->d; i++) {
        y[i] = 0;
        for (size_t b = 0; b < r->m; b++) y[i] += read[b] * r->h[t][b][i];
        squares += y[i] * y[i];
    }
    for (size_t i = 0; i < r->d; i++) y[i] *= gain[i] / sqrt(squares / (double)r->d + r->model->shape.norm_eps);
}

static void reference_write(reference *r, size_t t, const float *mix, const float *write, const double *out)
{
    double next[MAX_BRANCHES][MAX_WIDTH];
    for (size_t i = 0; i < r->m; i++)
        for (size_t k = 0; k < r->d; k++) {
            next[i][k] = write[i] * out[k];
            for (size_t j = 0; j < r->m; j++) next[i][k] += mix[i * r->m + j] * r->h[t][j][k];
        }
    memcpy(r->h[t], next, sizeof next);
}

static void reference_memory(reference *r, uint32_t index, const int32_t *ids)
{
    const grq_memory_layer *layer = grq_model_memory(r->model, index);
    const grq_geometry *g = layer->geometry;
    int64_t *rows = malloc(r->n * g->n_columns * sizeof *rows);
    grq_hash_state state;
    grq_error err = { 0 };
    grq_hash_start(&state);
    assert_ok(grq_hash_rows(g, index, &state, ids, r->n, rows, &err), &err);
    for (size_t t = 0; t < r->n; t++) {
        double e[64], key[MAX_WIDTH], query_gain[MAX_WIDTH], key_gain[MAX_WIDTH];
        for (size_t i = 0; i < g->row_values; i++)
            e[i] = layer->table[(size_t)rows[t * g->n_columns + i / g->row_dim] * g->row_dim + i % g->row_dim];
        for (size_t b = 0; b < r->m; b++) {
            for (size_t i = 0; i < r->d; i++) {
                key[i] = dot_of(layer->key_weight + (b * r->d + i) * g->row_values, e, g->row_values);
                query_gain[i] = layer->query_gain[b * r->d + i];
                key_gain[i] = layer->key_gain[b * r->d + i];
            }
            const double gate =
                grq_gate_f64(g->width, r->h[t][b], key, query_gain, key_gain, g->norm_eps, g->gate_clamp, NULL);
            for (size_t i = 0; i < r->d; i++)
                r->h[t][b][i] += gate * dot_of(layer->value_weight + i * g->row_values, e, g->row_values);
        }
    }
    free(rows);
}

/* read (n, d) from qkv (n, 3 d); every head but the last loses 2^(-8 (h + 1) / n_heads) a token of distance. */
static void reference_attention(const reference *r, double qkv[][3 * MAX_WIDTH], double read[][MAX_WIDTH])
{
    const size_t n_heads = r->model->shape.n_heads, dim = r->d / n_heads;
    for (size_t h = 0; h < n_heads; h++)
        for (size_t i = 0; i < r->n; i++) {
            double p[MAX_TOKENS], sum = 0;
            for (size_t j = 0; j <= i; j++) {
                double score = 0;
                for (size_t c = h * dim; c < (h + 1) * dim; c++) score += qkv[i][c] * qkv[j][r->d + c];
                const double slope = h + 1 == n_heads ? 0 : pow(2, -8.0 * (double)(h + 1) / (double)n_heads);
                p[j] = exp(score / sqrt((double)dim) - slope * (double)(i - j));
                sum += p[j];
            }
            for (size_t c = h * dim; c < (h + 1) * dim; c++) {
                read[i][c] = 0;
                for (size_t j = 0; j <= i; j++) read[i][c] += p[j] / sum * qkv[j][2 * r->d + c];
            }
        }
}

static void reference_block(reference *r, uint32_t block)
{
    static double qkv[MAX_TOKENS][3 * MAX_WIDTH], read[MAX_TOKENS][MAX_WIDTH];
    const float *w = r->model->weights;
    const lm_sublayer_at *a = &r->model->layout.blocks[block][LM_ATTENTION],
                         *f = &r->model->layout.blocks[block][LM_MLP];
    const size_t d = r->d, inner = r->model->shape.mlp_width;
    double y[MAX_WIDTH], out[MAX_WIDTH], hidden[64];
    for (size_t t = 0; t < r->n; t++) {
        reference_read(r, t, w + a->read, w + a->norm, y);
        for (size_t i = 0; i < 3 * d; i++) qkv[t][i] = dot_of(w + a->in + i * d, y, d);
    }
    reference_attention(r, qkv, read);
    for (size_t t = 0; t < r->n; t++) {
        for (size_t i = 0; i < d; i++) out[i] = dot_of(w + a->out + i * d, read[t], d);
        reference_write(r, t, w + a->mix, w + a->write, out);
        reference_read(r, t, w + f->read, w + f->norm, y);
        for (size_t i = 0; i < inner; i++) hidden[i] = fmax(0, dot_of(w + f->in + i * d, y, d));
        for (size_t i = 0; i < d; i++) out[i] = dot_of(w + f->out + i * inner, hidden, inner);
        reference_write(r, t, w + f->mix, w + f->write, out);
    }
}

static void decoder_computes_the_defined_model(void **state)
{
    (void)state;
    const lm_test_shape shapes[] = { LM_SMALL, LM_ODD };
    static reference r;
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        grq_model *model = trained_looking(shapes[k]);
        const uint32_t vocab = shapes[k].vocab_size, n = MAX_TOKENS;
        int32_t *ids = lm_make_text(n, vocab, 8);
        r = (reference){ .model = model, .n = n, .d = shapes[k].width, .m = shapes[k].n_branches };
        for (size_t t = 0; t < n; t++)
            for (size_t b = 0; b < r.m; b++)
                for (size_t i = 0; i < r.d; i++)
                    r.h[t][b][i] = model->weights[model->layout.embed + (size_t)ids[t] * r.d + i];
        for (uint32_t b = 0; b < shapes[k].n_blocks; b++) {
            if (b > 0) reference_memory(&r, b - 1, ids); /* before block 1 and, in deeper models, block 2 */
            reference_block(&r, b);
        }
        float *logits = malloc(n * vocab * sizeof *logits);
        grq_decoder *decoder = NULL;
        grq_error err = { 0 };
        assert_ok(grq_decoder_new(model, NULL, 1, n, &decoder, &err), &err);
        assert_ok(grq_decoder_step(decoder, &n, ids, NULL, logits, &err), &err);
        for (size_t t = 0; t < n; t++) {
            double y[MAX_WIDTH];
            reference_read(&r, t, model->weights + model->layout.final_read, model->weights + model->layout.final_norm,
                           y);
            for (size_t v = 0; v < vocab; v++) {
                const double want = dot_of(model->weights + model->layout.head + v * r.d, y, r.d);
                if (!(fabs(logits[t * vocab + v] - want) <= TOLERANCE))
                    fail_msg("token %zu, id %zu: logit %.9g, by definition %.9g", t, v, logits[t * vocab + v], want);
            }
        }
        free(logits);
        free(ids);
        grq_decoder_free(decoder);
        grq_model_free(model);
    }
}

static void decoder_agrees_with_the_training_forward(void **state)
{
    (void)state;
    const lm_test_shape shapes[] = { LM_SMALL, LM_ODD };
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        enum { WINDOW = 41, SEQUENCES = 3 };
        grq_model *model = trained_looking(shapes[k]);
        const uint32_t vocab = shapes[k].vocab_size;
        int32_t *text = lm_make_text(SEQUENCES * WINDOW + 1, vocab, 9);
        const lm_objective objective = { .n_positions = 1 };
        grq_error err = { 0 };
        lm_batch batch;
        lm_pass *pass = NULL;
        grq_decoder *decoder = NULL;
        assert_ok(lm_batch_new(&model->shape.memory, SEQUENCES, WINDOW, &batch, &err), &err);
        assert_ok(lm_pass_new(&model->layout, SEQUENCES, WINDOW, &pass, &err), &err);
        assert_ok(grq_decoder_new(model, NULL, SEQUENCES, WINDOW, &decoder, &err), &err);
        for (size_t s = 0; s < SEQUENCES; s++) assert_ok(lm_batch_load(&batch, s, text + s * WINDOW, &err), &err);
        lm_pass_forward(pass, model->weights, &batch, &objective);
        float *logits = malloc(SEQUENCES * WINDOW * vocab * sizeof *logits);
        const uint32_t n_new[SEQUENCES] = { WINDOW, WINDOW, WINDOW };
        assert_ok(grq_decoder_step(decoder, n_new, text, NULL, logits, &err), &err);
        for (size_t t = 0; t < SEQUENCES * WINDOW; t++) { /* the pass leaves softmax minus one-hot */
            double sum = 0;
            for (uint32_t v = 0; v < vocab; v++) sum += exp(logits[t * vocab + v]);
            for (uint32_t v = 0; v < vocab; v++) {
                const double got = exp(logits[t * vocab + v]) / sum;
                const double want = pass->logits[t * vocab + v] + ((int32_t)v == batch.targets[t]);
                if (!(fabs(got - want) <= TOLERANCE))
                    fail_msg("token %zu, id %u: probability %.9g, in training %.9g", t, v, got, want);
            }
        }
        free(logits);
        free(text);
        lm_pass_free(pass);
        lm_batch_free(&batch);
        grq_decoder_free(decoder);
        grq_model_free(model);
    }
}

/* Ragged sequences in random pieces against each sequence alone and at once. Crosses LM_KEY_TILE and LM_CHUNK. */
static void pieces_give_the_logits_of_the_whole(void **state)
{
    (void)state;
    enum { SEQUENCES = 5, LONGEST = 150 };
    static const uint32_t lengths[SEQUENCES] = { 150, 1, 40, 97, 66 };
    const uint64_t seed = test_seed();
    grq_model *model = trained_looking(LM_SMALL);
    const uint32_t vocab = LM_SMALL.vocab_size;
    int32_t *text = lm_make_text(SEQUENCES * LONGEST, vocab, 11);
    float *whole = malloc(LONGEST * vocab * sizeof *whole), *last = calloc(SEQUENCES * vocab, sizeof *last);
    float *pieces = malloc(SEQUENCES * LONGEST * vocab * sizeof *pieces),
          *step = malloc(SEQUENCES * LONGEST * vocab * sizeof *step);
    int32_t tokens[SEQUENCES * LONGEST];
    grq_error err = { 0 };
    grq_decoder *decoder = NULL;
    grq_rng rng;
    grq_rng_seed(&rng, seed);
    assert_ok(grq_decoder_new(model, NULL, SEQUENCES, LONGEST, &decoder, &err), &err);
    for (;;) {
        uint32_t n_new[SEQUENCES];
        size_t n = 0;
        for (uint32_t s = 0; s < SEQUENCES; s++) {
            const uint32_t done = grq_decoder_length(decoder, s), left = lengths[s] - done;
            n_new[s] = (uint32_t)grq_rng_below(&rng, left < 60 ? left + 1 : 61);
            memcpy(tokens + n, text + s * LONGEST + done, n_new[s] * sizeof *tokens);
            n += n_new[s];
        }
        for (size_t i = 0; i < SEQUENCES * vocab; i++) last[i] = -77;
        assert_ok(grq_decoder_step(decoder, n_new, tokens, last, step, &err), &err);
        n = 0;
        bool complete = true;
        for (uint32_t s = 0; s < SEQUENCES; s++) {
            const uint32_t end = grq_decoder_length(decoder, s), start = grq_decoder_step_starts(decoder)[s];
            assert_int_equal(start + n_new[s], end);
            assert_int_equal(grq_decoder_step_counts(decoder)[s], n_new[s]);
            memcpy(pieces + (s * LONGEST + start) * vocab, step + n * vocab, n_new[s] * vocab * sizeof *step);
            n += n_new[s];
            if (n_new[s] > 0) assert_close(last + s * vocab, step + (n - 1) * vocab, vocab, "last logits");
            else assert_true(last[s * vocab] == -77 && last[(s + 1) * vocab - 1] == -77);
            complete = complete && end == lengths[s];
        }
        if (complete) break;
    }
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        uint32_t n_new[SEQUENCES] = { 0 };
        n_new[s] = lengths[s];
        grq_decoder_reset(decoder);
        assert_ok(grq_decoder_step(decoder, n_new, text + s * LONGEST, NULL, whole, &err), &err);
        assert_close(pieces + s * LONGEST * vocab, whole, lengths[s] * vocab, "pieces");
    }
    grq_decoder_free(decoder);
    grq_model_free(model);
    free(text);
    free(whole);
    free(pieces);
    free(step);
    free(last);
}

static void bad_steps_are_refused_and_change_nothing(void **state)
{
    (void)state;
    grq_model *model = trained_looking(LM_ODD);
    grq_decoder *decoder = NULL;
    grq_error err = { 0 };
    float logits[2 * 23], again[2 * 23];
    assert_refused(grq_decoder_new(model, NULL, 0, 4, &decoder, &err), GRQ_E_USAGE, &err, "0 sequences");
    assert_refused(grq_decoder_new(model, NULL, UINT32_MAX, UINT32_MAX, &decoder, &err), GRQ_E_USAGE, &err, "too many");
    assert_ok(grq_decoder_new(model, NULL, 2, 4, &decoder, &err), &err);
    const int32_t tokens[] = { 1, 2, 3, 4, 5 }, high[] = { 1, 2, 23 }, negative[] = { 1, -1, 3 };
    const uint32_t three[] = { 1, 2 }, long_first[] = { 5, 0 };
    assert_refused(grq_decoder_step(decoder, three, high, logits, NULL, &err), GRQ_E_DATA, &err,
                   "sequence 1, position 1: token 23");
    assert_refused(grq_decoder_step(decoder, three, negative, logits, NULL, &err), GRQ_E_DATA, &err,
                   "token -1 is outside the vocabulary of 23");
    assert_refused(grq_decoder_step(decoder, long_first, tokens, logits, NULL, &err), GRQ_E_USAGE, &err,
                   "sequence 0 would hold 5 tokens, room is for 4");
    assert_int_equal(grq_decoder_length(decoder, 1), 0);
    assert_ok(grq_decoder_step(decoder, three, tokens, logits, NULL, &err), &err);
    assert_int_equal(grq_decoder_length(decoder, 1), 2);
    grq_decoder_reset(decoder);
    assert_ok(grq_decoder_step(decoder, three, tokens, again, NULL, &err), &err);
    assert_memory_equal(logits, again, sizeof logits);
    const uint32_t none[] = { 0, 0 };
    assert_ok(grq_decoder_step(decoder, none, tokens, NULL, NULL, &err), &err);
    grq_decoder_free(decoder);
    grq_model_free(model);
}

/* ---- hooks ---- */

typedef struct {
    const grq_decoder *decoder;
    size_t n_calls, n_tokens;
    bool fail, empty;
} hook_log;

static grq_status log_apply(void *context, const grq_memory_layer *layer, size_t n, const int64_t *rows, float *h,
                            grq_error *err)
{
    hook_log *log = context;
    log->n_calls++;
    log->n_tokens += n;
    if (log->fail) return grq_fail(err, GRQ_E_CHECK, "the hook says no");
    for (size_t i = 0; i < n * layer->geometry->n_columns; i++)
        assert_in_range(rows[i], 0, layer->geometry->n_rows[layer->layer_index] - 1);
    if (log->empty) return GRQ_OK;
    const grq_geometry *g = layer->geometry;
    float *e = malloc(n * g->row_values * sizeof *e), *keys = malloc(n * g->n_branches * g->width * sizeof *keys);
    float *values = malloc(n * g->width * sizeof *values), *gates = malloc(n * g->n_branches * sizeof *gates);
    grq_layer_fetch(layer, n, rows, e);
    grq_layer_keys(layer, n, e, keys);
    grq_layer_values(layer, n, e, values);
    grq_layer_gates(layer, n, h, keys, NULL, gates);
    grq_layer_inject(layer, n, gates, values, h);
    free(e);
    free(keys);
    free(values);
    free(gates);
    return GRQ_OK;
}

static void a_hook_takes_the_place_of_the_table(void **state)
{
    (void)state;
    grq_model *model = trained_looking(LM_SMALL), *zeroed = trained_looking(LM_SMALL);
    memset(zeroed->weights + zeroed->layout.n_dense, 0,
           (zeroed->layout.n_all - zeroed->layout.n_dense) * sizeof(float));
    const uint32_t vocab = LM_SMALL.vocab_size;
    int32_t *text = lm_make_text(400, vocab, 12);
    const grq_prompt prompt = { text, 399 }, next = { text + 399, 1 };
    hook_log log = { 0 };
    const grq_memory_hook hook = { log_apply, &log };
    grq_error err = { 0 };
    double own = 0, hooked = 0, nothing = 0, zero = 0;
    assert_ok(grq_loglikelihood(model, NULL, &prompt, &next, 1, &own, &err), &err);
    assert_ok(grq_loglikelihood(model, &hook, &prompt, &next, 1, &hooked, &err), &err);
    assert_int_equal(log.n_calls, 2); /* one a layer, all tokens at once */
    assert_int_equal(log.n_tokens, 2 * 399);
    assert_true(fabs(own - hooked) <= TOLERANCE);
    log.empty = true;
    assert_ok(grq_loglikelihood(model, &hook, &prompt, &next, 1, &nothing, &err), &err);
    assert_ok(grq_loglikelihood(zeroed, NULL, &prompt, &next, 1, &zero, &err), &err);
    assert_true(fabs(nothing - zero) <= TOLERANCE);
    assert_true(fabs(own - nothing) > 1e-3);
    log.fail = true;
    assert_refused(grq_loglikelihood(model, &hook, &prompt, &next, 1, &nothing, &err), GRQ_E_CHECK, &err,
                   "the hook says no");
    free(text);
    grq_model_free(model);
    grq_model_free(zeroed);
}

/* ---- generation and likelihoods ---- */

/* One prompt, no cache: everything is fed again for every token. */
static uint32_t generate_slowly(const grq_model *model, const grq_prompt *prompt, uint32_t max_new, int32_t stop,
                                int32_t *out)
{
    const uint32_t vocab = model->shape.vocab_size;
    int32_t tokens[256];
    float *logits = malloc(vocab * sizeof *logits);
    grq_error err = { 0 };
    uint32_t n = (uint32_t)prompt->n_tokens, n_out = 0;
    memcpy(tokens, prompt->tokens, n * sizeof *tokens);
    while (n_out < max_new) {
        grq_decoder *decoder = NULL;
        assert_ok(grq_decoder_new(model, NULL, 1, n, &decoder, &err), &err);
        assert_ok(grq_decoder_step(decoder, &n, tokens, logits, NULL, &err), &err);
        grq_decoder_free(decoder);
        int32_t best = 0;
        for (uint32_t v = 1; v < vocab; v++)
            if (logits[v] > logits[best]) best = (int32_t)v;
        if (best == stop) break;
        tokens[n++] = out[n_out++] = best;
    }
    free(logits);
    return n_out;
}

/* 300 ragged prompts: more than one batch. */
static void generation_is_greedy_decoding_of_every_prompt(void **state)
{
    (void)state;
    enum { N = 300, MAX_NEW = 6 };
    grq_model *model = trained_looking(LM_SMALL);
    int32_t *text = lm_make_text(4000, LM_SMALL.vocab_size, 13), stored[N][MAX_NEW], *outputs[N];
    grq_prompt prompts[N];
    uint32_t n_outputs[N], n_stopped = 0;
    grq_rng rng;
    grq_rng_seed(&rng, 14);
    for (size_t i = 0; i < N; i++) {
        prompts[i] = (grq_prompt){ text + grq_rng_below(&rng, 3900), 1 + grq_rng_below(&rng, 40) };
        outputs[i] = stored[i];
    }
    grq_error err = { 0 };
    assert_ok(grq_generate(model, NULL, prompts, 1, MAX_NEW, -1, outputs, n_outputs, &err), &err);
    const int32_t stop = stored[0][3]; /* an id that this model does say */
    assert_ok(grq_generate(model, NULL, prompts, N, MAX_NEW, stop, outputs, n_outputs, &err), &err);
    for (size_t i = 0; i < N; i += 7) {
        int32_t want[MAX_NEW];
        const uint32_t n = generate_slowly(model, &prompts[i], MAX_NEW, stop, want);
        if (n != n_outputs[i] || memcmp(want, stored[i], n * sizeof *want) != 0)
            fail_msg("prompt %zu: another continuation", i);
        n_stopped += n < MAX_NEW;
    }
    assert_true(n_stopped > 0); /* both endings were seen */
    assert_true(n_stopped < N / 7);
    assert_ok(grq_generate(model, NULL, prompts, 2, 0, stop, outputs, n_outputs, &err), &err);
    assert_int_equal(n_outputs[0] + n_outputs[1], 0);
    prompts[1].n_tokens = 0;
    assert_refused(grq_generate(model, NULL, prompts, 2, 1, stop, outputs, n_outputs, &err), GRQ_E_USAGE, &err,
                   "prompt 1 has 0 tokens");
    const int32_t bad[] = { 1, 40 };
    prompts[1] = (grq_prompt){ bad, 2 };
    assert_refused(grq_generate(model, NULL, prompts, 2, 1, stop, outputs, n_outputs, &err), GRQ_E_DATA, &err,
                   "token 40");
    free(text);
    grq_model_free(model);
}

static void ties_go_to_the_lower_id(void **state)
{
    (void)state;
    grq_model *model = trained_looking(LM_ODD);
    const size_t width = LM_ODD.width;
    float *head = model->weights + model->layout.head;
    memcpy(head + 9 * width, head + 4 * width, width * sizeof *head); /* ids 4 and 9 always tie ... */
    for (size_t v = 0; v < LM_ODD.vocab_size; v++)
        if (v != 4 && v != 9) memset(head + v * width, 0, width * sizeof *head); /* ... and the rest tie at 0 */
    const int32_t token = 3;
    const grq_prompt prompt = { &token, 1 };
    int32_t out[8], *outputs = out;
    uint32_t n = 0;
    grq_error err = { 0 };
    assert_ok(grq_generate(model, NULL, &prompt, 1, 8, -1, &outputs, &n, &err), &err);
    assert_int_equal(n, 8);
    for (uint32_t i = 0; i < n; i++)
        if (out[i] != 4 && out[i] != 0) fail_msg("token %u: id %d", i, out[i]);
    grq_model_free(model);
}

static void likelihoods_are_sums_of_log_probabilities(void **state)
{
    (void)state;
    enum { N = 3 };
    grq_model *model = trained_looking(LM_SMALL);
    const uint32_t vocab = LM_SMALL.vocab_size;
    int32_t *text = lm_make_text(400, vocab, 15);
    const grq_prompt contexts[N] = { { text, 10 }, { text + 50, 1 }, { text + 60, 30 } };
    const grq_prompt continuations[N] = { { text + 10, 5 }, { text + 51, 0 }, { text + 90, 300 } };
    double results[N];
    grq_error err = { 0 };
    assert_ok(grq_loglikelihood(model, NULL, contexts, continuations, N, results, &err), &err);
    assert_true(results[1] == 0);
    float *logits = malloc(400 * vocab * sizeof *logits);
    for (size_t i = 0; i < N; i += 2) {
        const uint32_t n = (uint32_t)(contexts[i].n_tokens + continuations[i].n_tokens);
        grq_decoder *decoder = NULL;
        assert_ok(grq_decoder_new(model, NULL, 1, n, &decoder, &err), &err);
        assert_ok(grq_decoder_step(decoder, &n, contexts[i].tokens, NULL, logits, &err), &err);
        grq_decoder_free(decoder);
        double want = 0;
        for (size_t t = contexts[i].n_tokens; t < n; t++) {
            double sum = 0;
            for (uint32_t v = 0; v < vocab; v++) sum += exp(logits[(t - 1) * vocab + v]);
            want += logits[(t - 1) * vocab + (size_t)contexts[i].tokens[t]] - log(sum);
        }
        if (!(fabs(results[i] - want) <= 1e-5 * fabs(want)))
            fail_msg("item %zu: got %.9g, want %.9g", i, results[i], want);
    }
    const grq_prompt empty = { text, 0 };
    assert_refused(grq_loglikelihood(model, NULL, &empty, continuations, 1, results, &err), GRQ_E_USAGE, &err,
                   "context 0 is empty");
    const int32_t high = 40;
    const grq_prompt bad = { &high, 1 };
    assert_refused(grq_loglikelihood(model, NULL, contexts, &bad, 1, results, &err), GRQ_E_DATA, &err,
                   "continuation 0, position 0: token 40");
    free(logits);
    free(text);
    grq_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoder_computes_the_defined_model),
        cmocka_unit_test(decoder_agrees_with_the_training_forward),
        cmocka_unit_test(pieces_give_the_logits_of_the_whole),
        cmocka_unit_test(bad_steps_are_refused_and_change_nothing),
        cmocka_unit_test(a_hook_takes_the_place_of_the_table),
        cmocka_unit_test(generation_is_greedy_decoding_of_every_prompt),
        cmocka_unit_test(ties_go_to_the_lower_id),
        cmocka_unit_test(likelihoods_are_sums_of_log_probabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
