/* kernels/cpu/kernels_lanes.h - every kernel in vectors, written once for all widths of a register.
 *
 * kernels_avx2.c and kernels_avx512.c include it, each compiled for its instruction set, after they have defined
 *     REGISTER                   floats in a register: 8 or 16
 *     TILE_TOKENS, TILE_OUTPUTS  outputs that `project` keeps in registers
 *     KEEP(x)                    x is loaded once: gcc would rather load it again for every product, and then loads are
 *                                what takes the time
 *     halves                     vector of REGISTER 16-bit words
 *     halves_of_bytes(p)         REGISTER bytes, widened with their signs
 *     reals_of_halves(h)         FP16 to binary32, exact
 * and it leaves a table, LANES_TABLE(name), to define. tests/twins/kernels_wide.h includes it for any processor.
 *
 * The bits are those of kernels_ref.c: GRQ_LANES lanes are kept in PARTS registers, products are rounded, and a padded
 * tail adds +0 to a lane, which changes none: lanes start at +0 and so never become -0. */
#include <math.h>
#include <string.h>

#include "cpu/kernels.h"
#include "shared/number.h"
#include "shared/simd.h"

enum { PARTS = GRQ_LANES / REGISTER };

#define INLINE static inline __attribute__((always_inline))

typedef float reals __attribute__((vector_size(REGISTER * sizeof(float))));
typedef reals reals_anywhere __attribute__((aligned(1), may_alias));
typedef uint32_t words __attribute__((vector_size(REGISTER * sizeof(uint32_t))));
typedef halves halves_anywhere __attribute__((aligned(1), may_alias));

INLINE reals load(const void *p)
{
    return *(const reals_anywhere *)p;
}

INLINE void store(float *p, reals x)
{
    *(reals_anywhere *)p = x;
}

INLINE halves load_halves(const void *p)
{
    return *(const halves_anywhere *)p;
}

/* The last n of a vector's places, for the end of an array: the rest reads as +0 and is not written. */
INLINE reals load_some(const float *p, size_t n)
{
    reals x = { 0 };
    memcpy(&x, p, n * sizeof *p);
    return x;
}

/* `n` is REGISTER in the body of a loop and less at its end. */
INLINE reals load_n(const float *p, size_t n)
{
    return n >= REGISTER ? load(p) : load_some(p, n);
}

INLINE void store_n(float *p, size_t n, reals x)
{
    if (n >= REGISTER) store(p, x);
    else memcpy(p, &x, n * sizeof *p);
}

/* ---- rows ---- */

/* Collects, without a branch, whether a row holds a value that is infinite or NaN; asked once, at its end. */
typedef struct {
    words bits; /* the sign bit of a word is set when one was */
} watch;

INLINE void watch_numbers(watch *w, reals x)
{
    w->bits |= ((words)x & 0x7FFFFFFFu) + 0x00800000u; /* an exponent of ones carries into the sign */
}

INLINE bool watch_saw(const watch *w)
{
    uint64_t part[sizeof *w / sizeof(uint64_t)], all = 0;
    memcpy(part, w, sizeof *w);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) all |= part[i];
    return all & UINT64_C(0x8000000080000000);
}

/* The codes of one scale, and whether one of those seen is NaN: then bit 7 of a byte is set. */
typedef uint8_t code_block __attribute__((vector_size(GRQ_F8_BLOCK)));
typedef code_block code_block_anywhere __attribute__((aligned(1), may_alias));

INLINE code_block nan_codes(code_block codes)
{
    return (codes & 0x7F) + 1;
}

INLINE bool any_nan_code(code_block seen)
{
    uint64_t part[sizeof seen / sizeof(uint64_t)], all = 0;
    memcpy(part, &seen, sizeof seen);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) all |= part[i];
    return all & UINT64_C(0x8080808080808080);
}

INLINE reals round_to_bf16(reals x)
{
    const words bits = (words)x, is_nan = (words)((bits & 0x7FFFFFFFu) > 0x7F800000u);
    const words rounded = bits + 0x7FFFu + (bits >> 16 & 1), quiet = bits | 0x00400000u;
    return (reals)(((rounded & ~is_nan) | (quiet & is_nan)) & 0xFFFF0000u);
}

/* E4M3 shifted into FP16's fields is 2^-8 times its value, subnormals included: widened with its sign, a code has
 * copies of it in bits 7 to 15, and shifted by 7 its sign is in place, with one copy to clear. The conversion to
 * binary32 is exact and takes no denormal into a product, where it could cost 150 cycles. `scale` is 2^8 times that of
 * the codes, exactly so as long as F8_LARGE_SCALE is respected, and then no product overflows. */
