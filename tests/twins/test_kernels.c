/* Every table of CPU kernels gives the bits of the reference. A NaN is a NaN, whatever its payload; rows that are
 * refused have no values to compare. */
#include "support.h"

#include "cpu/cpu_level.h"
#include "cpu/kernels.h"
#include "gaterq/rng.h"
#include "kernels_wide.h"

static grq_rng rng;

static const uint32_t lengths[] = { 1, 7, 15, 16, 17, 31, 32, 33, 64, 160, 256, 2560 };
enum { LONGEST = 2560, GUARD = 16, ROUNDS = 6 };
#define GUARD_VALUE 0x1.2345p67f

/* The twins that can run here: those of the processor, and the portable one. */
static const grq_kernels *twin_at(size_t index)
{
    const grq_kernels *const k = grq_cpu_kernels_at(index + 1);
    return k ? k : index == 0 || grq_cpu_kernels_at(index) ? &kernels_wide : NULL;
}

#define FOR_TWINS(k)                                                                                                   \
    const grq_kernels *k;                                                                                              \
    for (size_t twin = 0; (k = twin_at(twin)); twin++)

/* ---- values ---- */

typedef enum { NORMAL, ANY_FINITE, HOSTILE, N_KINDS } kind;
static const char *const kind_names[] = { "normal", "any finite", "hostile" };

static float value_of(kind what)
{
    static const float corners[] = { 0.0f,      -0.0f,      0x1p-149f, -0x1p-149f, 0x1.fffffcp-127f, 0x1p-126f,
                                     -0x1p-63f, 1.0f,       -1.0f,     0x1p64f,    0x1.fffffep127f,  -0x1.fffffep127f,
                                     HUGE_VALF, -HUGE_VALF, NAN,       -NAN };
    const uint64_t bits = grq_rng_next(&rng);
    float x;
    switch (what) {
    case NORMAL: return (float)grq_rng_normal(&rng);
    case ANY_FINITE: x = grq_float_from_bits((uint32_t)bits); return isfinite(x) ? x : 1.5f;
    default: return bits % 8 ? (float)grq_rng_normal(&rng) : corners[bits / 8 % ARRAY_LEN(corners)];
    }
}

/* n values, of an address that is aligned to a float only, and a guard behind them. */
typedef struct {
    float memory[LONGEST * 20 + GUARD + 1], *at;
} values;

static void fill(values *v, size_t n, kind what)
{
    v->at = v->memory + grq_rng_below(&rng, 2);
    for (size_t i = 0; i < n; i++) v->at[i] = value_of(what);
    for (size_t i = 0; i < GUARD; i++) v->at[n + i] = GUARD_VALUE;
}

static void copy(values *to, const values *from)
{
    to->at = to->memory + (from->at - from->memory);
    memcpy(to->memory, from->memory, sizeof to->memory);
}

static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || grq_bits_from_float(a) == grq_bits_from_float(b);
}

/* `shape` is printed when a value differs, or when one was written behind the end. */
static void compare(const char *shape, size_t n, const float *want, const float *got)
{
    for (size_t i = 0; i < n; i++)
        if (!same(want[i], got[i]))
            fail_msg("%s, seed %" PRIu64 ": value %zu is %a, reference %a", shape, test_seed(), i, (double)got[i],
                     (double)want[i]);
    for (size_t i = n; i < n + GUARD; i++)
        if (got[i] != GUARD_VALUE)
            fail_msg("%s, seed %" PRIu64 ": wrote %a at %zu, behind the end", shape, test_seed(), (double)got[i], i);
}

static const char *shape_of(const grq_kernels *k, const char *what, uint32_t n, kind values_kind)
{
    static char text[200];
    snprintf(text, sizeof text, "%s %s of %u, %s values", k->name, what, n, kind_names[values_kind]);
    return text;
}

