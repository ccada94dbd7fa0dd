/* Training: it learns; its bytes do not depend on threads or interruptions; what does not fit is refused. */
#include "lm_support.h"

#include "gaterq/train.h"
#include "lm/adamw.h"
#include "lm/model_internal.h"
#include "lm/pass.h"

static const grq_train_config CONFIG = {
    .n_tokens = 40 * 6 * 16,
    .batch = 6,
    .window = 16,
    .n_shards = 3,
    .learning_rate = 1e-2,
    .table_rate_factor = 5,
    .weight_decay = 0.1,
    .beta1 = 0.9,
    .beta2 = 0.95,
    .clip = 1,
    .warmup_steps = 5,
    .gate_cost = 0.03,
    .gate_cost_ramp = 0.2,
};
enum { SEED = 21 };

typedef struct {
    uint64_t asked, stop_at; /* the stop request comes at this question; 0: never */
    uint64_t reports;
    char detail[128];
} listener;

static int stop_requested(void *context)
{
    listener *l = context;
    return ++l->asked == l->stop_at;
}

static void hear(void *context, const char *stage, uint64_t done, uint64_t total, const char *unit, const char *detail)
{
    listener *l = context;
    l->reports++;
    assert_true(done <= total);
    assert_string_equal(stage, "training");
    assert_string_equal(unit, "tokens");
    snprintf(l->detail, sizeof l->detail, "%s", detail);
}

typedef struct {
    grq_model *model;
    int32_t *text;
    grq_train_result result;
    listener listener;
    grq_error err;
} run;

static run new_run(lm_test_shape shape, const grq_train_config *config)
{
    return (run){ .model = lm_make_model(shape, SEED),
                  .text = lm_make_text(config->n_tokens + 1, shape.vocab_size, 22) };
}

static grq_status train(run *r, const grq_train_config *config, uint64_t seed, uint32_t n_threads,
                        const char *checkpoint)
{
    const grq_progress progress = { .report = hear, .stop_requested = stop_requested, .context = &r->listener };
    r->listener.asked = 0;
    return grq_train(r->model, config, r->text, seed, n_threads, checkpoint, 1e9, &progress, &r->result, &r->err);
}

static void end_run(run *r)
{
    grq_model_free(r->model);
    free(r->text);
}

static void assert_same_weights(const run *a, const run *b, const char *what)
{
    for (size_t i = 0; i < a->model->layout.n_tensors; i++) {
        const lm_tensor *t = &a->model->layout.tensors[i];
        for (size_t k = t->at; k < t->at + t->n; k++)
            if (memcmp(a->model->weights + k, b->model->weights + k, sizeof(float)) != 0)
                fail_msg("%s: %s: element %zu: %a and %a", what, t->name, k - t->at, a->model->weights[k],
                         b->model->weights[k]);
    }
    assert_true(a->result.loss == b->result.loss);
    assert_memory_equal(a->result.gate_mean, b->result.gate_mean, sizeof a->result.gate_mean);
}

static void the_loss_falls(void **state)
{
    (void)state;
    grq_train_config config = CONFIG;
    config.n_tokens = 400 * 6 * 16 + 5;
    run r = new_run(LM_SMALL, &config);
    assert_ok(train(&r, &config, SEED, 1, NULL), &r.err);
    assert_int_equal(r.result.steps, 400);
    assert_int_equal(r.result.n_tokens, 400 * 6 * 16);
    assert_true(r.listener.reports >= 1);
    assert_non_null(strstr(r.listener.detail, "loss "));
    /* Uniform guessing costs log 40 = 3.69 nats; this run ends at 2.37. */
    if (!(r.result.loss < 2.7)) fail_msg("loss %.3f after %" PRIu64 " steps", r.result.loss, r.result.steps);
    for (int l = 0; l < 2; l++)
        if (!(r.result.gate_mean[l] > 0 && r.result.gate_mean[l] < 0.6))
            fail_msg("mean gate %g", r.result.gate_mean[l]);
    end_run(&r);
}

