/* Memory of a search, the bound that allows costs of 16 bits, and the choice of the instruction set. */
#include <stdlib.h>

#include "cpu/cpu_level.h"
#include "cpu/viterbi.h"

enum { ALIGN = 64, LARGEST_COST = 65534 /* 65535 stands for unreachable */ };

static size_t rounded(size_t n_bytes)
{
    return (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
}

bool grq_viterbi_init(grq_viterbi *v, const grq_tcq_code *code, uint32_t n, uint32_t max_steps, uint32_t max_traced,
                      int level)
{
    const size_t n_nodes = (size_t)1 << (code->n_bits - 1), decision_bytes = n_nodes < 64 ? 8 : n_nodes / 8;
    const size_t sizes[] = { (size_t)n * GRQ_TCQ_MAX_LEVELS * sizeof(uint16_t), (size_t)n * sizeof(uint16_t), max_steps,
                             /* an untraced step writes its decisions too */
                             (max_traced ? max_traced : 1) * decision_bytes, 2 * n_nodes * sizeof(uint64_t) };
    size_t start[5], total = 0;
    for (int i = 0; i < 5; i++) {
        start[i] = total;
        total += rounded(sizes[i]);
    }
    uint8_t *const block = aligned_alloc(ALIGN, total);
    if (!block) return false;
    *v = (grq_viterbi){ .code = code,
                        .n = n,
                        .max_steps = max_steps,
                        .max_traced = max_traced,
                        .level = level,
                        .metric = (uint16_t *)(block + start[0]),
                        .dearest = (uint16_t *)(block + start[1]),
                        .lower_costs = block + start[2],
                        .decisions = (uint32_t *)(block + start[3]),
                        .costs = block + start[4],
                        .block = block };
    return true;
}

void grq_viterbi_clear(grq_viterbi *v)
{
    free(v->block);
    v->block = NULL;
}

void grq_viterbi_begin(grq_viterbi *v, const int16_t *q)
{
    v->q = q;
    v->narrow =
        v->level != GRQ_CPU_REF && grq_viterbi_metrics_avx2(v->code, q, v->n, v->metric, v->dearest) <= LARGEST_COST;
}

/* `most` bounds every reachable cost. From any node each node can be reached in L - 1 steps, so after those the dearest
 * is above the cheapest by at most `spread`, what L - 1 steps can cost, and subtracting the cheapest leaves no more
 * than that. Before them `most` is `spread`, so that nothing is subtracted: unreachable must stay unreachable. */
bool grq_viterbi_is_safe(grq_viterbi *v, const grq_viterbi_path *path)
{
    const uint32_t memory = v->code->n_bits - 1, n = v->n;
    uint32_t most = 0, spread = 0;
    if (!v->narrow) return false;
    for (uint32_t t = 0, i = path->first % n, back = i; t < path->n_steps; t++, i = i + 1 < n ? i + 1 : 0) {
        const uint32_t here = v->dearest[i];
        v->lower_costs[t] = most + here > LARGEST_COST;
        if (v->lower_costs[t]) {
            if (spread + here > LARGEST_COST) return false;
            most = spread;
        }
        most += here;
        spread += here;
        if (t >= memory) {
            spread -= v->dearest[back];
            back = back + 1 < n ? back + 1 : 0;
        }
    }
    return true;
}

uint32_t grq_viterbi_search(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node)
{
    uint32_t begin_node;
    if (v->level != GRQ_CPU_REF && grq_viterbi_is_safe(v, path) &&
        (v->level == GRQ_CPU_AVX512 ? grq_viterbi_search_avx512 : grq_viterbi_search_avx2)(v, path, bits, end_node,
                                                                                           &begin_node))
        return begin_node;
    return grq_viterbi_search_ref(v, path, bits, end_node);
}
