/* The small number formats against their definitions: every code, every value halfway between two codes, and both
 * neighbours of each halfway value. */
#include "support.h"

#include "memory/mxfp8.h"
#include "shared/number.h"

typedef struct {
    const char *name;
    int exponent_bits, fraction_bits, bias;
    bool has_infinity;
    uint32_t overflow; /* what a magnitude beyond the largest finite code becomes */
    float (*decode)(uint32_t code);
    uint32_t (*encode)(float x);
} format;

static float decode_bf16(uint32_t code)
{
    return grq_f32_from_bf16((uint16_t)code);
}
static float decode_f16(uint32_t code)
{
    return grq_f32_from_f16((uint16_t)code);
}
static float decode_e4m3(uint32_t code)
{
    return grq_f32_from_e4m3((uint8_t)code);
}
static uint32_t encode_bf16(float x)
{
    return grq_bf16_from_f32(x);
}
static uint32_t encode_f16(float x)
{
    return grq_f16_from_f32(x);
}
static uint32_t encode_e4m3(float x)
{
    return grq_e4m3_from_f32(x);
}

static const format FORMATS[] = {
    { "bf16", 8, 7, 127, true, 0x7F80, decode_bf16, encode_bf16 },
    { "fp16", 5, 10, 15, true, 0x7C00, decode_f16, encode_f16 },
    { "e4m3", 4, 3, 7, false, 0x7E, decode_e4m3, encode_e4m3 },
};

static uint32_t sign_bit(const format *f)
{
    return 1u << (f->exponent_bits + f->fraction_bits);
}

/* Codes 0 .. last_finite are the magnitudes in ascending order. */
static uint32_t last_finite(const format *f)
{
    return f->has_infinity ? f->overflow - 1 : f->overflow;
}

/* By the definition of the format, in binary64. */
static double value_of(const format *f, uint32_t magnitude)
{
    const int exponent = (int)(magnitude >> f->fraction_bits);
    const double fraction = magnitude & ((1u << f->fraction_bits) - 1), one = 1u << f->fraction_bits;
    return exponent ? ldexp(one + fraction, exponent - f->bias - f->fraction_bits)
                    : ldexp(fraction, 1 - f->bias - f->fraction_bits);
}

static void expect_code(const format *f, float x, uint32_t want)
{
    const uint32_t got = f->encode(x);
    if (got != want) fail_msg("%s of %a is 0x%X instead of 0x%X", f->name, (double)x, got, want);
}

static void every_code_has_its_value_and_comes_back(void **state)
{
    (void)state;
    for (const format *f = FORMATS; f < FORMATS + ARRAY_LEN(FORMATS); f++)
        for (uint32_t m = 0; m <= last_finite(f); m++) {
            const double want = value_of(f, m), plus = f->decode(m), minus = f->decode(m | sign_bit(f));
            if (plus != want || minus != -want || signbit(plus) || !signbit(minus))
                fail_msg("%s 0x%X is %a and %a with the sign, instead of %a", f->name, m, plus, minus, want);
            expect_code(f, (float)want, m);
            expect_code(f, -(float)want, m | sign_bit(f));
        }
}

static void halfway_values_go_to_the_even_code(void **state)
{
    (void)state;
    for (const format *f = FORMATS; f < FORMATS + ARRAY_LEN(FORMATS); f++)
        for (uint32_t m = 0; m < last_finite(f); m++) {
            const float half = (float)((value_of(f, m) + value_of(f, m + 1)) / 2); /* exact in binary32 */
            expect_code(f, half, m & 1 ? m + 1 : m);
            expect_code(f, nextafterf(half, 0), m);
            expect_code(f, nextafterf(half, HUGE_VALF), m + 1);
            expect_code(f, -half, (m & 1 ? m + 1 : m) | sign_bit(f));
        }
}

static void beyond_the_largest_code(void **state)
{
    (void)state;
    for (const format *f = FORMATS; f < FORMATS + ARRAY_LEN(FORMATS); f++) {
        /* The halfway value to the code that would follow: the largest finite code is odd where infinity exists. */
        const double largest = value_of(f, last_finite(f));
        const double step = largest - value_of(f, last_finite(f) - 1);
        const float half = (float)(largest + step / 2); /* BF16's is exact in binary32 too */
        expect_code(f, nextafterf(half, 0), last_finite(f));
        expect_code(f, half, f->overflow);
        expect_code(f, HUGE_VALF, f->overflow);
        expect_code(f, -HUGE_VALF, f->overflow | sign_bit(f));
    }
    assert_true(isinf(grq_f32_from_f16(0x7C00)) && isinf(grq_f32_from_bf16(0xFF80)));
}