static void threads_do_not_change_the_bytes(void **state)
{
    (void)state;
    const lm_test_shape shapes[] = { LM_SMALL, LM_ODD };
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        run one = new_run(shapes[k], &CONFIG);
        assert_ok(train(&one, &CONFIG, SEED, 1, NULL), &one.err);
        for (uint32_t n_threads = 2; n_threads <= 3; n_threads++) {
            run more = new_run(shapes[k], &CONFIG);
            assert_ok(train(&more, &CONFIG, SEED, n_threads, NULL), &more.err);
            assert_same_weights(&one, &more, n_threads == 2 ? "2 threads" : "3 threads");
            end_run(&more);
        }
        end_run(&one);
    }
}

static void another_seed_reads_the_text_in_another_order(void **state)
{
    (void)state;
    run a = new_run(LM_ODD, &CONFIG), b = new_run(LM_ODD, &CONFIG);
    assert_ok(train(&a, &CONFIG, SEED, 1, NULL), &a.err);
    assert_ok(train(&b, &CONFIG, SEED + 1, 1, NULL), &b.err);
    assert_true(a.result.loss != b.result.loss);
    end_run(&a);
    end_run(&b);
}

static void an_interrupted_training_ends_in_the_same_bytes(void **state)
{
    (void)state;
    const char *path = test_path("resume.checkpoint");
    run whole = new_run(LM_SMALL, &CONFIG), parts = new_run(LM_SMALL, &CONFIG);
    assert_ok(train(&whole, &CONFIG, SEED, 2, NULL), &whole.err);
    static const uint64_t stops[] = { 1, 17, 22 }; /* steps done in each call: 40 in all */
    uint64_t done = 0;
    for (size_t i = 0; i < ARRAY_LEN(stops); i++) {
        parts.listener.stop_at = stops[i];
        assert_int_equal(train(&parts, &CONFIG, SEED, 1 + (uint32_t)i, path), i < 2 ? GRQ_E_INTERRUPTED : GRQ_OK);
        done += stops[i];
        assert_int_equal(parts.result.steps, done);
        assert_true(grq_file_exists(path));
        if (i == 2) break;
        grq_model_free(parts.model); /* as a new process would */
        parts.model = lm_make_model(LM_SMALL, SEED);
    }
    assert_same_weights(&whole, &parts, "resumed");
    assert_int_equal(test_count_files(".tmp-"), 0);
    assert_int_equal(unlink(path), 0); /* the caller's, once the model is saved */
    end_run(&whole);
    end_run(&parts);
}

/* What a crash leaves: here the checkpoint of step 39, since one is written after every step. */
static void a_periodic_checkpoint_continues_to_the_same_bytes(void **state)
{
    (void)state;
    const char *path = test_path("periodic.checkpoint");
    run whole = new_run(LM_ODD, &CONFIG), again = new_run(LM_ODD, &CONFIG);
    const grq_progress silent = { 0 };
    assert_ok(grq_train(whole.model, &CONFIG, whole.text, SEED, 1, path, 0, NULL, &whole.result, &whole.err),
              &whole.err);
    assert_true(grq_file_exists(path));
    assert_ok(grq_train(again.model, &CONFIG, again.text, SEED, 2, path, 1e9, &silent, &again.result, &again.err),
              &again.err);
    assert_int_equal(again.result.steps, 40);
    assert_same_weights(&whole, &again, "from the checkpoint");
    run plain = new_run(LM_ODD, &CONFIG);
    assert_ok(train(&plain, &CONFIG, SEED, 1, NULL), &plain.err);
    assert_same_weights(&whole, &plain, "checkpoints on the way");
    end_run(&whole);
    end_run(&again);
    end_run(&plain);
    unlink(path);
}

