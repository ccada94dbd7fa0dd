/* A memory layer gives the same bits however a sequence is cut, interleaved with others, sharded, threaded, rewound,
 * copied or saved, for random geometries of all three families' rules (reference numerics). In binary32 by BLAS the
 * same holds within rounding. */
#include "layer_support.h"

#include "gaterq/blas.h"

static grq_error err;

static uint64_t between(grq_rng *rng, uint64_t low, uint64_t high)
{
    return low + grq_rng_below(rng, high - low + 1);
}

/* Small tables, so that rows repeat; widths around the 16 lanes. */
static grq_geometry random_geometry(grq_rng *rng)
{
    grq_geometry g = { .family = "random",
                       .n_layers = 2,
                       .layer_ids = { 1, (uint32_t)between(rng, 2, 9) },
                       .min_order = 2,
                       .max_order = (uint32_t)between(rng, 2, 4),
                       .n_heads = (uint32_t)between(rng, 1, 3),
                       .row_dim = (uint32_t)between(rng, 1, 40),
                       .width = (uint32_t)between(rng, 1, 50),
                       .n_branches = (uint32_t)between(rng, 1, 4),
                       .prime_start = between(rng, 2, 60),
                       .n_ids = between(rng, 3, 40),
                       .pad_id = 2,
                       .multiplier_seed = 10007,
                       .norm_eps = 1e-6,
                       .gate_clamp = 1e-6,
                       .multiplier_rule = (grq_multiplier_rule)between(rng, 0, 1),
                       .hash_seed = between(rng, 0, 5000),
                       .row_multiple = (uint32_t)between(rng, 0, 16),
                       .text_only = between(rng, 0, 1),
                       .bias = between(rng, 0, 1),
                       .zero_rule = (grq_zero_rule)between(rng, 0, 1),
                       .rounding = (grq_rounding)between(rng, 0, 2) };
    g.pad_cuts = g.text_only && between(rng, 0, 1);
    if (between(rng, 0, 2)) {
        g.conv_kernel = (uint32_t)between(rng, 1, 5);
        g.conv_dilation = (uint32_t)between(rng, 1, 4);
        g.conv_eps = 1e-5;
    }
    assert_ok(grq_geometry_derive(&g, &err), &err);
    return g;
}

typedef struct {
    test_layer layer;
    size_t n;
    int32_t *ids;
    float *h, *wanted, *wanted_gates; /* of the run in one piece */
} sample;

static size_t channels_of(const sample *s)
{
    return (size_t)s->layer.geometry.n_branches * s->layer.geometry.width;
}

static const grq_forward_options reference = { .numerics = GRQ_NUMERICS_REFERENCE, .round_input = true };

static void forward(const sample *s, const grq_forward_options *options, grq_layer_state *state, size_t first, size_t n,
                    float *h, float *gates)
{
    const grq_segment segment = { state, n };
    assert_ok(grq_layer_forward(&s->layer.view, s->layer.table, options, 1, &segment, s->ids + first,
                                h + first * channels_of(s), gates + first * s->layer.geometry.n_branches, &err),
              &err);
}

static grq_layer_state *new_state(const sample *s, uint32_t max_rewind)
{
    grq_layer_state *state = NULL;
    assert_ok(grq_layer_state_new(&s->layer.geometry, max_rewind, &state, &err), &err);
    return state;
}

static void sample_new(sample *s, grq_rng *rng, size_t n)
{
    const grq_geometry g = random_geometry(rng);
    *s = (sample){ .n = n };
    test_layer_random(&s->layer, &g, (uint32_t)between(rng, 0, 1), rng);
    s->ids = malloc(n * sizeof *s->ids);
    for (size_t i = 0; i < n; i++)
        s->ids[i] = !g.text_only && between(rng, 0, 9) == 0 ? GRQ_DEAD : (int32_t)grq_rng_below(rng, g.n_ids);
    s->h = test_random(rng, n * channels_of(s), 1);
    s->wanted = malloc(n * channels_of(s) * sizeof *s->wanted);
    s->wanted_gates = malloc(n * g.n_branches * sizeof *s->wanted_gates);
    memcpy(s->wanted, s->h, n * channels_of(s) * sizeof *s->h);
    grq_layer_state *state = new_state(s, 0);
    forward(s, &reference, state, 0, n, s->wanted, s->wanted_gates);
    grq_layer_state_free(state);
}

