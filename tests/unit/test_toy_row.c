/* The paper's worked example, (0.9, -0.3): what every stage stores, and what each depth reads back. */
#include "support.h"

#include "gaterq/codec.h"

static const float TOY[2] = { 0.9f, -0.3f };

static grq_codes *encode_toy(const char *encoder_name)
{
    grq_error err = { 0 };
    const grq_encoder *encoder = NULL;
    grq_codes *codes = NULL;
    assert_ok(grq_encoder_find(encoder_name, &encoder, &err), &err);
    assert_ok(grq_codes_encode(encoder, TOY, 1, 2, 3, NULL, 1, NULL, &codes, &err), &err);
    return codes;
}

/* To the two decimals that the paper prints. */
static void the_paper_prints_these_values(void **state)
{
    (void)state;
    static const char *const printed[] = { "(0.67, -0.67)", "(0.98, -0.36)" };
    grq_codes *const codes = encode_toy("integer-rms");
    for (uint32_t depth = 1; depth <= 2; depth++) {
        float y[2];
        char text[64];
        grq_codes_decode(codes, 0, depth, y);
        snprintf(text, sizeof text, "(%.2f, %.2f)", (double)y[0], (double)y[1]);
        assert_string_equal(text, printed[depth - 1]);
    }
    grq_codes_close(codes);
}

static void exact_values_at_every_depth(void **state)
{
    (void)state;
    /* Stage scales of the root mean square rule: 0x395E, 0x34EF, 0x2C92. */
    static const double s1 = 0.67089843750, s2 = 0.308349609375, s3 = 0.0714111328125;
    const float want[3][2] = {
        { (float)s1, (float)-s1 },
        { (float)(s1 + s2), (float)(-s1 + s2) },
        { (float)(s1 + s2 - s3), (float)(-s1 + s2 + s3) },
    };
    grq_codes *const codes = encode_toy("integer-rms");
    for (uint32_t depth = 1; depth <= 3; depth++) {
        float y[2];
        grq_codes_decode(codes, 0, depth, y);
        for (int i = 0; i < 2; i++)
            if (y[i] != want[depth - 1][i])
                fail_msg("depth %u, value %d: %.9g instead of %.9g", depth, i, (double)y[i],
                         (double)want[depth - 1][i]);
    }
    grq_codes_close(codes);
}

static void the_default_rule_uses_the_mean_magnitude(void **state)
{
    (void)state;
    grq_codes *const codes = encode_toy("integer");
    float y[2];
    grq_codes_decode(codes, 0, 1, y);
    assert_true(y[0] == 0.60009765625f && y[1] == -0.60009765625f); /* (0.9 + 0.3) / 2 in FP16 */
    grq_codes_decode(codes, 0, 2, y);
    assert_true(y[0] == 0.900146484375f && y[1] == -0.300048828125f);
    grq_codes_close(codes);
}

static void bits_per_value(void **state)
{
    (void)state;
    assert_true(grq_code_bits_per_value(256) == 1.0625 && grq_code_bits_per_value(160) == 1.1);
    assert_int_equal(grq_code_bytes(256), 32);
    assert_int_equal(grq_code_bytes(2), 1);
    assert_int_equal(grq_code_bytes(9), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_paper_prints_these_values),
        cmocka_unit_test(exact_values_at_every_depth),
        cmocka_unit_test(the_default_rule_uses_the_mean_magnitude),
        cmocka_unit_test(bits_per_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
