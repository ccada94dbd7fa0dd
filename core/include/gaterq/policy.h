/* gaterq/policy.h - which look-ups of a batch read how many stages.
 *
 * A look-up is (position t, column j). GateRQ ranks by importance I[t,j] = G[t] tau[j] ||e[t,j]||^2, where G is the
 * gate energy from stage 1 and e the stage-1 row, so that nothing but stage 1 must be read to decide. */
#ifndef GATERQ_POLICY_H
#define GATERQ_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/codec.h"
#include "gaterq/status.h"

typedef enum {
    GRQ_ORDER_GATE,      /* G tau ||e||^2: the paper's */
    GRQ_ORDER_PRIOR,     /* E[G | row] tau ||e||^2: the row's expected gate energy in place of the current one */
    GRQ_ORDER_RANDOM,    /* a hash of (seed, position number, column): the same in any batch split */
    GRQ_ORDER_FREQUENCY, /* most accessed rows first */
    GRQ_ORDER_COLDEST,   /* least accessed rows first */
    GRQ_ORDER_ENERGY,    /* tau ||e||^2: no gate at all */
    GRQ_ORDER_ORACLE,    /* the true reduction of the injected error; needs the full table */
    GRQ_ORDER_SHUFFLED,  /* gate, with gate energies permuted over the positions of the batch */
    GRQ_N_ORDERINGS
} grq_ordering;

const char *grq_ordering_name(grq_ordering ordering); /* "gate", "prior", ... */
grq_status grq_ordering_find(const char *name, grq_ordering *out, grq_error *err);

/* One batch of look-ups at one memory layer. Arrays may be NULL when the ordering does not use them. */
typedef struct {
    size_t n_positions;
    uint32_t n_columns;
    const uint64_t *position_ids; /* (n_positions) a number of each position that does not depend on the batch */
    const float *gate_energy;     /* (n_positions) from stage 1 */
    const double *tau;            /* (n_columns) */
    const float *row_energy;      /* (n_positions, n_columns) ||e||^2 of stage 1 */
    const float *prior;           /* (n_positions, n_columns) expected gate energy of the row */
    const uint64_t *frequency;    /* (n_positions, n_columns) access count of the row in the counting corpus */
    const float *true_reduction;  /* (n_positions, n_columns) see trace.h: injected_reduction */
} grq_lookup_batch;

/* Scores, larger first; (n_positions, n_columns). `seed` is used by random and shuffled. Fails naming a missing array.
 */
grq_status grq_policy_score(grq_ordering ordering, const grq_lookup_batch *batch, uint64_t seed, double *score,
                            grq_error *err);

/* Stage fractions, nested and not increasing: fraction[0] of the look-ups read stage 2 (0.412), fraction[1] of them all
 * read stage 3. */
typedef struct {
    uint32_t n_fractions; /* 0..GRQ_MAX_STAGES - 1 */
    double fraction[GRQ_MAX_STAGES - 1];
} grq_budget;

grq_status grq_budget_parse(const char *text, grq_budget *out, grq_error *err); /* "0.412" or "0.65,0.33" */
size_t grq_budget_count(double fraction, size_t n_lookups); /* floor(fraction * n + 1/2): exact share of a batch */
/* bits per value of a look-up: (1 + 16/n) (1 + sum of fractions). */
double grq_budget_bits(const grq_budget *budget, uint32_t row_dim);

/* Depth 1..3 of each look-up: the first grq_budget_count() by score, ties by lower index (position, then column), read
 * the deeper stage. Deterministic; a NaN score is an error. depth (n_lookups). */
grq_status grq_budget_allocate(const grq_budget *budget, const double *score, size_t n_lookups, uint8_t *depth,
                               grq_error *err);

#endif
