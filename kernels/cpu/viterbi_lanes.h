/* kernels/cpu/viterbi_lanes.h - the search with costs of 16 bits, included once per instruction set.
 *
 * Costs never move. A step takes nodes 2v and 2v + 1 to nodes v and v + half, in a butterfly: both new costs come from
 * the same two old ones, so they are stored where those lay. A node's place (its slot, which is a vector, and its lane)
 * is then a permutation of its number's bits that differs from step to step and returns after `n_steps` of the plan.
 * While the bit of the pair is one of the slot's, a butterfly is between whole vectors. When it is one of the lane's,
 * two vectors first exchange it for the newest bit of the slot (swap_lanes), which takes longest to come up.
 *
 * The index of a level is linear in the window, so the branch costs of a vector are one of 16 vectors, chosen by the
 * slot: index of lane XOR index of slot. They are made once a step, and the plan lists the pairs of vectors in groups
 * that share theirs.
 *
 * The including file defines LANES, LANE_BITS, the type `vec`, and the functions
 *   vec load(const void *), void store(void *, vec), vec add(vec, vec), vec add_saturating(vec, vec),
 *   vec subtract(vec, vec),
 *   vec least(vec, vec), vec spread_value(uint16_t),
 *   void decide(uint32_t *words, vec took0, vec a0, vec took1, vec b0): for each lane and both outputs a bit that is
 *     clear where the branch of the odd node was cheaper, in LANES / 16 words,
 *   uint32_t decision_bit(uint32_t lane, uint32_t output): which bit that is,
 *   void swap_lanes(uint32_t lane_bit, vec x, vec y, vec *even, vec *odd): even has x's and y's lanes whose lane_bit is
 *     clear, y's in the places of those where it is set; odd the rest likewise,
 *   void set_index(uint8_t *bytes, const uint8_t *lane_index), void make_metrics(const uint8_t *bytes,
 *     const uint16_t *metric, uint32_t n, vec *out): out[k][lane] = metric[lane_index[lane] ^ k]. */
#include <pthread.h>
#include <string.h>

#include "cpu/viterbi.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    MAX_NODE_BITS = 11,
    MIN_NODE_BITS = LANE_BITS + 2,
    MAX_PAIRS = (1 << MAX_NODE_BITS) / LANES / 2,
    MAX_PLAN = 80, /* steps until every node is back at its place */
    N_PLANS = 4,
    WORDS = LANES / 16 /* of decisions, per pair */
};

typedef struct {
    uint8_t lane_bit;             /* of the pair, LANE_BITS when it is the slot's */
    uint8_t slot_bit;             /* the bit of the place that tells the vectors of a pair apart; counted from lane 0 */
    uint8_t place[MAX_NODE_BITS]; /* before the step, bit i of a node's number is bit place[i] of its place */
    uint8_t lane_index[2 * LANES]; /* in the order that make_metrics wants */
    uint8_t group;                 /* pairs in a group: 1, 2 or 4 */
    uint8_t turn[MAX_PAIRS];       /* when a pair's turn comes */
    uint16_t first[MAX_PAIRS];     /* by turn, in bytes: the vector with slot_bit clear */
    uint16_t metric[MAX_PAIRS];    /* by group, in bytes: where in the step's metrics those of the even node begin */
} plan_step;

typedef struct {
    uint32_t n_bits, n_masks;
    uint16_t mask[GRQ_TCQ_MAX_MASKS];
    uint32_t n_steps, odd, upper; /* bytes to XOR for the odd node, and for the upper half of the new nodes */
    plan_step step[MAX_PLAN];
} search_plan;

/* ---- the plan of a code ---- */

/* Pair j of those that a bit of the slot tells apart: the slot of the one where it is clear, and back. */
static inline uint32_t slot_of_pair(uint32_t pair, uint32_t bit)
{
    return (pair >> bit << (bit + 1)) | (pair & ((1u << bit) - 1));
}

static inline uint32_t pair_of_slot(uint32_t slot, uint32_t bit)
{
    return (slot >> (bit + 1) << bit) | (slot & ((1u << bit) - 1));
}