static void sample_free(sample *s)
{
    test_layer_free(&s->layer);
    free(s->ids);
    free(s->h);
    free(s->wanted);
    free(s->wanted_gates);
}

static void check_same(const sample *s, const float *h, const float *gates, const char *how, uint64_t seed)
{
    const size_t n_h = s->n * channels_of(s), n_gates = s->n * s->layer.geometry.n_branches;
    for (size_t i = 0; i < n_gates; i++)
        if (memcmp(&gates[i], &s->wanted_gates[i], sizeof *gates))
            fail_msg("%s, sample %" PRIu64 ": gate %zu is %a instead of %a", how, seed, i, (double)gates[i],
                     (double)s->wanted_gates[i]);
    for (size_t i = 0; i < n_h; i++)
        if (memcmp(&h[i], &s->wanted[i], sizeof *h))
            fail_msg("%s, sample %" PRIu64 ": value %zu is %a instead of %a", how, seed, i, (double)h[i],
                     (double)s->wanted[i]);
}

enum { SAMPLES = 60 };

/* Runs `how` on random samples with room for its result. */
static void for_samples(void (*how)(const sample *, grq_rng *, float *, float *), const char *name)
{
    for (uint64_t i = 0; i < SAMPLES; i++) {
        const uint64_t seed = test_seed() + i;
        grq_rng rng;
        sample s;
        grq_rng_seed(&rng, seed);
        sample_new(&s, &rng, between(&rng, 1, 70));
        float *const h = malloc(s.n * channels_of(&s) * sizeof *h);
        float *const gates = malloc(s.n * s.layer.geometry.n_branches * sizeof *gates);
        memcpy(h, s.h, s.n * channels_of(&s) * sizeof *h);
        how(&s, &rng, h, gates);
        check_same(&s, h, gates, name, seed);
        free(gates);
        free(h);
        sample_free(&s);
    }
}

/* ---- one sequence ---- */

static void chunked(const sample *s, grq_rng *rng, float *h, float *gates)
{
    grq_layer_state *state = new_state(s, (uint32_t)between(rng, 0, 3));
    for (size_t at = 0, n; at < s->n; at += n) {
        n = between(rng, 1, 12);
        if (n > s->n - at) n = s->n - at;
        forward(s, &reference, state, at, n, h, gates);
        assert_true(grq_layer_state_position(state) == at + n);
    }
    grq_layer_state_free(state);
}

static void any_chunking(void **state)
{
    (void)state;
    for_samples(chunked, "chunks");
}

static void sharded(const sample *s, grq_rng *rng, float *h, float *gates)
{
    static const uint32_t counts[] = { 1, 2, 3, 5, 8 };
    grq_forward_options options = reference;
    options.n_shards = counts[grq_rng_below(rng, ARRAY_LEN(counts))];
    options.n_threads = (uint32_t)between(rng, 1, 5);
    grq_layer_state *past = new_state(s, 0);
    forward(s, &options, past, 0, s->n, h, gates);
    grq_layer_state_free(past);
}

static void any_number_of_shards_and_threads(void **state)
{
    (void)state;
    for_samples(sharded, "shards");
}

/* Drafts of other tokens that are rejected: after a rewind nothing of them is left. */
static void speculative(const sample *s, grq_rng *rng, float *h, float *gates)
{
    const uint32_t max_rewind = 6;
    const grq_geometry *const g = &s->layer.geometry;
    grq_layer_state *past = new_state(s, max_rewind);
    for (size_t at = 0; at < s->n;) {
        const size_t n_draft = between(rng, 1, max_rewind);
        int32_t draft[8];
        float *const drafted = test_random(rng, n_draft * channels_of(s), 1);
        for (size_t i = 0; i < n_draft; i++) draft[i] = (int32_t)grq_rng_below(rng, g->n_ids);
        const grq_segment segment = { past, n_draft };
        assert_ok(
            grq_layer_forward(&s->layer.view, s->layer.table, &reference, 1, &segment, draft, drafted, NULL, &err),
            &err);
        assert_ok(grq_layer_state_rewind(past, n_draft, &err), &err);
        free(drafted);
        size_t n = between(rng, 1, 4);
        if (n > s->n - at) n = s->n - at;
        forward(s, &reference, past, at, n, h, gates);
        at += n;
    }
    grq_layer_state_free(past);
}

static void rejected_speculation_leaves_no_trace(void **state)
{
    (void)state;
    for_samples(speculative, "speculation");
}