/* Runs `body` for every twin, length and kind of values, ROUNDS times: `k`, `n` and `what` are set. */
#define FOR_CASES                                                                                                      \
    FOR_TWINS(k)                                                                                                       \
    for (size_t at = 0; at < ARRAY_LEN(lengths) * N_KINDS * ROUNDS; at++)

#define CASE_LENGTH (lengths[at % ARRAY_LEN(lengths)])
#define CASE_KIND ((kind)(at / ARRAY_LEN(lengths) % N_KINDS))

/* ---- sums and elements ---- */

static values a, b, c, d, out_ref, out_twin;

static void sums_have_the_bits_of_the_reference(void **state)
{
    (void)state;
    FOR_CASES
    {
        const uint32_t n = CASE_LENGTH;
        const kind what = CASE_KIND;
        fill(&a, n, what);
        fill(&b, n, what);
        fill(&c, n, what);
        fill(&d, n, what);
        fill(&out_ref, 5, NORMAL);
        copy(&out_twin, &out_ref);
        grq_kernels_ref.gate_sums(n, a.at, b.at, c.at, d.at, out_ref.at);
        k->gate_sums(n, a.at, b.at, c.at, d.at, out_twin.at);
        out_ref.at[3] = grq_kernels_ref.sum(n, a.at);
        out_twin.at[3] = k->sum(n, a.at);
        out_ref.at[4] = grq_kernels_ref.sum_squares(n, a.at);
        out_twin.at[4] = k->sum_squares(n, a.at);
        compare(shape_of(k, "sums (hh, kk, hk, sum, squares)", n, what), 5, out_ref.at, out_twin.at);
    }
}

/* One function that writes n values, on the same arguments for any table. */
typedef void element_function(const grq_kernels *k, uint32_t n, float factor, float *out);

static void call_normalise(const grq_kernels *k, uint32_t n, float factor, float *out)
{
    k->normalise(n, a.at, factor, b.at, out);
}

static void call_multiply(const grq_kernels *k, uint32_t n, float factor, float *out)
{
    (void)factor;
    k->multiply(n, a.at, b.at, out);
}

static void call_add_scaled(const grq_kernels *k, uint32_t n, float factor, float *out)
{
    k->add_scaled(n, factor, a.at, out);
}

static void call_convolve(const grq_kernels *k, uint32_t n, float factor, float *out)
{
    (void)factor;
    const float *const taps[] = { a.at, NULL, b.at, c.at };
    for (uint32_t n_taps = 0; n_taps <= ARRAY_LEN(taps); n_taps++) k->convolve(n, n_taps, taps, d.at, out);
}

static void call_round_bf16(const grq_kernels *k, uint32_t n, float factor, float *out)
{
    (void)factor;
    k->round_bf16(n, out);
}

static void elements_have_the_bits_of_the_reference(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        element_function *call;
    } functions[] = { { "normalise", call_normalise },
                      { "multiply", call_multiply },
                      { "add_scaled", call_add_scaled },
                      { "convolve", call_convolve },
                      { "round_bf16", call_round_bf16 } };
    FOR_CASES
    {
        const uint32_t n = CASE_LENGTH;
        const kind what = CASE_KIND;
        fill(&a, n, what);
        fill(&b, n, what);
        fill(&c, n, what);
        fill(&d, 4 * n, what);
        for (size_t f = 0; f < ARRAY_LEN(functions); f++) {
            const float factor = value_of(what);
            fill(&out_ref, n, what);
            copy(&out_twin, &out_ref);
            functions[f].call(&grq_kernels_ref, n, factor, out_ref.at);
            functions[f].call(k, n, factor, out_twin.at);
            compare(shape_of(k, functions[f].name, n, what), n, out_ref.at, out_twin.at);
        }
    }
}

