#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/policy.h"
#include "gaterq/rng.h"

static const char *const names[GRQ_N_ORDERINGS] = {
    [GRQ_ORDER_GATE] = "gate",           [GRQ_ORDER_PRIOR] = "prior",       [GRQ_ORDER_RANDOM] = "random",
    [GRQ_ORDER_FREQUENCY] = "frequency", [GRQ_ORDER_COLDEST] = "coldest",   [GRQ_ORDER_ENERGY] = "energy",
    [GRQ_ORDER_ORACLE] = "oracle",       [GRQ_ORDER_SHUFFLED] = "shuffled",
};

const char *grq_ordering_name(grq_ordering ordering)
{
    return (unsigned)ordering < GRQ_N_ORDERINGS ? names[ordering] : "unknown";
}

grq_status grq_ordering_find(const char *name, grq_ordering *out, grq_error *err)
{
    for (int i = 0; i < GRQ_N_ORDERINGS; i++)
        if (!strcmp(name, names[i])) {
            *out = (grq_ordering)i;
            return GRQ_OK;
        }
    return grq_fail(err, GRQ_E_USAGE,
                    "ordering \"%s\" is not known: gate, prior, random, frequency, coldest, energy, oracle or shuffled",
                    name);
}

static grq_status need(const void *array, const char *what, grq_ordering ordering, grq_error *err)
{
    if (array) return GRQ_OK;
    return grq_fail(err, GRQ_E_USAGE, "ordering %s needs %s", grq_ordering_name(ordering), what);
}

/* splitmix64's output function: a bijection that mixes all bits. */
static uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* A number of the look-up itself, so that a batch split changes nothing. */
static double random_score(uint64_t seed, uint64_t position_id, uint32_t column)
{
    return (double)(mix(mix(mix(seed) ^ position_id) ^ column) >> 11);
}

/* energy[t] tau[j] ||e[t,j]||^2; without `energy`, tau[j] ||e[t,j]||^2. */
static void weigh(const grq_lookup_batch *b, const float *energy, double *score)
{
    for (size_t t = 0; t < b->n_positions; t++)
        for (uint32_t j = 0; j < b->n_columns; j++) {
            const size_t i = t * b->n_columns + j;
            score[i] = (energy ? (double)energy[t] : 1.0) * b->tau[j] * (double)b->row_energy[i];
        }
}

static grq_status shuffle_energies(const grq_lookup_batch *b, uint64_t seed, double *score, grq_error *err)
{
    float *energy = malloc((b->n_positions + 1) * sizeof *energy);
    if (!energy) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu gate energies", b->n_positions);
    memcpy(energy, b->gate_energy, b->n_positions * sizeof *energy);
    grq_rng rng;
    grq_rng_seed_for(&rng, seed, "shuffled ordering");
    grq_rng_shuffle(&rng, energy, b->n_positions, sizeof *energy);
    weigh(b, energy, score);
    free(energy);
    return GRQ_OK;
}

static grq_status check_arrays(grq_ordering o, const grq_lookup_batch *b, grq_error *err)
{
    grq_status st = GRQ_OK;
    const bool weighted =
        o == GRQ_ORDER_GATE || o == GRQ_ORDER_PRIOR || o == GRQ_ORDER_ENERGY || o == GRQ_ORDER_SHUFFLED;
    if (weighted) st = need(b->tau, "tau", o, err);
    if (st == GRQ_OK && weighted) st = need(b->row_energy, "row energies", o, err);
    if (st == GRQ_OK && (o == GRQ_ORDER_GATE || o == GRQ_ORDER_SHUFFLED))
        st = need(b->gate_energy, "gate energies", o, err);
    if (st == GRQ_OK && o == GRQ_ORDER_PRIOR) st = need(b->prior, "expected gate energies (gaterq count)", o, err);
    if (st == GRQ_OK && (o == GRQ_ORDER_FREQUENCY || o == GRQ_ORDER_COLDEST))
        st = need(b->frequency, "access counts (gaterq count)", o, err);
    if (st == GRQ_OK && o == GRQ_ORDER_RANDOM) st = need(b->position_ids, "position numbers", o, err);
    if (st == GRQ_OK && o == GRQ_ORDER_ORACLE)
        st = need(b->true_reduction, "true error reductions (the full table)", o, err);
    return st;
}

grq_status grq_policy_score(grq_ordering ordering, const grq_lookup_batch *b, uint64_t seed, double *score,
                            grq_error *err)
{
    if ((unsigned)ordering >= GRQ_N_ORDERINGS)
        return grq_fail(err, GRQ_E_USAGE, "ordering number %d is not known", (int)ordering);
    const size_t n = b->n_positions * b->n_columns;
    if (n == 0) return GRQ_OK;
    const grq_status st = check_arrays(ordering, b, err);
    if (st != GRQ_OK) return st;
    switch (ordering) {
    case GRQ_ORDER_GATE: weigh(b, b->gate_energy, score); break;
    case GRQ_ORDER_ENERGY: weigh(b, NULL, score); break;
    case GRQ_ORDER_SHUFFLED: return shuffle_energies(b, seed, score, err);
    case GRQ_ORDER_PRIOR:
        weigh(b, NULL, score);
        for (size_t i = 0; i < n; i++) score[i] *= (double)b->prior[i];
        break;
    case GRQ_ORDER_RANDOM:
        for (size_t i = 0; i < n; i++)
            score[i] = random_score(seed, b->position_ids[i / b->n_columns], (uint32_t)(i % b->n_columns));
        break;
    case GRQ_ORDER_FREQUENCY:
        for (size_t i = 0; i < n; i++) score[i] = (double)b->frequency[i];
        break;
    case GRQ_ORDER_COLDEST:
        for (size_t i = 0; i < n; i++) score[i] = -(double)b->frequency[i];
        break;
    case GRQ_ORDER_ORACLE:
        for (size_t i = 0; i < n; i++) score[i] = (double)b->true_reduction[i];
        break;
    default: break;
    }
    return GRQ_OK;
}
