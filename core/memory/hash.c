#include "gaterq/hash.h"

#include <inttypes.h>

void grq_hash_start(grq_hash_state *state)
{
    for (uint32_t i = 0; i < GRQ_MAX_ORDER - 1; i++) state->previous[i] = GRQ_DEAD;
}

static grq_status check_ids(const grq_geometry *g, const int32_t *ids, size_t n_ids, grq_error *err)
{
    for (size_t p = 0; p < n_ids; p++) {
        if (ids[p] >= 0 && (uint64_t)ids[p] < g->n_ids) continue;
        if (ids[p] == GRQ_DEAD && !g->text_only) continue;
        if (ids[p] == GRQ_DEAD)
            return grq_fail(
                err, GRQ_E_USAGE,
                "position %zu: id -1: family %s hashes every position; a placeholder must be replaced by its "
                "token first",
                p, g->family);
        return grq_fail(err, GRQ_E_USAGE, "position %zu: id %" PRId32 " is not below %" PRIu64 "%s", p, ids[p],
                        g->n_ids, g->text_only ? "" : ", nor -1 (not text)");
    }
    return GRQ_OK;
}

/* t_0 .. t_(max_order-1): the id and those before it. Behind a position that is not text, or the start, everything is
 * padding, even if it is text again: blocking latches. Where padding is the end of a text, an earlier end blocks too.
 */
static void window_of(const grq_geometry *g, const grq_hash_state *state, int32_t id, uint64_t *t)
{
    bool blocked = false;
    for (uint32_t i = 0; i < g->max_order; i++) {
        const int32_t at = i == 0 ? id : state->previous[i - 1];
        blocked |= at == GRQ_DEAD || (g->pad_cuts && i > 0 && at == g->pad_id);
        t[i] = (uint64_t)(blocked ? g->pad_id : at);
    }
}

grq_status grq_hash_rows(const grq_geometry *g, uint32_t layer_index, grq_hash_state *state, const int32_t *ids,
                         size_t n_ids, int64_t *rows, grq_error *err)
{
    const grq_status st = check_ids(g, ids, n_ids, err);
    if (st != GRQ_OK) return st;
    const uint64_t *const m = g->multipliers[layer_index], *const primes = g->primes[layer_index];
    const uint64_t *const offsets = g->offsets[layer_index];
    for (size_t p = 0; p < n_ids; p++) {
        uint64_t t[GRQ_MAX_ORDER];
        window_of(g, state, ids[p], t);
        uint64_t mix = t[0] * m[0];
        for (uint32_t order = 2; order <= g->max_order; order++) {
            mix ^= t[order - 1] * m[order - 1];
            if (order < g->min_order) continue;
            const uint32_t first = (order - g->min_order) * g->n_heads;
            for (uint32_t c = first; c < first + g->n_heads; c++) *rows++ = (int64_t)(offsets[c] + mix % primes[c]);
        }
        for (uint32_t i = GRQ_MAX_ORDER - 2; i > 0; i--) state->previous[i] = state->previous[i - 1];
        state->previous[0] = ids[p];
    }
    return GRQ_OK;
}
