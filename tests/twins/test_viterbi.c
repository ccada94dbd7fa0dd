/* The search and the decoding of trellis codes: every instruction set that this processor has gives the bits of the
 * plain C definition. What the processor lacks is named. */
#include "support.h"

#include "codec/tcq.h"
#include "cpu/cpu_level.h"
#include "cpu/tcq_decode.h"
#include "gaterq/rng.h"

static grq_rng rng;

static const uint32_t DIMS[] = { 32, 64, 160, 256 };
static const grq_tcq_code *const CODES[] = { &grq_tcq_t12, &grq_tcq_t10, &grq_tcq_t8 };
enum { MAX_DIM = 256, LARGEST_Q = 2047 };

typedef bool search_function(grq_viterbi *v, const grq_viterbi_path *path, uint8_t *bits, uint32_t *end_node,
                             uint32_t *begin_node);

static search_function *search_of(int level)
{
    return level == GRQ_CPU_AVX512 ? grq_viterbi_search_avx512 : grq_viterbi_search_avx2;
}

/* Rows as encoders make them, and such as they do not: spikes, steps that tie, the largest magnitudes. */
static void make_row(uint32_t kind, uint32_t n, int16_t *q)
{
    static const double spread[] = { 74, 20, 74, 300, 74, 1500, 0, 74 };
    for (uint32_t i = 0; i < n; i++) {
        double x = rint(spread[kind] * grq_rng_normal(&rng));
        if (kind == 2) x = 64 * rint(x / 64);                      /* many equal costs */
        if (kind == 4 && grq_rng_below(&rng, 40) == 0) x = 15 * x; /* outliers */
        if (kind == 6) x = 0;                                      /* a constant row */
        if (kind == 7) x = i % 32 ? rint(x / 8) : grq_rng_below(&rng, 2) ? 900 : -900;
        q[i] = (int16_t)(x > LARGEST_Q ? LARGEST_Q : x < -LARGEST_Q ? -LARGEST_Q : x);
    }
}
enum { N_KINDS = 8 };

/* Both passes of format A, both ends of format B, and ends of other kinds. */
static grq_viterbi_path make_path(uint32_t kind, uint32_t n, const grq_tcq_code *code)
{
    const uint32_t n_nodes = 1u << (code->n_bits - 1), warm_up = kind == 0 ? n / 2 : n;
    const int32_t node = (int32_t)grq_rng_below(&rng, n_nodes);
    grq_viterbi_path path = {
        .n_steps = n, .n_traced = n, .start = GRQ_ANY_NODE, .end = GRQ_ANY_NODE, .n_ends = n_nodes
    };
    if (kind < 2) {
        path.first = n - warm_up;
        path.n_steps = 2 * warm_up;
        path.n_traced = warm_up;
    }
    if (kind == 2) path.start = path.end = node;
    if (kind == 4) path.n_ends = n_nodes < 256 ? n_nodes : 256;
    if (kind == 5) path.start = node;
    return path;
}
enum { N_PATHS = 6 };

static void compare(int level, const grq_tcq_code *code, uint32_t n, uint32_t kind, uint32_t path_kind,
                    uint32_t *n_safe, uint32_t *n_lowered)
{
    int16_t q[MAX_DIM];
    uint8_t want[MAX_DIM], got[MAX_DIM];
    uint32_t want_end, got_end, got_begin;
    grq_viterbi v;
    const grq_viterbi_path path = make_path(path_kind, n, code);
    make_row(kind, n, q);
    assert_true(grq_viterbi_init(&v, code, n, 2 * n, n, level));
    grq_viterbi_begin(&v, q);
    const uint32_t want_begin = grq_viterbi_search_ref(&v, &path, want, &want_end);
    if (grq_viterbi_is_safe(&v, &path)) {
        ++*n_safe;
        for (uint32_t t = 0; t < path.n_steps; t++) *n_lowered += v.lower_costs[t];
        assert_true(search_of(level)(&v, &path, got, &got_end, &got_begin));
        if (want_begin != got_begin || want_end != got_end || memcmp(want, got, path.n_traced))
            fail_msg("%s, %s, %u values, row %u, path %u: nodes %u to %u instead of %u to %u, or other bits",
                     grq_cpu_level_name(level), code->id, n, kind, path_kind, got_begin, got_end, want_begin, want_end);
    }
    /* What the encoder calls chooses by itself. */
    got_begin = grq_viterbi_search(&v, &path, got, &got_end);
    assert_true(want_begin == got_begin && want_end == got_end && !memcmp(want, got, path.n_traced));
    grq_viterbi_clear(&v);
}

static void every_search_is_the_reference(void **state)
{
    (void)state;
    for (int level = GRQ_CPU_AVX2; level <= grq_cpu_level_of_processor(); level++)
        for (size_t c = 0; c < ARRAY_LEN(CODES); c++) {
            uint32_t n_safe = 0, n_lowered = 0, n = 0;
            for (size_t d = 0; d < ARRAY_LEN(DIMS); d++)
                for (uint32_t kind = 0; kind < N_KINDS; kind++)
                    for (uint32_t path = 0; path < N_PATHS; path++, n++)
                        compare(level, CODES[c], DIMS[d], kind, path, &n_safe, &n_lowered);
            fprintf(stderr, "%s, %s: %u of %u searches with costs of 16 bits, lowered %u times\n",
                    grq_cpu_level_name(level), CODES[c]->id, n_safe, n, n_lowered);
            assert_true(n_safe > n / 2 && n_safe < n && n_lowered > 0); /* both sides of the bound were met */
        }
}