static void an_interrupted_model_holds_its_weights(void **state)
{
    (void)state;
    grq_train_config half = CONFIG;
    run stopped = new_run(LM_SMALL, &half), again = new_run(LM_SMALL, &half);
    stopped.listener.stop_at = again.listener.stop_at = 20;
    assert_int_equal(train(&stopped, &half, SEED, 1, NULL), GRQ_E_INTERRUPTED);
    const char *path = test_path("interrupted.checkpoint");
    assert_int_equal(train(&again, &half, SEED, 1, path), GRQ_E_INTERRUPTED);
    assert_same_weights(&stopped, &again, "interrupted");
    grq_model *fresh = lm_make_model(LM_SMALL, SEED);
    assert_memory_not_equal(fresh->weights, stopped.model->weights, fresh->layout.n_all * sizeof(float));
    grq_model_free(fresh);
    end_run(&stopped);
    end_run(&again);
    unlink(path);
}

static void a_checkpoint_of_something_else_is_refused(void **state)
{
    (void)state;
    const char *path = test_path("other.checkpoint");
    run r = new_run(LM_ODD, &CONFIG), wider = new_run(LM_SMALL, &CONFIG);
    r.listener.stop_at = 3;
    assert_int_equal(train(&r, &CONFIG, SEED, 1, path), GRQ_E_INTERRUPTED);
    grq_train_config other = CONFIG;
    other.gate_cost = 0.5;
    assert_refused(train(&r, &other, SEED, 1, path), GRQ_E_USAGE, &r.err, "train.gate_cost = 0.02999");
    other = CONFIG;
    other.warmup_steps = 6;
    assert_refused(train(&r, &other, SEED, 1, path), GRQ_E_USAGE, &r.err, "train.warmup_steps = 5, the config says 6");
    assert_refused(train(&r, &CONFIG, SEED + 1, 1, path), GRQ_E_USAGE, &r.err, "made with seed 21, this is seed 22");
    assert_refused(train(&wider, &CONFIG, SEED, 1, path), GRQ_E_USAGE, &wider.err, "made for the model");
    r.text[CONFIG.n_tokens] ^= 1;
    assert_refused(train(&r, &CONFIG, SEED, 1, path), GRQ_E_USAGE, &r.err, "SHA-256");
    assert_true(grq_file_exists(path));
    const char *broken = test_write_text("broken.checkpoint", "not safetensors");
    const grq_status st = train(&r, &CONFIG, SEED, 1, broken);
    if (st != GRQ_E_DATA || !strstr(r.err.message, "broken.checkpoint")) fail_msg("status %d: %s", st, r.err.message);
    end_run(&r);
    end_run(&wider);
    unlink(path);
}

static void divergence_is_an_error_and_spares_the_checkpoint(void **state)
{
    (void)state;
    const char *path = test_path("diverged.checkpoint");
    run r = new_run(LM_ODD, &CONFIG);
    r.listener.stop_at = 3;
    assert_int_equal(train(&r, &CONFIG, SEED, 1, path), GRQ_E_INTERRUPTED);
    char *before = NULL, *after = NULL;
    size_t n_before = 0, n_after = 0;
    assert_ok(grq_file_read(path, 0, &before, &n_before, &r.err), &r.err);
    assert_int_equal(rename(path, test_path("kept")), 0);
    r.model->weights[r.model->layout.head] = NAN;
    r.listener.stop_at = 0;
    assert_refused(train(&r, &CONFIG, SEED, 1, path), GRQ_E_DATA, &r.err, "diverged at step 1 of 40");
    assert_false(grq_file_exists(path));
    /* The same, but in the middle: step 4 is the first after the checkpoint, and its rate throws the weights to
     * infinity. */
    assert_int_equal(rename(test_path("kept"), path), 0);
    grq_train_config wild = CONFIG;
    wild.learning_rate = 10;
    wild.table_rate_factor = 1000;
    wild.n_tokens = CONFIG.n_tokens;
    run w = new_run(LM_ODD, &wild);
    for (size_t i = 0; i < w.model->layout.n_all; i++) w.model->weights[i] *= 1e18f;
    assert_refused(train(&w, &wild, SEED, 1, NULL), GRQ_E_DATA, &w.err, "lower train.learning_rate");
    assert_ok(grq_file_read(path, 0, &after, &n_after, &r.err), &r.err);
    assert_int_equal(n_before, n_after);
    assert_memory_equal(before, after, n_before);
    free(before);
    free(after);
    end_run(&r);
    end_run(&w);
    unlink(path);
}