static void nan_stays_nan(void **state)
{
    (void)state;
    const float nans[] = { NAN, -NAN, grq_float_from_bits(0x7F800001), grq_float_from_bits(0xFFFFFFFF) };
    for (size_t i = 0; i < ARRAY_LEN(nans); i++)
        for (const format *f = FORMATS; f < FORMATS + ARRAY_LEN(FORMATS); f++)
            if (!isnan(f->decode(f->encode(nans[i])))) fail_msg("%s: NaN number %zu became a number", f->name, i);
    assert_true(isnan(grq_f32_from_e4m3(0x7F)) && isnan(grq_f32_from_e4m3(0xFF)) && isnan(grq_f32_from_e8m0(255)));
    assert_true(isnan(grq_f32_from_f16(0x7C01)) && isnan(grq_f32_from_f16(0xFFFF)));
}

static void e8m0_is_a_power_of_two(void **state)
{
    (void)state;
    for (int code = 0; code < 255; code++)
        if (grq_f32_from_e8m0((uint8_t)code) != ldexpf(1.0f, code - 127))
            fail_msg("E8M0 %d is %a", code, (double)grq_f32_from_e8m0((uint8_t)code));
}

/* A released row is E4M3 codes with one scale per block: quantising its values again must not change them. From scale
 * byte 105 on, that is: below, the quantiser's floor loses bits. */
static void quantising_a_row_again_keeps_its_values(void **state)
{
    (void)state;
    uint8_t codes[64], scales[2], again[64], again_scales[2];
    float x[64], y[64];
    for (int largest = 1; largest < 0x7F; largest++)
        for (int scale = 106; scale < 250; scale += 9) {
            for (int i = 0; i < 64; i++) codes[i] = (uint8_t)(largest * (i % 32) / 31 | (i % 3 ? 0x80 : 0));
            scales[0] = (uint8_t)scale, scales[1] = (uint8_t)(scale - 1);
            grq_mxfp8_dequantise(codes, scales, 64, x);
            grq_mxfp8_quantise(x, 64, again, again_scales);
            grq_mxfp8_dequantise(again, again_scales, 64, y);
            for (int i = 0; i < 64; i++)
                if (x[i] != y[i])
                    fail_msg("largest code 0x%02X, scale %d, value %d: %a became %a", largest, scale, i, (double)x[i],
                             (double)y[i]);
        }
}

static void quantiser_edges(void **state)
{
    (void)state;
    const float zeros[32] = { 0 };
    uint8_t codes[32], scale;
    grq_mxfp8_quantise(zeros, 32, codes, &scale);
    assert_int_equal(scale, 105); /* the floor: ceil(log2(1e-4 / 448)) = -22 */
    for (int i = 0; i < 32; i++) assert_int_equal(codes[i], 0);
    const float one[1] = { 448.0f }, above[1] = { nextafterf(448.0f, 500.0f) };
    grq_mxfp8_quantise(one, 1, codes, &scale);
    assert_int_equal(scale, 127);
    assert_int_equal(codes[0], 0x7E);
    grq_mxfp8_quantise(above, 1, codes, &scale);
    assert_true(scale == 127 || scale == 128); /* the product with 1/448 may round to 1 */
    const float largest[1] = { -3.4028235e38f };
    grq_mxfp8_quantise(largest, 1, codes, &scale);
    assert_int_equal(scale, 247);
    assert_int_equal(codes[0], 0x80 | 0x78); /* 2^128 less one part in 2^24, over 2^120: 256 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_value_and_comes_back),
        cmocka_unit_test(halfway_values_go_to_the_even_code),
        cmocka_unit_test(beyond_the_largest_code),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(e8m0_is_a_power_of_two),
        cmocka_unit_test(quantising_a_row_again_keeps_its_values),
        cmocka_unit_test(quantiser_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