/* A prefix is computed once; a copy and a state from bytes go on from it. */
static void prefixed(const sample *s, grq_rng *rng, float *h, float *gates)
{
    const size_t prefix = between(rng, 0, s->n), rest = s->n - prefix;
    grq_layer_state *first = new_state(s, 2), *copy = new_state(s, 2), *loaded = new_state(s, 2);
    forward(s, &reference, first, 0, prefix, h, gates);
    assert_ok(grq_layer_state_copy(copy, first, &err), &err);
    const size_t n_bytes = grq_layer_state_bytes(first);
    void *const bytes = malloc(n_bytes);
    grq_layer_state_save(first, bytes);
    assert_ok(grq_layer_state_load(loaded, bytes, n_bytes, &err), &err);
    float *const again = malloc((rest + 1) * channels_of(s) * sizeof *again);
    memcpy(again, s->h + prefix * channels_of(s), rest * channels_of(s) * sizeof *again);
    const grq_segment segment = { copy, rest };
    assert_ok(
        grq_layer_forward(&s->layer.view, s->layer.table, &reference, 1, &segment, s->ids + prefix, again, NULL, &err),
        &err);
    assert_memory_equal(again, s->wanted + prefix * channels_of(s), rest * channels_of(s) * sizeof *again);
    forward(s, &reference, loaded, prefix, rest, h, gates);
    assert_refused(grq_layer_state_load(loaded, bytes, n_bytes - 1, &err), GRQ_E_DATA, &err, "saved layer state");
    free(again);
    free(bytes);
    grq_layer_state_free(first);
    grq_layer_state_free(copy);
    grq_layer_state_free(loaded);
}

static void a_prefix_is_shared(void **state)
{
    (void)state;
    for_samples(prefixed, "prefix");
}

/* ---- several sequences ---- */

/* The sample's tokens as up to four sequences, advanced together in ragged steps, against each alone. */
static void interleaved_sequences_do_not_meet(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < SAMPLES; k++) {
        enum { SEQUENCES = 4 };
        grq_rng rng;
        sample s;
        grq_rng_seed(&rng, test_seed() + 1000 + k);
        sample_new(&s, &rng, between(&rng, SEQUENCES, 400)); /* more than a block of the forward pass */
        const size_t channels = channels_of(&s), branches = s.layer.geometry.n_branches;
        size_t start[SEQUENCES + 1] = { 0 }, done[SEQUENCES] = { 0 };
        for (size_t q = 1; q <= SEQUENCES; q++) start[q] = s.n * q / SEQUENCES;
        grq_layer_state *past[SEQUENCES];
        for (size_t q = 0; q < SEQUENCES; q++) {
            past[q] = new_state(&s, 0);
            memcpy(s.wanted + start[q] * channels, s.h + start[q] * channels,
                   (start[q + 1] - start[q]) * channels * sizeof *s.h);
            forward(&s, &reference, past[q], start[q], start[q + 1] - start[q], s.wanted, s.wanted_gates);
            grq_layer_state_reset(past[q]);
        }
        float *const h = malloc(s.n * channels * sizeof *h), *const gates = malloc(s.n * branches * sizeof *gates);
        float *const step = malloc(s.n * channels * sizeof *step), *const g = malloc(s.n * branches * sizeof *g);
        int32_t *const ids = malloc(s.n * sizeof *ids);
        for (size_t left = s.n; left > 0;) {
            grq_segment segments[SEQUENCES];
            size_t n = 0;
            for (size_t q = 0; q < SEQUENCES; q++) {
                const size_t remains = start[q + 1] - start[q] - done[q], most = between(&rng, 0, 90);
                segments[q] = (grq_segment){ past[q], remains < most ? remains : most };
                memcpy(ids + n, s.ids + start[q] + done[q], segments[q].n_tokens * sizeof *ids);
                memcpy(step + n * channels, s.h + (start[q] + done[q]) * channels,
                       segments[q].n_tokens * channels * sizeof *step);
                n += segments[q].n_tokens;
            }
            assert_ok(
                grq_layer_forward(&s.layer.view, s.layer.table, &reference, SEQUENCES, segments, ids, step, g, &err),
                &err);
            for (size_t q = 0, at = 0; q < SEQUENCES; at += segments[q++].n_tokens) {
                memcpy(h + (start[q] + done[q]) * channels, step + at * channels,
                       segments[q].n_tokens * channels * sizeof *h);
                memcpy(gates + (start[q] + done[q]) * branches, g + at * branches,
                       segments[q].n_tokens * branches * sizeof *gates);
                done[q] += segments[q].n_tokens;
            }
            left -= n;
        }
        check_same(&s, h, gates, "interleaved", k);
        for (size_t q = 0; q < SEQUENCES; q++) grq_layer_state_free(past[q]);
        free(ids);
        free(g);
        free(step);
        free(gates);
        free(h);
        sample_free(&s);
    }
}