INLINE void f8_block(const uint8_t *codes, float scale, bool to_bf16, float *out)
{
    for (uint32_t i = 0; i < GRQ_F8_BLOCK; i += REGISTER) {
        const reals x = (reals)reals_of_halves(halves_of_bytes(codes + i) << 7 & 0xBFFF) * scale;
        store(out + i, to_bf16 ? round_to_bf16(x) : x);
    }
}

static const float F8_LARGE_SCALE = 0x1p119f; /* beyond it 448 times a scale can be infinite: the reference's work */

/* n values from n codes; the last block may be short. */
INLINE void f8_codes(const uint8_t *codes, uint32_t n, float scale, bool to_bf16, float *out, code_block *seen)
{
    if (n == GRQ_F8_BLOCK) {
        *seen |= nan_codes(*(const code_block_anywhere *)codes);
        f8_block(codes, scale * 0x1p8f, to_bf16, out);
        return;
    }
    code_block rest = { 0 };
    float values[GRQ_F8_BLOCK];
    memcpy(&rest, codes, n);
    *seen |= nan_codes(rest);
    f8_block((const uint8_t *)&rest, scale * 0x1p8f, to_bf16, values);
    memcpy(out, values, n * sizeof *out);
}

INLINE uint32_t block_length(uint32_t dim, uint32_t first)
{
    return dim - first < GRQ_F8_BLOCK ? dim - first : GRQ_F8_BLOCK;
}

static bool row_f8_blocks(const void *codes, const void *scales, const float *scale_values, uint32_t dim, float *out)
{
    const uint8_t *const c = codes, *const s = scales;
    code_block seen = { 0 };
    for (uint32_t i = 0; i < dim; i += GRQ_F8_BLOCK) {
        const float scale = scale_values[s[i / GRQ_F8_BLOCK]];
        if (!(scale < F8_LARGE_SCALE)) return grq_kernels_ref.row_f8_blocks(codes, scales, scale_values, dim, out);
        f8_codes(c + i, block_length(dim, i), scale, false, out + i, &seen);
    }
    return any_nan_code(seen);
}

static bool row_f8_scalar(const void *codes, float scale, uint32_t dim, float *out)
{
    const uint8_t *const c = codes;
    code_block seen = { 0 };
    if (!(fabsf(scale) < F8_LARGE_SCALE)) return grq_kernels_ref.row_f8_scalar(codes, scale, dim, out);
    for (uint32_t i = 0; i < dim; i += GRQ_F8_BLOCK) f8_codes(c + i, block_length(dim, i), scale, true, out + i, &seen);
    return any_nan_code(seen);
}

INLINE reals reals_of_bf16(halves bits)
{
    return (reals)(__builtin_convertvector(bits, words) << 16);
}

/* REGISTER values of 16 bits; `f16`: FP16, else BF16. */
INLINE void half_step(const void *bits, bool f16, float *out, watch *w)
{
    const halves h = load_halves(bits);
    const reals x = f16 ? (reals)reals_of_halves(h) : reals_of_bf16(h);
    watch_numbers(w, x);
    store(out, x);
}

INLINE bool half_row(const void *bits, bool f16, uint32_t dim, float *out)
{
    const uint8_t *const b = bits;
    watch w = { 0 };
    uint32_t i = 0;
    for (; i + REGISTER <= dim; i += REGISTER) half_step(b + i * sizeof(uint16_t), f16, out + i, &w);
    if (i < dim) {
        uint16_t rest[REGISTER] = { 0 };
        float values[REGISTER];
        memcpy(rest, b + i * sizeof *rest, (dim - i) * sizeof *rest);
        half_step(rest, f16, values, &w);
        memcpy(out + i, values, (dim - i) * sizeof *out);
    }
    return watch_saw(&w);
}

static bool row_bf16(const void *bits, uint32_t dim, float *out)
{
    return half_row(bits, false, dim, out);
}

static bool row_f16(const void *bits, uint32_t dim, float *out)
{
    return half_row(bits, true, dim, out);
}

static bool row_f32(const void *values, uint32_t dim, float *out)
{
    watch w = { 0 };
    memcpy(out, values, dim * sizeof *out);
    for (uint32_t i = 0; i < dim; i += REGISTER) watch_numbers(&w, load_n(out + i, dim - i));
    return watch_saw(&w);
}

/* ---- sums ---- */

/* GRQ_LANES partial sums. */
typedef struct {
    reals part[PARTS];
} lanes;