static void plan_one(const grq_tcq_code *code, uint8_t *place, plan_step *s)
{
    const uint32_t n = code->n_bits - 1, pair = place[0], newest = place[n - 1];
    const bool in_lane = pair < LANE_BITS;
    uint8_t at[MAX_NODE_BITS + 1] = { 0 }; /* index that a bit of the place adds, as the butterfly finds it */
    uint8_t lane_index[LANES];
    memset(s, 0, sizeof *s);
    memcpy(s->place, place, n);
    s->lane_bit = (uint8_t)(in_lane ? pair : LANE_BITS);
    s->slot_bit = (uint8_t)(in_lane ? newest : pair);
    for (uint32_t i = 1; i < n; i++) at[place[i]] = (uint8_t)grq_tcq_index_by_masks(code, 1u << i);
    if (in_lane) {
        at[pair] = at[newest];
        at[newest] = 0;
    }
    for (uint32_t l = 0; l < LANES; l++) {
        lane_index[l] = 0;
        for (uint32_t b = 0; b < LANE_BITS; b++)
            if (l >> b & 1) lane_index[l] ^= at[b];
    }
    set_index(s->lane_index, lane_index);
    const uint32_t bit = s->slot_bit - LANE_BITS, n_pairs = (1u << n) / LANES / 2;
    uint8_t slot_index[MAX_PAIRS];
    uint32_t n_same = 0, turn = 0; /* each index that occurs does so equally often: the map is linear */
    for (uint32_t j = 0; j < n_pairs; j++) {
        slot_index[j] = 0;
        for (uint32_t b = LANE_BITS; b < n; b++)
            if (slot_of_pair(j, bit) >> (b - LANE_BITS) & 1) slot_index[j] ^= at[b];
        n_same += slot_index[j] == 0;
    }
    s->group = (uint8_t)(n_same < 4 ? n_same : 4);
    for (uint32_t index = 0; index < GRQ_TCQ_MAX_LEVELS; index++)
        for (uint32_t j = 0; j < n_pairs; j++)
            if (slot_index[j] == index) {
                s->metric[turn / s->group] = (uint16_t)(index * sizeof(vec));
                s->first[turn] = (uint16_t)(slot_of_pair(j, bit) * sizeof(vec));
                s->turn[j] = (uint8_t)turn++;
            }
    /* The new node's number is the old one's shifted down by one bit, with the output as its top bit. */
    memmove(place, place + 1, n - 1);
    place[n - 1] = s->slot_bit;
    if (in_lane) place[n - 2] = (uint8_t)pair;
}

static bool make_plan(const grq_tcq_code *code, search_plan *plan)
{
    const uint32_t n = code->n_bits - 1;
    uint8_t place[MAX_NODE_BITS];
    bool back = false;
    plan->n_bits = code->n_bits;
    plan->n_masks = code->n_masks;
    memcpy(plan->mask, code->mask, sizeof plan->mask);
    plan->odd = (uint32_t)(grq_tcq_index_by_masks(code, 1) * sizeof(vec));
    plan->upper = (uint32_t)(grq_tcq_index_by_masks(code, 1u << n) * sizeof(vec));
    for (uint32_t i = 0; i < n; i++) place[i] = (uint8_t)i;
    for (plan->n_steps = 0; !back && plan->n_steps < MAX_PLAN;) {
        plan_one(code, place, &plan->step[plan->n_steps++]);
        back = true;
        for (uint32_t i = 0; i < n; i++) back = back && place[i] == i;
    }
    return back;
}

