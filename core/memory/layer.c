#include "gaterq/layer.h"

#include <string.h>

#include "cpu/kernels.h"
#include "gaterq/blas.h"
#include "memory/layer_internal.h"
#include "shared/gate.h"

void grq_layer_fetch(const grq_memory_layer *layer, size_t n_tokens, const int64_t *rows, float *e)
{
    const grq_geometry *g = layer->geometry;
    const size_t dim = g->row_dim;
    for (size_t i = 0; i < n_tokens * g->n_columns; i++)
        memcpy(e + i * dim, layer->table + (size_t)rows[i] * dim, dim * sizeof *e);
}

void grq_layer_keys(const grq_memory_layer *layer, size_t n_tokens, const float *e, float *keys)
{
    const grq_geometry *g = layer->geometry;
    const int out = (int)(g->n_branches * g->width), in = (int)g->row_values;
    grq_sgemm(false, true, (int)n_tokens, out, in, e, in, layer->key_weight, in, 0, keys, out);
}

void grq_layer_values(const grq_memory_layer *layer, size_t n_tokens, const float *e, float *values)
{
    const grq_geometry *g = layer->geometry;
    const int out = (int)g->width, in = (int)g->row_values;
    grq_sgemm(false, true, (int)n_tokens, out, in, e, in, layer->value_weight, in, 0, values, out);
}

float grq_layer_gate_of_sums(const grq_geometry *g, const float sums[3])
{
    const float s = grq_gate_score_f32(sums[0], sums[1], sums[2], (float)g->width, (float)g->norm_eps);
    if (s == 0 && g->zero_rule == GRQ_ZERO_HALF) return 0.5f;
    return grq_gate_of_score_f32(s, (float)g->gate_clamp);
}

void grq_layer_gates(const grq_memory_layer *layer, size_t n_tokens, const float *h, const float *keys,
                     const uint8_t *dead, float *gates)
{
    const grq_geometry *g = layer->geometry;
    const grq_kernels *const k = grq_cpu_kernels();
    const size_t d = g->width;
    for (size_t t = 0; t < n_tokens; t++)
        for (uint32_t m = 0; m < g->n_branches; m++) {
            const size_t i = t * g->n_branches + m;
            float sums[3];
            if (dead && dead[t]) {
                gates[i] = 0;
                continue;
            }
            k->gate_sums(g->width, h + i * d, keys + i * d, layer->query_gain + m * d, layer->key_gain + m * d, sums);
            gates[i] = grq_layer_gate_of_sums(g, sums);
        }
}

void grq_layer_inject(const grq_memory_layer *layer, size_t n_tokens, const float *gates, const float *values, float *h)
{
    const grq_geometry *g = layer->geometry;
    const grq_kernels *const k = grq_cpu_kernels();
    const size_t d = g->width;
    for (size_t t = 0; t < n_tokens; t++)
        for (uint32_t m = 0; m < g->n_branches; m++) {
            const size_t i = t * g->n_branches + m;
            if (gates[i] != 0) k->add_scaled(g->width, gates[i], values + t * d, h + i * d);
        }
}

void grq_gate_energy(size_t n_tokens, uint32_t n_branches, const float *gates, float *energy)
{
    for (size_t t = 0; t < n_tokens; t++) {
        float sum = 0;
        for (uint32_t m = 0; m < n_branches; m++) sum += gates[t * n_branches + m] * gates[t * n_branches + m];
        energy[t] = sum;
    }
}

void grq_layer_tau(const grq_memory_layer *layer, double *tau)
{
    const grq_geometry *g = layer->geometry;
    for (uint32_t c = 0; c < g->n_columns; c++) tau[c] = 0;
    for (uint32_t o = 0; o < g->width; o++)
        for (uint32_t i = 0; i < g->row_values; i++) {
            const double v = layer->value_weight[(size_t)o * g->row_values + i];
            tau[i / g->row_dim] += v * v;
        }
    for (uint32_t c = 0; c < g->n_columns; c++) tau[c] /= g->row_dim;
}

double grq_gate_f64(uint32_t width, const double *h, const double *key, const double *query_gain,
                    const double *key_gain, double eps, double clamp, double *s)
{
    double hh = 0, kk = 0, hk = 0;
    for (uint32_t j = 0; j < width; j++) {
        hh += h[j] * h[j];
        kk += key[j] * key[j];
        hk += GRQ_GATE_TERM(h[j], query_gain[j] * key_gain[j], key[j]);
    }
    const double score = grq_gate_score_f64(hh, kk, hk, width, eps);
    if (s) *s = score;
    return grq_gate_of_score_f64(score, clamp);
}
