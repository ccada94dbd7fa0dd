/* The hand-written backward pass against central differences in binary64, and the float trainer against the binary64
 * one. The trainer's own sources are compiled here a second time, with double in place of float. */
#include <stdbool.h>

#define LM_REAL_IS_DOUBLE
#include "lm/attention.c"
#include "lm/batch.c"
#include "lm/gradient.c"
#include "lm/memory.c"
#include "lm/ops.c"
#include "lm/pass.c"
#undef lm_gradient

#include "lm_support.h"

/* The library's: the same function compiled for float. */
grq_status lm_gradient(const lm_layout *layout, const float *weights, const int32_t *text, size_t n_sequences,
                       size_t window, double gate_cost, double *objective, float *gradient, grq_error *err);

typedef struct {
    const char *name;
    lm_test_shape shape;
    size_t n_sequences, window;
    double gate_cost;
} gradient_case;

static const gradient_case CASES[] = {
    { "vector widths", { 40, 32, 3, 2, 48, 4, 8, 1e-6 }, 1, 40, 0.3 },
    { "odd widths", { 23, 15, 2, 3, 13, 3, 5, 1e-6 }, 3, 7, 0.3 },
    { "no gate cost", { 23, 15, 2, 3, 13, 3, 5, 1e-6 }, 2, 9, 0 },
    { "half of the scores clamped", { 23, 15, 2, 3, 13, 3, 5, 0.2 }, 3, 7, 0.3 },
};

/* Weights away from the special values of a fresh model: no gain is 1, no mixer the identity, rows are large. */
typedef struct {
    grq_model *model;
    double *weights;
    int32_t *text;
} setting;

static setting make_setting(const gradient_case *c)
{
    setting s = { .model = lm_make_model(c->shape, 5),
                  .text = lm_make_text(c->n_sequences * c->window + 1, c->shape.vocab_size, 6) };
    const lm_layout *layout = &s.model->layout;
    grq_rng rng;
    grq_rng_seed(&rng, 7);
    for (size_t i = 0; i < layout->n_tensors; i++) {
        const lm_tensor *t = &layout->tensors[i];
        const double deviation = t->role == LM_TABLE ? 0.5 : t->role == LM_PLAIN ? 0.2 : 0.02;
        for (size_t k = 0; k < t->n; k++) s.model->weights[t->at + k] += (float)(deviation * grq_rng_normal(&rng));
    }
    s.weights = lm_allocate(layout->n_all, sizeof *s.weights);
    assert_non_null(s.weights);
    for (size_t i = 0; i < layout->n_all; i++) s.weights[i] = s.model->weights[i];
    return s;
}

static void free_setting(setting *s)
{
    grq_model_free(s->model);
    free(s->weights);
    free(s->text);
}

static double objective_at(const gradient_case *c, const setting *s, double *scratch)
{
    grq_error err = { 0 };
    double objective = 0;
    assert_ok(lm_gradient_f64(&s->model->layout, s->weights, s->text, c->n_sequences, c->window, c->gate_cost,
                              &objective, scratch, &err),
              &err);
    return objective;
}

static double norm_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

/* Central difference of fourth order. */
static double difference(const gradient_case *c, const setting *s, size_t at, double *scratch)
{
    const double kept = s->weights[at], step = 1e-5; /* short: the gate's square root is steep near 0 */
    double value[4];
    static const double offsets[] = { -2, -1, 1, 2 };
    for (int i = 0; i < 4; i++) {
        s->weights[at] = kept + offsets[i] * step;
        value[i] = objective_at(c, s, scratch);
    }
    s->weights[at] = kept;
    return (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * step);
}

/* Relative to the tensor's part that was tried; the second term is for the first sub-layer's `read`, whose gradient is
 * nearly 0 because all branches still agree there and the norm removes their common size.
 * Elements to try: drawn from those the text reaches; an unread row or an unseen token has no gradient at all. */