/* Round to nearest, ties to even, where it is hardest: every upper half of a number, and what decides below it. */
static void every_tie_rounds_to_bf16_alike(void **state)
{
    (void)state;
    static const uint32_t low[] = { 0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF };
    enum { N = 65536 / 4 };
    FOR_TWINS(k)
    for (size_t l = 0; l < ARRAY_LEN(low); l++)
        for (uint32_t first = 0; first < 65536; first += N) {
            fill(&out_ref, N, NORMAL);
            for (uint32_t i = 0; i < N; i++) out_ref.at[i] = grq_float_from_bits((first + i) << 16 | low[l]);
            copy(&out_twin, &out_ref);
            grq_kernels_ref.round_bf16(N, out_ref.at);
            k->round_bf16(N, out_twin.at);
            compare(shape_of(k, "round_bf16", N, ANY_FINITE), N, out_ref.at, out_twin.at);
        }
}

/* ---- projections ---- */

/* Tokens, outputs and inputs that fall on and beside the edges of tiles, panels and blocks. */
static void project_case(const grq_kernels *k, uint32_t n_tokens, uint32_t n_out, uint32_t n_in, kind what)
{
    char shape[200];
    snprintf(shape, sizeof shape, "%s project %u tokens, %u outputs, %u inputs, %s values", k->name, n_tokens, n_out,
             n_in, kind_names[what]);
    const size_t n = (size_t)n_tokens * n_out;
    fill(&a, (size_t)n_tokens * n_in, what);
    fill(&b, (size_t)n_out * n_in, what);
    fill(&c, n_out, what);
    const float *const bias = grq_rng_below(&rng, 2) ? c.at : NULL;
    fill(&out_ref, n, NORMAL);
    copy(&out_twin, &out_ref);
    grq_kernels_ref.project(n_tokens, n_out, n_in, a.at, b.at, bias, out_ref.at);
    k->project(n_tokens, n_out, n_in, a.at, b.at, bias, out_twin.at);
    compare(shape, n, out_ref.at, out_twin.at);
    /* The same again in two parts: a batch never changes an output. */
    const uint32_t cut = (uint32_t)grq_rng_below(&rng, n_tokens + 1);
    fill(&out_twin, n, NORMAL);
    k->project(cut, n_out, n_in, a.at, b.at, bias, out_twin.at);
    k->project(n_tokens - cut, n_out, n_in, a.at + (size_t)cut * n_in, b.at, bias, out_twin.at + (size_t)cut * n_out);
    compare(shape, n, out_ref.at, out_twin.at);
}

static void projections_have_the_bits_of_the_reference(void **state)
{
    (void)state;
    static const uint32_t counts[] = { 1, 2, 3, 4, 5, 8, 9, 12, 17 };
    FOR_TWINS(k)
    {
        for (size_t at = 0; at < ARRAY_LEN(lengths) * N_KINDS; at++)
            project_case(k, counts[grq_rng_below(&rng, ARRAY_LEN(counts))],
                         counts[grq_rng_below(&rng, ARRAY_LEN(counts))], CASE_LENGTH, CASE_KIND);
        for (int round = 0; round < 100; round++)
            project_case(k, 1 + (uint32_t)grq_rng_below(&rng, 60), 1 + (uint32_t)grq_rng_below(&rng, 20),
                         1 + (uint32_t)grq_rng_below(&rng, 80), (kind)(round % N_KINDS));
    }
}

/* ---- rows ---- */

static uint8_t codes[LONGEST * 4 + 1], scales[LONGEST / GRQ_F8_BLOCK + 1];

static void scale_rule(bool shift, float out[256])
{
    for (uint32_t i = 0; i < 256; i++) out[i] = shift ? grq_float_from_bits(i << 23) : grq_f32_from_e8m0((uint8_t)i);
}

static void compare_rows(const char *shape, uint32_t n, bool bad_ref, bool bad)
{
    if (bad != bad_ref)
        fail_msg("%s, seed %" PRIu64 ": %s, reference %s", shape, test_seed(), bad ? "refused" : "accepted",
                 bad_ref ? "refused" : "accepted");
    if (!bad) compare(shape, n, out_ref.at, out_twin.at);
}

