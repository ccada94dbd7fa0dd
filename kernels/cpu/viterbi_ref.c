/* The definition of the search: costs are whole numbers that never overflow, and nodes keep their numbers. */
#include "cpu/viterbi.h"

static const uint64_t UNREACHABLE = UINT64_MAX / 2;

/* One step: newcost[v] and decision bit v, from the windows 2v and 2v + 1 that enter node v. */
static void step(const grq_tcq_code *code, int32_t q, const uint64_t *cost, uint64_t *newcost, uint32_t *decision)
{
    const uint32_t n_nodes = 1u << (code->n_bits - 1);
    uint32_t metric[GRQ_TCQ_MAX_LEVELS];
    grq_tcq_metrics(code, q, metric);
    for (uint32_t v = 0; v < n_nodes; v++) {
        const uint32_t w = 2 * v;
        const uint64_t a0 = cost[w % n_nodes] + metric[grq_tcq_index(code, w)];
        const uint64_t a1 = cost[(w + 1) % n_nodes] + metric[grq_tcq_index(code, w + 1)];
        const uint32_t take = a1 < a0;
        newcost[v] = take ? a1 : a0;
        if (v % 32 == 0) decision[v / 32] = 0;
        decision[v / 32] |= take << v % 32;
    }
}

uint32_t grq_viterbi_search_ref(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node)
{
    const uint32_t n_nodes = 1u << (v->code->n_bits - 1), n_words = (n_nodes + 31) / 32;
    uint64_t *cost = v->costs, *next = cost + n_nodes;
    for (uint32_t i = 0; i < n_nodes; i++) cost[i] = path->start == GRQ_ANY_NODE ? 0 : UNREACHABLE;
    if (path->start != GRQ_ANY_NODE) cost[path->start] = 0;
    const uint32_t n_untraced = path->n_steps - path->n_traced;
    for (uint32_t t = 0, i = path->first % v->n; t < path->n_steps; t++, i = i + 1 < v->n ? i + 1 : 0) {
        /* Decisions of untraced steps are overwritten. */
        step(v->code, v->q[i], cost, next, v->decisions + (t < n_untraced ? 0 : t - n_untraced) * n_words);
        uint64_t *const swap = cost;
        cost = next;
        next = swap;
    }
    uint32_t node = path->end == GRQ_ANY_NODE ? 0 : (uint32_t)path->end;
    if (path->end == GRQ_ANY_NODE)
        for (uint32_t i = 1; i < path->n_ends; i++)
            if (cost[i] < cost[node]) node = i;
    *end_node = node;
    for (uint32_t t = path->n_traced; t-- > 0;) {
        const uint32_t w = 2 * node + (v->decisions[t * n_words + node / 32] >> node % 32 & 1);
        if (bits) bits[t] = w & 1;
        node = w % n_nodes;
    }
    return node;
}