static void check_tensor(const gradient_case *c, const setting *s, const lm_tensor *t, double whole,
                         const double *gradient, double *scratch)
{
    enum { TRIES = 4 };
    grq_rng rng;
    grq_rng_seed(&rng, t->at);
    double wrong = 0, size = 0;
    for (int i = 0; i < TRIES; i++) {
        size_t at = t->at + grq_rng_below(&rng, t->n);
        while (gradient[at] == 0) at = t->at + grq_rng_below(&rng, t->n);
        const double numeric = difference(c, s, at, scratch), error = numeric - gradient[at];
        wrong += error * error;
        size += numeric * numeric;
    }
    if (!(sqrt(wrong) <= 1e-6 * sqrt(size) + 1e-9 * whole))
        fail_msg("%s: %s: relative error %.2e of %.2e over %d elements", c->name, t->name, sqrt(wrong / size),
                 sqrt(size), TRIES);
}

static void backward_is_the_derivative_of_forward(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        setting s = make_setting(&CASES[i]);
        const lm_layout *layout = &s.model->layout;
        double *gradient = lm_allocate(layout->n_all, sizeof *gradient),
               *scratch = lm_allocate(layout->n_all, sizeof *scratch);
        assert_true(gradient && scratch);
        objective_at(&CASES[i], &s, gradient);
        for (size_t k = 0; k < layout->n_tensors; k++)
            check_tensor(&CASES[i], &s, &layout->tensors[k], norm_of(gradient, layout->n_all), gradient, scratch);
        free(gradient);
        free(scratch);
        free_setting(&s);
    }
}

/* 1e-4 of the tensor's norm: some 1000 times the rounding of one float, for sums over windows, widths and layers. */
static void float_and_double_gradients_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        const gradient_case *c = &CASES[i];
        setting s = make_setting(c);
        const lm_layout *layout = &s.model->layout;
        double *exact = lm_allocate(layout->n_all, sizeof *exact), loss = 0;
        float *single = lm_allocate(layout->n_all, sizeof *single);
        grq_error err = { 0 };
        assert_true(exact && single);
        const double exact_loss = objective_at(c, &s, exact);
        assert_ok(
            lm_gradient(layout, s.model->weights, s.text, c->n_sequences, c->window, c->gate_cost, &loss, single, &err),
            &err);
        if (!(fabs(loss - exact_loss) <= 1e-5 * exact_loss))
            fail_msg("%s: objective %.9g, in double %.9g", c->name, loss, exact_loss);
        const double whole = norm_of(exact, layout->n_all);
        for (size_t k = 0; k < layout->n_tensors; k++) {
            const lm_tensor *t = &layout->tensors[k];
            double wrong = 0, size = 0;
            for (size_t e = t->at; e < t->at + t->n; e++) {
                wrong += (single[e] - exact[e]) * (single[e] - exact[e]);
                size += exact[e] * exact[e];
            }
            if (!(sqrt(wrong) <= 1e-4 * sqrt(size) + 1e-6 * whole) || size == 0)
                fail_msg("%s: %s: relative difference %.2e of %.2e", c->name, t->name, sqrt(wrong / size), sqrt(size));
        }
        free(exact);
        free(single);
        free_setting(&s);
    }
}

/* Both sides of the clamp must have been under test. */
static void the_clamped_case_has_scores_on_both_sides(void **state)
{
    (void)state;
    const gradient_case *c = &CASES[3];
    setting s = make_setting(c);
    const lm_layout *layout = &s.model->layout;
    const lm_objective objective = { .n_positions = c->n_sequences * c->window };
    lm_batch batch;
    lm_pass *pass = NULL;
    grq_error err = { 0 };
    assert_ok(lm_batch_new(&layout->shape->memory, c->n_sequences, c->window, &batch, &err), &err);
    for (size_t i = 0; i < c->n_sequences; i++) assert_ok(lm_batch_load(&batch, i, s.text + i * c->window, &err), &err);
    assert_ok(lm_pass_new(layout, c->n_sequences, c->window, &pass, &err), &err);
    lm_pass_forward(pass, s.weights, &batch, &objective);
    size_t n_clamped = 0;
    const size_t n = pass->n * c->shape.n_branches;
    for (size_t i = 0; i < n; i++) n_clamped += fabs(pass->memory[0].score[i]) < c->shape.gate_clamp;
    if (n_clamped < n / 8 || n_clamped > n - n / 8) fail_msg("%zu of %zu scores are clamped", n_clamped, n);
    lm_pass_free(pass);
    lm_batch_free(&batch);
    free_setting(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward_is_the_derivative_of_forward),
        cmocka_unit_test(float_and_double_gradients_agree),
        cmocka_unit_test(the_clamped_case_has_scores_on_both_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