/* ---- binary32 and errors ---- */

/* BLAS may sum in another order for another batch: a few roundings of sums over row_values and width terms, that the
 * gate norms and the convolution's norm then scale. 1e-4 of values of order 1 is far below any real fault. */
static void binary32_by_blas_is_close(void **state)
{
    (void)state;
    const grq_forward_options fp32 = { .numerics = GRQ_NUMERICS_FP32, .n_threads = 2 };
    for (uint64_t k = 0; k < SAMPLES; k++) {
        grq_rng rng;
        sample s;
        grq_rng_seed(&rng, test_seed() + 2000 + k);
        sample_new(&s, &rng, 40);
        s.layer.geometry.rounding = GRQ_ROUNDING_NONE;
        const size_t channels = channels_of(&s);
        float *const whole = malloc(s.n * channels * sizeof *whole), *const parts =
                                                                         malloc(s.n * channels * sizeof *parts);
        float gates[40 * 4];
        memcpy(whole, s.h, s.n * channels * sizeof *whole);
        memcpy(parts, s.h, s.n * channels * sizeof *parts);
        grq_layer_state *past = new_state(&s, 0);
        forward(&s, &reference, past, 0, s.n, whole, gates);
        grq_layer_state_reset(past);
        for (size_t at = 0, n; at < s.n; at += n) {
            n = between(&rng, 1, 9);
            if (n > s.n - at) n = s.n - at;
            forward(&s, &fp32, past, at, n, parts, gates);
        }
        for (size_t i = 0; i < s.n * channels; i++)
            if (fabsf(whole[i] - parts[i]) > 1e-4f * (1 + fabsf(whole[i])))
                fail_msg("sample %" PRIu64 ", value %zu: %.9g by BLAS in parts, %.9g exactly", k, i, (double)parts[i],
                         (double)whole[i]);
        grq_layer_state_free(past);
        free(parts);
        free(whole);
        sample_free(&s);
    }
}

/* The second sequence has a bad id: nothing advances. */
static void an_error_leaves_the_states(void **state)
{
    (void)state;
    grq_rng rng;
    sample s;
    grq_rng_seed(&rng, 5);
    sample_new(&s, &rng, 6);
    grq_layer_state *a = new_state(&s, 1), *b = new_state(&s, 1);
    forward(&s, &reference, a, 0, 2, s.h, s.wanted_gates);
    const size_t n_bytes = grq_layer_state_bytes(a);
    char *const before = malloc(2 * n_bytes), *const after = malloc(2 * n_bytes);
    grq_layer_state_save(a, before);
    grq_layer_state_save(b, before + n_bytes);
    int32_t ids[4] = { 0, 1, 0, (int32_t)s.layer.geometry.n_ids };
    const grq_segment segments[] = { { a, 2 }, { b, 2 } };
    assert_refused(grq_layer_forward(&s.layer.view, s.layer.table, &reference, 2, segments, ids, s.h, NULL, &err),
                   GRQ_E_USAGE, &err, "sequence 1: position 1: id");
    grq_layer_state_save(a, after);
    grq_layer_state_save(b, after + n_bytes);
    assert_memory_equal(before, after, 2 * n_bytes);
    assert_refused(grq_layer_state_rewind(a, 3, &err), GRQ_E_USAGE, &err, "rewind by 3 tokens: the sequence has 2");
    assert_refused(grq_layer_state_rewind(a, 2, &err), GRQ_E_USAGE, &err, "max_rewind (1)");
    free(before);
    free(after);
    grq_layer_state_free(a);
    grq_layer_state_free(b);
    sample_free(&s);
}

static int start(void **state)
{
    (void)state;
    assert_ok(grq_blas_init(&err), &err);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_chunking),
        cmocka_unit_test(any_number_of_shards_and_threads),
        cmocka_unit_test(rejected_speculation_leaves_no_trace),
        cmocka_unit_test(a_prefix_is_shared),
        cmocka_unit_test(interleaved_sequences_do_not_meet),
        cmocka_unit_test(binary32_by_blas_is_close),
        cmocka_unit_test(an_error_leaves_the_states),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