/* Made at the first search with a code and kept; NULL when the code has no plan. */
static const search_plan *plan_of(const grq_tcq_code *code)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static search_plan plans[N_PLANS];
    static uint32_t n_plans;
    if (code->n_bits < MIN_NODE_BITS + 1 || code->n_bits > MAX_NODE_BITS + 1) return NULL;
    for (uint32_t have = 0, i = 0;; i++) {
        if (i == have) have = __atomic_load_n(&n_plans, __ATOMIC_ACQUIRE);
        if (i == have) break;
        if (plans[i].n_bits == code->n_bits && plans[i].n_masks == code->n_masks &&
            !memcmp(plans[i].mask, code->mask, code->n_masks * sizeof *code->mask))
            return &plans[i];
    }
    const search_plan *made = NULL;
    pthread_mutex_lock(&lock);
    /* Another thread may have made it meanwhile; two equal plans do no harm. */
    if (n_plans < N_PLANS && make_plan(code, &plans[n_plans])) {
        made = &plans[n_plans];
        __atomic_store_n(&n_plans, n_plans + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return made;
}

/* ---- a step ---- */

/* What a step has to do. Where all nodes start, nothing is unreachable; from one node, all are reached in as many steps
 * as a node has bits. Then costs cannot reach 65535, and plain addition does, which is the faster. */
enum { COST_ONLY = 0, DECIDE = 1, REACHABLE = 2 };

/* Both uses of a cost shall share one load. */
#define KEEP_IN_REGISTER(x) __asm__("" : "+v"(x))

/* A constant `lane_bit`, `group` and `task` make one loop for each of their values. */
INLINE void butterflies(const search_plan *plan, const plan_step *s, uint32_t n_pairs, uint32_t lane_bit,
                        uint32_t group, int task, const vec *metrics, uint8_t *costs, uint32_t *decisions)
{
    uint8_t *const others = costs + (sizeof(vec) << (s->slot_bit - LANE_BITS));
    const uint32_t odd = plan->odd, upper = plan->upper;
    const uint8_t *const metric = (const uint8_t *)metrics;
    const uint16_t *first = s->first, *m = s->metric;
    for (const uint16_t *const end = first + n_pairs; first < end; first += group, m++, decisions += group * WORDS) {
        const vec m_even0 = load(metric + *m), m_odd0 = load(metric + (*m ^ odd));
        const vec m_even1 = load(metric + (*m ^ upper)), m_odd1 = load(metric + (*m ^ odd ^ upper));
#pragma GCC unroll 4
        for (uint32_t j = 0; j < group; j++) {
            const uint32_t at = first[j];
            vec even = load(costs + at), other = load(others + at);
            KEEP_IN_REGISTER(even);
            KEEP_IN_REGISTER(other);
            if (lane_bit < LANE_BITS) swap_lanes(lane_bit, even, other, &even, &other);
            const bool plain = task & REACHABLE;
            const vec a0 = plain ? add(even, m_even0) : add_saturating(even, m_even0);
            const vec b0 = plain ? add(even, m_even1) : add_saturating(even, m_even1);
            const vec a = least(a0, plain ? add(other, m_odd0) : add_saturating(other, m_odd0));
            const vec b = least(b0, plain ? add(other, m_odd1) : add_saturating(other, m_odd1));
            store(costs + at, a);
            store(others + at, b);
            if (task & DECIDE) decide(decisions + WORDS * j, a, a0, b, b0);
        }
    }
}

INLINE void step_by_group(const search_plan *plan, const plan_step *s, uint32_t n_pairs, uint32_t lane_bit, int task,
                          const vec *metrics, uint8_t *costs, uint32_t *decisions)
{
    if (s->group == 4) butterflies(plan, s, n_pairs, lane_bit, 4, task, metrics, costs, decisions);
    else if (s->group == 2) butterflies(plan, s, n_pairs, lane_bit, 2, task, metrics, costs, decisions);
    else butterflies(plan, s, n_pairs, lane_bit, 1, task, metrics, costs, decisions);
}

INLINE void step(const search_plan *plan, const plan_step *s, uint32_t n_pairs, int task, const vec *metrics,
                 uint8_t *costs, uint32_t *decisions)
{
    switch (s->lane_bit) {
    case 0: step_by_group(plan, s, n_pairs, 0, task, metrics, costs, decisions); break;
    case 1: step_by_group(plan, s, n_pairs, 1, task, metrics, costs, decisions); break;
    case 2: step_by_group(plan, s, n_pairs, 2, task, metrics, costs, decisions); break;
    case 3: step_by_group(plan, s, n_pairs, 3, task, metrics, costs, decisions); break;
#if LANE_BITS > 4
    case 4: step_by_group(plan, s, n_pairs, 4, task, metrics, costs, decisions); break;
#endif
    default: step_by_group(plan, s, n_pairs, LANE_BITS, task, metrics, costs, decisions); break;
    }
}

static uint16_t least_of(const uint16_t *cost, uint32_t n_nodes)
{
    uint16_t lane[LANES];
    vec low = load(cost);
    for (uint32_t i = LANES; i < n_nodes; i += LANES) low = least(low, load(cost + i));
    store(lane, low);
    for (uint32_t l = 1; l < LANES; l++) lane[0] = lane[l] < lane[0] ? lane[l] : lane[0];
    return lane[0];
}

static void lower(uint16_t *cost, uint32_t n_nodes)
{
    const vec by = spread_value(least_of(cost, n_nodes));
    for (uint32_t i = 0; i < n_nodes; i += LANES) store(cost + i, subtract(load(cost + i), by));
}

/* ---- numbers and places of nodes ---- */

static uint32_t place_of(const uint8_t *place, uint32_t n_node_bits, uint32_t node)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n_node_bits; i++) at |= (node >> i & 1) << place[i];
    return at;
}

static uint32_t node_at(const uint8_t *place, uint32_t n_node_bits, uint32_t at)
{
    uint32_t node = 0;
    for (uint32_t i = 0; i < n_node_bits; i++) node |= (at >> place[i] & 1) << i;
    return node;
}

