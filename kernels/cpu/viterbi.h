/* kernels/cpu/viterbi.h - the best path through the trellis of a code, for one row.
 *
 * `ref` is plain C with costs of 64 bits and the definition; it searches any row and any code. `avx2` and `avx512` use
 * costs of 16 bits and give the same bits. They are used where a bound, computed from the row, shows that no cost can
 * leave the 16 bits (grq_viterbi_begin), and for the codes that have a plan. Source: specs/encoders.md section 4. */
#ifndef GATERQ_CPU_VITERBI_H
#define GATERQ_CPU_VITERBI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/tcq_code.h"

enum { GRQ_ANY_NODE = -1 };

/* A search over n_steps positions: first, first + 1, ..., modulo the row's length. */
typedef struct {
    uint32_t first, n_steps;
    uint32_t n_traced; /* how many steps, counted from the end, are traced back */
    int32_t start;     /* the only node to start from, or GRQ_ANY_NODE: all, at equal cost */
    int32_t end;       /* the node to end in, or GRQ_ANY_NODE: the cheapest, of equal ones the lowest */
    uint32_t n_ends;   /* with GRQ_ANY_NODE: only nodes below this */
} grq_viterbi_path;

/* The row in search and the memory to search it in. */
typedef struct {
    const grq_tcq_code *code;
    uint32_t n, max_steps, max_traced;
    int level;            /* instruction set: GRQ_CPU_REF ... */
    const int16_t *q;     /* (n), caller's; magnitudes at most 2047 */
    bool narrow;          /* no branch of this row costs more than 16 bits hold */
    uint16_t *metric;     /* (n, 16) branch costs, when narrow */
    uint16_t *dearest;    /* (n) the largest of them */
    uint8_t *lower_costs; /* (max_steps) 1: subtract the least cost before this step */
    uint32_t *decisions;  /* (max_traced, nodes) bits, order by instruction set */
    void *costs;          /* two arrays of nodes */
    void *block;
} grq_viterbi;

/* Memory for rows of n values and searches of at most max_steps, of which max_traced are traced. */
bool grq_viterbi_init(grq_viterbi *v, const grq_tcq_code *code, uint32_t n, uint32_t max_steps, uint32_t max_traced,
                      int level);
void grq_viterbi_clear(grq_viterbi *v);

void grq_viterbi_begin(grq_viterbi *v, const int16_t *q); /* q must live until the last search */

/* bits (n_traced) or NULL: the path's bit at each traced position, in order, a byte each. Returns the node before the
 * first traced step; *end_node is the one after the last. */
uint32_t grq_viterbi_search(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node);

/* Whether costs of 16 bits are safe for this search; plans the subtractions that keep them so. */
bool grq_viterbi_is_safe(grq_viterbi *v, const grq_viterbi_path *path);

/* What grq_viterbi_search chooses from. The twins: false when this code has no plan. */
uint32_t grq_viterbi_search_ref(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node);
/* For both twins: metric (n, 16) and dearest (n) of a row, cut to 16 bits; returns the largest. */
uint16_t grq_viterbi_metrics_avx2(const grq_tcq_code *code, const int16_t *q, uint32_t n, uint16_t *metric,
                                  uint16_t *dearest);
bool grq_viterbi_search_avx2(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node,
                             uint32_t *begin_node);
bool grq_viterbi_search_avx512(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node,
                               uint32_t *begin_node);

#endif