static void row_f8(const grq_kernels *k, const char *shape, uint32_t n, const float *scale_values)
{
    fill(&out_ref, n, NORMAL);
    copy(&out_twin, &out_ref);
    const bool bad_ref = grq_kernels_ref.row_f8_blocks(codes + 1, scales, scale_values, n, out_ref.at);
    compare_rows(shape, n, bad_ref, k->row_f8_blocks(codes + 1, scales, scale_values, n, out_twin.at));
}

/* All codes, alone among others, under all scales of both rules. */
static void every_code_times_every_scale(void **state)
{
    (void)state;
    enum { N = 77 };
    float scale_values[256];
    char shape[200];
    FOR_TWINS(k)
    for (int shift = 0; shift < 2; shift++) {
        scale_rule(shift, scale_values);
        for (uint32_t byte = 0; byte < 256; byte++)
            for (uint32_t code = 0; code < 256; code++) {
                memset(codes, 0x38, sizeof codes);
                memset(scales, 127, sizeof scales);
                const uint32_t place = code % N;
                codes[1 + place] = (uint8_t)code;
                scales[place / GRQ_F8_BLOCK] = (uint8_t)byte;
                snprintf(shape, sizeof shape, "%s row_f8_blocks, rule %d, code 0x%02X at %u, scale byte %u", k->name,
                         shift, code, place, byte);
                row_f8(k, shape, N, scale_values);
                /* The same block with nothing but this code: no other value decides whether the row is refused. */
                memset(codes, (int)code, sizeof codes);
                row_f8(k, shape, GRQ_F8_BLOCK,
                       (const float[256]){ [0] = scale_values[byte], [127] = scale_values[byte] });
            }
    }
}

static void row_f8_times(const grq_kernels *k, const char *shape, uint32_t n, float scale)
{
    fill(&out_ref, n, NORMAL);
    copy(&out_twin, &out_ref);
    const bool bad_ref = grq_kernels_ref.row_f8_scalar(codes + 1, scale, n, out_ref.at);
    compare_rows(shape, n, bad_ref, k->row_f8_scalar(codes + 1, scale, n, out_twin.at));
}

static void f8_rows_of_every_length(void **state)
{
    (void)state;
    float scale_values[256];
    char shape[200];
    FOR_TWINS(k)
    for (size_t at = 0; at < ARRAY_LEN(lengths) * 40; at++) {
        const uint32_t n = CASE_LENGTH;
        const bool clean = grq_rng_below(&rng, 2), shift = grq_rng_below(&rng, 2);
        for (size_t i = 0; i < sizeof codes; i++) codes[i] = (uint8_t)grq_rng_next(&rng);
        for (size_t i = 0; clean && i < sizeof codes; i++) codes[i] -= (codes[i] & 0x7F) == 0x7F;
        for (size_t i = 0; i < sizeof scales; i++) scales[i] = (uint8_t)grq_rng_below(&rng, clean ? 240 : 256);
        scale_rule(shift, scale_values);
        snprintf(shape, sizeof shape, "%s row_f8_blocks of %u, rule %d, %s codes", k->name, n, shift,
                 clean ? "finite" : "any");
        row_f8(k, shape, n, scale_values);
        const float scale = at % 3 ? value_of(at % 3 == 1 ? NORMAL : ANY_FINITE) : value_of(HOSTILE);
        snprintf(shape, sizeof shape, "%s row_f8_scalar of %u, scale %a, %s codes", k->name, n, (double)scale,
                 clean ? "finite" : "any");
        row_f8_times(k, shape, n, scale);
    }
}