static void senseless_settings_are_refused_by_name(void **state)
{
    (void)state;
    run r = new_run(LM_ODD, &CONFIG);
    grq_train_config c = CONFIG;
    c.n_shards = 4;
    assert_refused(train(&r, &c, SEED, 1, NULL), GRQ_E_USAGE, &r.err, "train.n_shards: 4 does not divide batch 6");
    c = CONFIG;
    c.n_tokens = 95;
    assert_refused(train(&r, &c, SEED, 1, NULL), GRQ_E_USAGE, &r.err, "train.n_tokens: 95 is less than one step of 96");
    c = CONFIG;
    c.beta2 = 1;
    assert_refused(train(&r, &c, SEED, 1, NULL), GRQ_E_USAGE, &r.err, "train.beta2");
    c.beta2 = NAN;
    assert_refused(train(&r, &c, SEED, 1, NULL), GRQ_E_USAGE, &r.err, "train.beta2");
    r.text[100] = 23;
    assert_refused(train(&r, &CONFIG, SEED, 1, NULL), GRQ_E_DATA, &r.err,
                   "position 100: token 23 is outside the vocabulary of 23");
    end_run(&r);
}

static grq_status read_config(const char *text, grq_train_config *out, grq_error *err)
{
    grq_json *document = NULL;
    grq_status st = grq_json_parse("w.json", text, strlen(text), &document, err);
    if (st == GRQ_OK) st = grq_train_config_read(grq_json_root(document), out, err);
    grq_json_close(document);
    return st;
}

static void configs_are_read_strictly(void **state)
{
    (void)state;
#define REST                                                                                                           \
    "\"window\": 64, \"n_shards\": 4, \"learning_rate\": 0.003, \"table_rate_factor\": 5, \"weight_decay\": 0.1,"      \
    "\"beta1\": 0.9, \"beta2\": 0.95, \"clip\": 1, \"warmup_steps\": 100, \"gate_cost\": 0.03, \"gate_cost_ramp\": "   \
    "0.2"
    grq_train_config c;
    grq_error err = { 0 };
    assert_ok(read_config("{\"n_tokens\": 10000000, \"batch\": 24, " REST "}", &c, &err), &err);
    assert_int_equal(c.n_tokens, 10000000);
    assert_int_equal(c.batch, 24);
    assert_true(c.beta2 == 0.95 && c.gate_cost_ramp == 0.2 && c.warmup_steps == 100);
    assert_refused(read_config("{\"n_tokens\": 10000000, " REST "}", &c, &err), GRQ_E_DATA, &err, "batch");
    assert_refused(read_config("{\"n_tokens\": 10000000, \"batch\": 24, \"bacth\": 1, " REST "}", &c, &err), GRQ_E_DATA,
                   &err, "bacth");
    assert_refused(read_config("{\"n_tokens\": 10000000, \"batch\": 25, " REST "}", &c, &err), GRQ_E_USAGE, &err,
                   "n_shards: 4 does not divide batch 25");
    assert_refused(read_config("{\"n_tokens\": 10000000, \"batch\": 24.5, " REST "}", &c, &err), GRQ_E_DATA, &err,
                   "batch");
}

/* Two steps of one window each, written out in double: gate-cost ramp, warm-up, cosine, clipping, decay of matrices
 * only, the tables' own rate. */