INLINE float fold(const lanes *sums)
{
    float lane[GRQ_LANES];
    memcpy(lane, sums, sizeof lane);
    for (uint32_t w = GRQ_LANES / 2; w > 0; w /= 2)
        for (uint32_t l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

/* The values that go to lanes first + p REGISTER ...; +0 past the end. */
INLINE reals part_at(const float *x, size_t n, size_t first, uint32_t p)
{
    const size_t at = first + p * REGISTER;
    return at < n ? load_n(x + at, n - at) : (reals){ 0 };
}

static void gate_sums(uint32_t width, const float *h, const float *key, const float *query_gain, const float *key_gain,
                      float sums[3])
{
    lanes hh = { 0 }, kk = { 0 }, hk = { 0 };
    for (size_t i = 0; i < width; i += GRQ_LANES)
        for (uint32_t p = 0; p < PARTS; p++) {
            const reals x = part_at(h, width, i, p), k = part_at(key, width, i, p);
            const reals w = part_at(query_gain, width, i, p) * part_at(key_gain, width, i, p);
            hh.part[p] += x * x;
            kk.part[p] += k * k;
            hk.part[p] += x * w * k;
        }
    sums[0] = fold(&hh);
    sums[1] = fold(&kk);
    sums[2] = fold(&hk);
}

static float sum(size_t n, const float *x)
{
    lanes s = { 0 };
    for (size_t i = 0; i < n; i += GRQ_LANES)
        for (uint32_t p = 0; p < PARTS; p++) s.part[p] += part_at(x, n, i, p);
    return fold(&s);
}

static float sum_squares(size_t n, const float *x)
{
    lanes s = { 0 };
    for (size_t i = 0; i < n; i += GRQ_LANES)
        for (uint32_t p = 0; p < PARTS; p++) {
            const reals v = part_at(x, n, i, p);
            s.part[p] += v * v;
        }
    return fold(&s);
}

/* ---- projections ---- */

/* A panel's lanes stay in memory while blocks of the inputs pass: a block of w and a tile's part of x then fit the
 * first cache, and w is read from the second while x streams by. Lanes are taken up where the block before left them,
 * so the order of each sum is that of one long loop. Sizes by measurement (docs/decisions.md). */
enum {
    PANEL_TOKENS = 24, /* a multiple of every TILE_TOKENS */
    PANEL_OUTPUTS = 8,
    BLOCK_INPUTS = 512,
    FEW_TOKENS = 2, /* up to here w is read straight through: blocks would only break its streams */
    ROW_OUTPUTS = 4 /* of one token at a time, as many streams of w; at least TILE_OUTPUTS */
};

typedef struct {
    size_t n_in;
    const float *x, *w; /* of the panel's first token and output */
    lanes (*sums)[PANEL_OUTPUTS];
} panel;

INLINE reals load_kept(const float *p)
{
    reals x = load(p);
    KEEP(x);
    return x;
}

/* n_tokens x n_outputs sums over inputs first .. end (multiples of GRQ_LANES). The counts are constants where this is
 * inlined, and the arrays registers. */
INLINE void tile(const panel *p, size_t token, uint32_t n_tokens, size_t output, uint32_t n_outputs, size_t first,
                 size_t end)
{
    lanes s[TILE_TOKENS][ROW_OUTPUTS];
    const float *const x = p->x + token * p->n_in, *const w = p->w + output * p->n_in;
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n_tokens; t++)
#pragma GCC unroll 4
        for (uint32_t o = 0; o < n_outputs; o++) s[t][o] = p->sums[token + t][output + o];
    for (size_t i = first; i < end; i += GRQ_LANES)
#pragma GCC unroll 2
        for (uint32_t part = 0; part < PARTS; part++) {
            reals weights[ROW_OUTPUTS];
#pragma GCC unroll 4
            for (uint32_t o = 0; o < n_outputs; o++) weights[o] = load_kept(w + o * p->n_in + i + part * REGISTER);
#pragma GCC unroll 4
            for (uint32_t t = 0; t < n_tokens; t++) {
                const reals input = load_kept(x + t * p->n_in + i + part * REGISTER);
#pragma GCC unroll 4
                for (uint32_t o = 0; o < n_outputs; o++) s[t][o].part[part] += input * weights[o];
            }
        }
#pragma GCC unroll 4
    for (uint32_t t = 0; t < n_tokens; t++)
#pragma GCC unroll 4
        for (uint32_t o = 0; o < n_outputs; o++) p->sums[token + t][output + o] = s[t][o];
}

static void tile_full(const panel *p, size_t token, size_t output, size_t first, size_t end)
{
    tile(p, token, TILE_TOKENS, output, TILE_OUTPUTS, first, end);
}

static void tile_row(const panel *p, size_t token, size_t output, size_t first, size_t end)
{
    tile(p, token, 1, output, ROW_OUTPUTS, first, end);
}

static void tile_one(const panel *p, size_t token, size_t output, size_t first, size_t end)
{
    tile(p, token, 1, output, 1, first, end);
}

static void sum_block(const panel *p, size_t n_tokens, size_t n_outputs, size_t first, size_t end)
{
    size_t t = 0;
    for (; t + TILE_TOKENS <= n_tokens; t += TILE_TOKENS) {
        size_t o = 0;
        for (; o + TILE_OUTPUTS <= n_outputs; o += TILE_OUTPUTS) tile_full(p, t, o, first, end);
        for (; o < n_outputs; o++)
            for (size_t k = 0; k < TILE_TOKENS; k++) tile_one(p, t + k, o, first, end);
    }
    for (; t < n_tokens; t++) {
        size_t o = 0;
        for (; o + ROW_OUTPUTS <= n_outputs; o += ROW_OUTPUTS) tile_row(p, t, o, first, end);
        for (; o < n_outputs; o++) tile_one(p, t, o, first, end);
    }
}

/* Adds the inputs past the last whole GRQ_LANES, and folds. */
INLINE float finish(const panel *p, size_t token, size_t output, size_t whole)
{
    lanes s = p->sums[token][output];
    const float *const x = p->x + token * p->n_in, *const w = p->w + output * p->n_in;
    for (uint32_t part = 0; part < PARTS; part++)
        s.part[part] += part_at(x, p->n_in, whole, part) * part_at(w, p->n_in, whole, part);
    return fold(&s);
}

static void project(size_t n_tokens, size_t n_out, size_t n_in, const float *x, const float *w, const float *bias,
                    float *out)
{
    const size_t whole = n_in / GRQ_LANES * GRQ_LANES, block = n_tokens <= FEW_TOKENS ? whole : BLOCK_INPUTS;
    lanes sums[PANEL_TOKENS][PANEL_OUTPUTS];
    for (size_t o = 0; o < n_out; o += PANEL_OUTPUTS)
        for (size_t t = 0; t < n_tokens; t += PANEL_TOKENS) {
            const size_t n_t = n_tokens - t < PANEL_TOKENS ? n_tokens - t : PANEL_TOKENS;
            const size_t n_o = n_out - o < PANEL_OUTPUTS ? n_out - o : PANEL_OUTPUTS;
            const panel p = { n_in, x + t * n_in, w + o * n_in, sums };
            memset(sums, 0, n_t * sizeof *sums);
            for (size_t i = 0; i < whole; i += block) sum_block(&p, n_t, n_o, i, whole - i < block ? whole : i + block);
            for (size_t k = 0; k < n_t; k++)
                for (size_t j = 0; j < n_o; j++)
                    out[(t + k) * n_out + o + j] = finish(&p, k, j, whole) + (bias ? bias[o + j] : 0.0f);
        }
}

/* ---- element by element ---- */

static void normalise(size_t n, const float *x, float factor, const float *gain, float *out)
{
    for (size_t i = 0; i < n; i += REGISTER)
        store_n(out + i, n - i, load_n(x + i, n - i) * factor * load_n(gain + i, n - i));
}

static void multiply(size_t n, const float *a, const float *b, float *out)
{
    for (size_t i = 0; i < n; i += REGISTER) store_n(out + i, n - i, load_n(a + i, n - i) * load_n(b + i, n - i));
}

static void add_scaled(size_t n, float gate, const float *value, float *h)
{
    for (size_t i = 0; i < n; i += REGISTER)
        store_n(h + i, n - i, load_n(h + i, n - i) + gate * load_n(value + i, n - i));
}

static void convolve(size_t n, uint32_t n_taps, const float *const *taps, const float *weight, float *y)
{
    for (size_t i = 0; i < n; i += REGISTER) {
        reals s = { 0 };
        for (uint32_t k = 0; k < n_taps; k++)
            if (taps[k]) s += load_n(weight + k * n + i, n - i) * load_n(taps[k] + i, n - i);
        store_n(y + i, n - i, s);
    }
}

static void round_bf16(size_t n, float *x)
{
    for (size_t i = 0; i < n; i += REGISTER) store_n(x + i, n - i, round_to_bf16(load_n(x + i, n - i)));
}

#define LANES_TABLE(level)                                                                                             \
    {                                                                                                                  \
        .name = level, .row_f8_blocks = row_f8_blocks, .row_f8_scalar = row_f8_scalar, .row_bf16 = row_bf16,           \
        .row_f16 = row_f16, .row_f32 = row_f32, .project = project, .gate_sums = gate_sums, .sum = sum,                \
        .sum_squares = sum_squares, .normalise = normalise, .multiply = multiply, .add_scaled = add_scaled,            \
        .convolve = convolve, .round_bf16 = round_bf16                                                                 \
    }