/* Costs within 16 bits, at their edge and beyond: the bound must refuse before anything wraps. */
static void the_bound_holds_at_its_edge(void **state)
{
    (void)state;
    const grq_tcq_code *const code = &grq_tcq_t12;
    uint32_t n_safe = 0;
    for (int level = GRQ_CPU_AVX2; level <= grq_cpu_level_of_processor(); level++)
        for (int magnitude = 250; magnitude < 900; magnitude += magnitude < 420 ? 1 : 7) {
            enum { N = 64 };
            int16_t q[N];
            uint8_t want[N], got[N];
            uint32_t want_end, got_end, got_begin;
            grq_viterbi v;
            for (uint32_t i = 0; i < N; i++) q[i] = (int16_t)(grq_rng_below(&rng, 2) ? magnitude : -magnitude);
            assert_true(grq_viterbi_init(&v, code, N, N, N, level));
            grq_viterbi_begin(&v, q);
            for (uint32_t kind = 2; kind < 4; kind++) {
                const grq_viterbi_path path = make_path(kind, N, code);
                if (!grq_viterbi_is_safe(&v, &path)) continue;
                n_safe++;
                const uint32_t begin = grq_viterbi_search_ref(&v, &path, want, &want_end);
                assert_true(search_of(level)(&v, &path, got, &got_end, &got_begin));
                if (begin != got_begin || want_end != got_end || memcmp(want, got, N))
                    fail_msg("%s: values of %d come out otherwise", grq_cpu_level_name(level), magnitude);
            }
            grq_viterbi_clear(&v);
        }
    assert_true(n_safe > 10 || grq_cpu_level_of_processor() == GRQ_CPU_REF);
}

/* A code of any window length, as a file may hold. */
static grq_tcq_code random_code(uint32_t n_bits, uint32_t n_masks)
{
    grq_tcq_code code = { .id = "", .n_bits = n_bits, .n_masks = n_masks };
    for (uint32_t j = 0; j < n_masks; j++) code.mask[j] = (uint16_t)(1 + grq_rng_below(&rng, (1u << n_bits) - 1));
    for (uint32_t j = 0; j < 1u << n_masks; j++) code.level[j] = (int8_t)((int)grq_rng_below(&rng, 255) - 127);
    grq_tcq_code_complete(&code);
    return code;
}

static void every_decoder_is_the_reference(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        const uint32_t n = 32 * (1 + (uint32_t)grq_rng_below(&rng, MAX_DIM / 32));
        const grq_tcq_code code =
            round % 2 ? *CODES[round / 2 % 3]
                      : random_code(2 + (uint32_t)grq_rng_below(&rng, 15), 1 + (uint32_t)grq_rng_below(&rng, 4));
        const uint32_t tail = (uint32_t)grq_rng_next(&rng);
        const float factor = (float)ldexp(1 + (double)grq_rng_below(&rng, 1024), -16);
        uint8_t bits[MAX_DIM / 8];
        int8_t want[MAX_DIM], got[MAX_DIM];
        float start[MAX_DIM], y[MAX_DIM], z[MAX_DIM];
        for (uint32_t i = 0; i < n / 8; i++) bits[i] = (uint8_t)grq_rng_next(&rng);
        for (uint32_t i = 0; i < n; i++) start[i] = (float)grq_rng_normal(&rng);
        /* By the definition itself: a window of bits, parities, a level. */
        for (uint32_t i = 0; i < n; i++) {
            uint32_t window = 0;
            for (uint32_t k = 0; k < code.n_bits; k++) {
                const uint32_t at = i + k;
                window |= (at < n ? bits[at / 8] >> at % 8 & 1u : tail >> (at - n) & 1u) << k;
            }
            want[i] = code.level[grq_tcq_index_by_masks(&code, window)];
        }
        for (int level = GRQ_CPU_REF; level <= grq_cpu_level_of_processor(); level++) {
            const grq_tcq_decoder *const d = grq_tcq_decoder_at(level);
            d->values(&code, bits, tail, n, got);
            if (memcmp(want, got, n)) fail_msg("%s, %u values, window of %u: other values", d->name, n, code.n_bits);
            for (int first = 0; first < 2; first++) {
                for (uint32_t i = 0; i < n; i++) z[i] = (first ? 0.0f : start[i]) + factor * (float)want[i];
                memcpy(y, start, n * sizeof *y);
                d->add(&code, bits, tail, n, factor, first, y);
                if (memcmp(y, z, n * sizeof *y)) fail_msg("%s, %u values, first %d: other sums", d->name, n, first);
            }
        }
    }
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    const int most = grq_cpu_level_of_processor();
    if (most < GRQ_CPU_AVX512)
        fprintf(stderr, "\nNOT TESTED here: this processor has no more than %s\n\n", grq_cpu_level_name(most));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_search_is_the_reference),
        cmocka_unit_test(the_bound_holds_at_its_edge),
        cmocka_unit_test(every_decoder_is_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