/* Where products overflow, vanish or round to infinity in BF16. */
static void every_code_times_a_tables_scale(void **state)
{
    (void)state;
    static const float edges[] = {
        0x1p118f, 0x1.fffffep118f, 0x1p119f,  0x1.2p119f, 0x1.24924ap119f, 0x1.25p119f, 0x1.fffffep119f, 0x1p120f,
        0x1p127f, 0x1.fffffep127f, HUGE_VALF, NAN,        0x1p-149f,       0x1p-126f,   0x1p-133f,       0.0f,
        0.37f
    };
    char shape[200];
    FOR_TWINS(k)
    for (size_t at = 0; at < 2 * ARRAY_LEN(edges); at++)
        for (uint32_t code = 0; code < 256; code++) {
            const float scale = at % 2 ? -edges[at / 2] : edges[at / 2];
            memset(codes, (int)code, sizeof codes);
            snprintf(shape, sizeof shape, "%s row_f8_scalar, code 0x%02X, scale %a", k->name, code, (double)scale);
            row_f8_times(k, shape, 1 + code % 40, scale);
        }
}

typedef bool row_function(const void *bits, uint32_t dim, float *out);

static void plain_row(const char *shape, row_function *reference, row_function *twin, const void *bits, uint32_t n)
{
    fill(&out_ref, n, NORMAL);
    copy(&out_twin, &out_ref);
    const bool bad_ref = reference(bits, n, out_ref.at);
    compare_rows(shape, n, bad_ref, twin(bits, n, out_twin.at));
}

/* Random bits hold infinities and NaNs; a second time every exponent of ones is taken away. */
static void plain_rows_of_every_length(void **state)
{
    (void)state;
    FOR_TWINS(k)
    for (size_t at = 0; at < ARRAY_LEN(lengths) * 60; at++) {
        const uint32_t n = CASE_LENGTH;
        const bool clean = at / ARRAY_LEN(lengths) % 2;
        const kind what = clean ? ANY_FINITE : HOSTILE;
        for (size_t i = 0; i < sizeof codes; i++) codes[i] = (uint8_t)grq_rng_next(&rng);
        uint8_t *const bits = codes + grq_rng_below(&rng, 2);
        for (size_t i = 1; clean && i < n * sizeof(float); i += 2) bits[i] &= 0xBB; /* in FP16, BF16 and binary32 */
        plain_row(shape_of(k, "row_bf16", n, what), grq_kernels_ref.row_bf16, k->row_bf16, bits, n);
        plain_row(shape_of(k, "row_f16", n, what), grq_kernels_ref.row_f16, k->row_f16, bits, n);
        plain_row(shape_of(k, "row_f32", n, what), grq_kernels_ref.row_f32, k->row_f32, bits, n);
    }
}

/* Every code of 16 bits, alone: its value, and whether it is refused. */
static void every_half(void **state)
{
    (void)state;
    uint16_t bits[17] = { 0 };
    char shape[200];
    FOR_TWINS(k)
    for (uint32_t code = 0; code < 65536; code++) {
        memset(bits, 0, sizeof bits);
        bits[code % ARRAY_LEN(bits)] = (uint16_t)code;
        snprintf(shape, sizeof shape, "%s row of 16-bit code 0x%04X", k->name, code);
        plain_row(shape, grq_kernels_ref.row_bf16, k->row_bf16, bits, ARRAY_LEN(bits));
        plain_row(shape, grq_kernels_ref.row_f16, k->row_f16, bits, ARRAY_LEN(bits));
    }
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    FOR_TWINS(k) fprintf(stderr, "compared with the reference: %s\n", k->name);
    if (grq_cpu_level_of_processor() < GRQ_CPU_AVX512)
        fprintf(stderr, "NOT RUN HERE: avx512, which this processor lacks; its source ran in portable vectors\n");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_bits_of_the_reference),
        cmocka_unit_test(elements_have_the_bits_of_the_reference),
        cmocka_unit_test(every_tie_rounds_to_bf16_alike),
        cmocka_unit_test(projections_have_the_bits_of_the_reference),
        cmocka_unit_test(every_code_times_every_scale),
        cmocka_unit_test(f8_rows_of_every_length),
        cmocka_unit_test(every_code_times_a_tables_scale),
        cmocka_unit_test(plain_rows_of_every_length),
        cmocka_unit_test(every_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