static void a_step_is_clipped_adamw_on_the_schedule(void **state)
{
    (void)state;
    enum { WINDOW = 16, STEPS = 2 };
    const grq_train_config c = {
        .n_tokens = STEPS * WINDOW,
        .batch = 1,
        .window = WINDOW,
        .n_shards = 1,
        .learning_rate = 0.01,
        .table_rate_factor = 3,
        .weight_decay = 0.5,
        .beta1 = 0.8,
        .beta2 = 0.9,
        .clip = 0.05,
        .warmup_steps = 4,
        .gate_cost = 0.7,
        .gate_cost_ramp = 0.9,
    };
    run r = new_run(LM_ODD, &c);
    const lm_layout *layout = &r.model->layout;
    float *w = lm_allocate(layout->n_all, sizeof *w), *gradient = lm_allocate(layout->n_all, sizeof *gradient);
    double *m = calloc(layout->n_all, sizeof *m), *v = calloc(layout->n_all, sizeof *v);
    memcpy(w, r.model->weights, layout->n_all * sizeof *w);
    uint32_t order[STEPS] = { 0, 1 };
    grq_rng rng;
    grq_rng_seed_for(&rng, SEED, "windows");
    grq_rng_shuffle(&rng, order, STEPS, sizeof *order);
    for (int step = 0; step < STEPS; step++) {
        const double done = (double)step / STEPS, cost = c.gate_cost * fmin(1, done / c.gate_cost_ramp);
        const double rate = c.learning_rate * (step + 1) / 4 * (0.05 + 0.95 * 0.5 * (1 + cos(M_PI * done)));
        double objective = 0, squares = 0;
        assert_ok(lm_gradient(layout, w, r.text + order[step] * WINDOW, 1, WINDOW, cost, &objective, gradient, &r.err),
                  &r.err);
        for (size_t i = 0; i < layout->n_dense; i++) squares += (double)gradient[i] * gradient[i];
        assert_true(sqrt(squares) > c.clip);
        for (size_t k = 0; k < layout->n_tensors; k++) {
            const lm_tensor *t = &layout->tensors[k];
            const double own = t->role == LM_TABLE ? rate * c.table_rate_factor : rate;
            for (size_t i = t->at; i < t->at + t->n; i++) {
                const double g = t->role == LM_TABLE ? gradient[i] : gradient[i] * c.clip / sqrt(squares);
                m[i] = c.beta1 * m[i] + (1 - c.beta1) * g;
                v[i] = c.beta2 * v[i] + (1 - c.beta2) * g * g;
                const double up = m[i] / (1 - pow(c.beta1, step + 1)),
                             down = sqrt(v[i] / (1 - pow(c.beta2, step + 1))) + 1e-9;
                w[i] = (float)(w[i] * (t->role == LM_MATRIX ? 1 - rate * c.weight_decay : 1) - own * up / down);
            }
        }
    }
    assert_ok(train(&r, &c, SEED, 1, NULL), &r.err);
    for (size_t i = 0; i < layout->n_all; i++) /* the second step's gradient sees weights that differ in the last bit */
        if (!(fabs((double)r.model->weights[i] - w[i]) <= 1e-5))
            fail_msg("weight %zu: got %.9g, want %.9g", i, r.model->weights[i], w[i]);
    free(w);
    free(gradient);
    free(m);
    free(v);
    end_run(&r);
}

/* Rows that are updated only when they are read must end in the bits of an AdamW that updates all of them every step.
 */
