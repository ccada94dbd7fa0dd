/* How fast a training step would be if it were nothing but its matrix products. */
#include <stdlib.h>
#include <time.h>

#include "gaterq/blas.h"
#include "lm/trainer.h"

/* A projection y (n, out) = x (n, in) w^T, and how many of them the model has. */
typedef struct {
    size_t out, in, count;
} projection;

enum { MAX_PROJECTIONS = 6, PRODUCTS = 3 /* forward, gradient of x, gradient of w */ };

static size_t list_projections(const grq_model_shape *s, projection out[MAX_PROJECTIONS])
{
    const grq_geometry *g = &s->memory;
    const projection all[MAX_PROJECTIONS] = {
        { 3 * s->width, s->width, s->n_blocks },
        { s->width, s->width, s->n_blocks },
        { s->mlp_width, s->width, s->n_blocks },
        { s->width, s->mlp_width, s->n_blocks },
        { (size_t)(g->n_branches + 1) * g->width, g->row_values, g->n_layers },
        { s->vocab_size, s->width, 1 },
    };
    for (size_t i = 0; i < MAX_PROJECTIONS; i++) out[i] = all[i];
    return MAX_PROJECTIONS;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_product(int product, size_t n, const projection *p, float *x, float *w, float *y)
{
    const int rows = (int)n, out = (int)p->out, in = (int)p->in;
    if (product == 0) grq_sgemm(false, true, rows, out, in, x, in, w, in, 0, y, out);
    else if (product == 1) grq_sgemm(false, false, rows, in, out, y, out, w, in, 0, x, in);
    else grq_sgemm(true, false, out, in, rows, y, out, x, in, 1, w, in);
}

/* Mean seconds of one product, repeated for `seconds`. */
static double time_product(int product, size_t n, const projection *p, float *x, float *w, float *y, double seconds)
{
    size_t done = 0;
    const double start = now();
    double elapsed = 0;
    run_product(product, n, p, x, w, y);
    while (elapsed < seconds) {
        for (int i = 0; i < 8; i++) run_product(product, n, p, x, w, y);
        done += 8;
        elapsed = now() - start;
    }
    return elapsed / (double)(done + 1);
}

/* One thread's seconds for all products of one token; negative when there is no memory. */
static double time_token(const projection *projections, size_t n_projections, size_t n, double seconds)
{
    size_t widest = 0, weights = 0;
    for (size_t i = 0; i < n_projections; i++) {
        const projection *p = &projections[i];
        if (p->out > widest) widest = p->out;
        if (p->in > widest) widest = p->in;
        if (p->out * p->in > weights) weights = p->out * p->in;
    }
    float *x = lm_allocate(n, widest * sizeof *x), *y = lm_allocate(n, widest * sizeof *y);
    float *w = lm_allocate(weights, sizeof *w);
    double total = x && y && w ? 0 : -1;
    for (size_t i = 0; i < n_projections && total >= 0; i++)
        for (int product = 0; product < PRODUCTS; product++)
            total += (double)projections[i].count / (double)n *
                     time_product(product, n, &projections[i], x, w, y, seconds / (double)(n_projections * PRODUCTS));
    free(x);
    free(y);
    free(w);
    return total;
}

grq_status grq_train_bound_measure(const grq_model_shape *shape, const grq_train_config *config, uint32_t n_threads,
                                   double seconds, grq_train_bound *out, grq_error *err)
{
    projection projections[MAX_PROJECTIONS];
    const size_t n_projections = list_projections(shape, projections), n = lm_part_of_shard(config) * config->window;
    grq_status st = lm_train_config_check(config, err);
    if (st == GRQ_OK) st = grq_blas_init(err);
    if (st != GRQ_OK) return st;
    double flops = 0, sum = 0;
    for (size_t i = 0; i < n_projections; i++)
        flops += (double)(PRODUCTS * 2 * projections[i].count) * (double)projections[i].out * (double)projections[i].in;
    bool complete = true;
#pragma omp parallel num_threads(n_threads) reduction(+ : sum) reduction(&& : complete)
    {
        const double one = time_token(projections, n_projections, n, seconds);
        sum += one;
        complete = complete && one >= 0;
    }
    if (!complete) return grq_fail(err, GRQ_E_NOMEM, "bench: no memory for the matrices");
    *out = (grq_train_bound){ .flops_per_token = flops, .seconds_per_token = sum / n_threads };
    return GRQ_OK;
}