static uint32_t cheapest_node(const uint16_t *cost, const uint8_t *place, uint32_t n_node_bits, uint32_t n_ends)
{
    const uint32_t n_nodes = 1u << n_node_bits;
    uint32_t best = 0;
    if (n_ends < n_nodes) {
        for (uint32_t v = 1; v < n_ends; v++)
            if (cost[place_of(place, n_node_bits, v)] < cost[place_of(place, n_node_bits, best)]) best = v;
        return best;
    }
    const uint16_t low = least_of(cost, n_nodes);
    best = UINT32_MAX;
    for (uint32_t first = 0; first < n_nodes; first += LANES) {
        bool any = false; /* seldom: worth a look at all lanes together */
        for (uint32_t l = 0; l < LANES; l++) any |= cost[first + l] == low;
        for (uint32_t at = first; any && at < first + LANES; at++)
            if (cost[at] == low) {
                const uint32_t node = node_at(place, n_node_bits, at);
                best = node < best ? node : best;
            }
    }
    return best;
}

/* ---- the search ---- */

/* Back from a place, by the steps of the plan that end before step `end` of it. */
static uint32_t trace_back(const search_plan *plan, uint32_t n_words, const uint32_t *decisions, uint32_t n_traced,
                           uint32_t end, uint32_t at, uint8_t *bits)
{
    const uint32_t lane_mask = LANES - 1;
    for (uint32_t t = n_traced, k = end; t-- > 0;) {
        k = k ? k - 1 : plan->n_steps - 1;
        const plan_step *const s = &plan->step[k];
        const uint32_t bit = s->slot_bit - LANE_BITS, slot = at >> LANE_BITS;
        const uint32_t turn = s->turn[pair_of_slot(slot, bit)];
        const uint32_t where = decision_bit(at & lane_mask, slot >> bit & 1);
        const uint32_t took = ~decisions[t * n_words + WORDS * turn + where / 32] >> where % 32 & 1;
        if (s->lane_bit < LANE_BITS) { /* the lane's bit goes back to the slot */
            at = (at & ~(1u << s->slot_bit)) | (at >> s->lane_bit & 1) << s->slot_bit;
            at = (at & ~(1u << s->lane_bit)) | took << s->lane_bit;
        } else {
            at = (at & ~(1u << s->slot_bit)) | took << s->slot_bit;
        }
        if (bits) bits[t] = (uint8_t)took;
    }
    return at;
}

static bool search(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node,
                   uint32_t *begin_node)
{
    const search_plan *const plan = plan_of(v->code);
    if (!plan) return false;
    const uint32_t n_node_bits = v->code->n_bits - 1, n_nodes = 1u << n_node_bits, n_pairs = n_nodes / LANES / 2;
    const uint32_t n_words = WORDS * n_pairs, n_untraced = path->n_steps - path->n_traced;
    uint16_t *const cost = v->costs;
    vec metrics[GRQ_TCQ_MAX_LEVELS];
    memset(cost, path->start == GRQ_ANY_NODE ? 0 : 0xFF, n_nodes * sizeof *cost);
    if (path->start != GRQ_ANY_NODE) cost[path->start] = 0;
    uint32_t k = 0; /* the plan's step */
    for (uint32_t t = 0, i = path->first % v->n; t < path->n_steps; t++, i = i + 1 < v->n ? i + 1 : 0) {
        const plan_step *const s = &plan->step[k];
        make_metrics(s->lane_index, v->metric + (size_t)i * GRQ_TCQ_MAX_LEVELS, 1u << v->code->n_masks, metrics);
        if (v->lower_costs[t]) lower(cost, n_nodes);
        uint32_t *const decisions = v->decisions + (size_t)(t < n_untraced ? 0 : t - n_untraced) * n_words;
        if (path->start != GRQ_ANY_NODE && t < n_node_bits)
            step(plan, s, n_pairs, DECIDE, metrics, (uint8_t *)cost, decisions);
        else if (t < n_untraced) step(plan, s, n_pairs, COST_ONLY | REACHABLE, metrics, (uint8_t *)cost, decisions);
        else step(plan, s, n_pairs, DECIDE | REACHABLE, metrics, (uint8_t *)cost, decisions);
        k = k + 1 < plan->n_steps ? k + 1 : 0;
    }
    const uint8_t *const end_place = plan->step[k].place;
    *end_node =
        path->end == GRQ_ANY_NODE ? cheapest_node(cost, end_place, n_node_bits, path->n_ends) : (uint32_t)path->end;
    const uint32_t at =
        trace_back(plan, n_words, v->decisions, path->n_traced, k, place_of(end_place, n_node_bits, *end_node), bits);
    const uint32_t begin = (k + plan->n_steps - path->n_traced % plan->n_steps) % plan->n_steps;
    *begin_node = node_at(plan->step[begin].place, n_node_bits, at);
    return true;
}