static void sleeping_rows_get_the_bits_of_a_dense_adamw(void **state)
{
    (void)state;
    enum { STEPS = 60, SEQUENCES = 2, WINDOW = 5 };
    grq_model *model = lm_make_model(LM_ODD, 1);
    const grq_geometry *g = &model->shape.memory;
    const size_t at = model->layout.memory[0].table, n = g->n_rows[0] * g->row_dim;
    float *w = malloc(n * sizeof *w), *m = calloc(n, sizeof *m), *v = calloc(n, sizeof *v),
          *gradient = malloc(n * sizeof *gradient);
    int32_t *text = lm_make_text(STEPS * SEQUENCES * WINDOW + 1, LM_ODD.vocab_size, 3);
    memcpy(w, model->weights + at, n * sizeof *w);
    lm_adamw adam;
    lm_batch batch;
    grq_error err = { 0 };
    grq_rng rng;
    grq_rng_seed(&rng, 2);
    assert_ok(lm_adamw_new(&model->layout, model->weights, &CONFIG, STEPS, &adam, &err), &err);
    assert_ok(lm_batch_new(g, SEQUENCES, WINDOW, &batch, &err), &err);
    for (uint64_t step = 0; step < STEPS; step++) {
        memset(gradient, 0, n * sizeof *gradient);
        for (size_t s = 0; s < SEQUENCES; s++)
            assert_ok(lm_batch_load(&batch, s, text + (step * SEQUENCES + s) * WINDOW, &err), &err);
        lm_adamw_catch_up(&adam, step, &batch, 2);
        for (size_t i = 0; i < SEQUENCES * WINDOW * g->n_columns; i++)
            for (size_t k = 0; k < g->row_dim; k++) {
                const size_t value = (size_t)batch.rows[0][i] * g->row_dim + k;
                if (memcmp(&w[value], &model->weights[at + value], sizeof *w) != 0)
                    fail_msg("step %" PRIu64 ": value %zu is read as %a, dense %a", step, value,
                             model->weights[at + value], w[value]);
            }
        for (size_t i = 0; i < SEQUENCES * WINDOW * g->n_columns; i++)
            for (size_t k = 0; k < g->row_dim; k++) {
                batch.lookups[0][i * g->row_dim + k] = (float)grq_rng_normal(&rng);
                gradient[(size_t)batch.rows[0][i] * g->row_dim + k] += batch.lookups[0][i * g->row_dim + k];
            }
        lm_adamw_rows(&adam, step, &batch, 3);
        const lm_adam_step *now = &adam.steps[step];
        for (size_t i = 0; i < n; i++) {
            m[i] = adam.beta1 * m[i] + adam.rest1 * gradient[i];
            v[i] = adam.beta2 * v[i] + adam.rest2 * gradient[i] * gradient[i];
            w[i] -= now->table_rate * (m[i] * now->correction1) / (sqrtf(v[i] * now->correction2) + 1e-9f);
        }
    }
    lm_adamw_catch_up_all(&adam, STEPS, 2);
    assert_memory_equal(w, model->weights + at, n * sizeof *w);
    assert_memory_equal(m, adam.first + at, n * sizeof *m);
    assert_memory_equal(v, adam.second + at, n * sizeof *v);
    lm_batch_free(&batch);
    lm_adamw_free(&adam);
    grq_model_free(model);
    free(w);
    free(m);
    free(v);
    free(gradient);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_falls),
        cmocka_unit_test(threads_do_not_change_the_bytes),
        cmocka_unit_test(another_seed_reads_the_text_in_another_order),
        cmocka_unit_test(an_interrupted_training_ends_in_the_same_bytes),
        cmocka_unit_test(a_periodic_checkpoint_continues_to_the_same_bytes),
        cmocka_unit_test(an_interrupted_model_holds_its_weights),
        cmocka_unit_test(a_checkpoint_of_something_else_is_refused),
        cmocka_unit_test(divergence_is_an_error_and_spares_the_checkpoint),
        cmocka_unit_test(senseless_settings_are_refused_by_name),
        cmocka_unit_test(configs_are_read_strictly),
        cmocka_unit_test(a_step_is_clipped_adamw_on_the_schedule),
        cmocka_unit_test(sleeping_rows_get_the_bits_of_a_dense_adamw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
