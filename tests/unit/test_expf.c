/* grq_expf against the C library's exp in binary64. */
#include "support.h"

#include "shared/expf.h"
#include "shared/number.h"
#include "shared/simd.h"

/* Distance from the exact value in units of the last place of a binary32 number of that size. */
static double error_ulp(float x)
{
    const double exact = exp((double)x);
    int exponent;
    frexp(exact, &exponent);
    const double ulp = ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
    return fabs((double)grq_expf(x) - exact) / ulp;
}

static void within_one_and_a_half_ulp(void **state)
{
    (void)state;
    double worst = 0;
    float worst_at = 0;
    /* Every 499th binary32 number from the smallest to the ends of the range, both signs: 4.4 million. */
    for (uint32_t bits = 1; bits < 0x42D00000u; bits += 499) {
        const float magnitude = grq_float_from_bits(bits);
        for (int sign = -1; sign <= 1; sign += 2) {
            const float x = (float)sign * magnitude;
            if (x > 88.72f || x < -103.97f) continue;
            const double error = error_ulp(x);
            if (error > worst) worst = error, worst_at = x;
        }
    }
    fprintf(stderr, "largest error %.4f ulp at %a\n", worst, (double)worst_at);
    if (worst > 1.5) fail_msg("%.4f ulp at %a: %a", worst, (double)worst_at, (double)grq_expf(worst_at));
}

static void special_values(void **state)
{
    (void)state;
    assert_true(grq_expf(0.0f) == 1.0f && grq_expf(-0.0f) == 1.0f);
    assert_true(isinf(grq_expf(HUGE_VALF)) && isinf(grq_expf(88.73f)) && isinf(grq_expf(3.4e38f)));
    assert_true(isfinite(grq_expf(88.72f)));
    assert_true(grq_expf(-HUGE_VALF) == 0.0f && grq_expf(-104.0f) == 0.0f && grq_expf(-3.4e38f) == 0.0f);
    assert_true(!signbit(grq_expf(-HUGE_VALF)));
    assert_true(grq_expf(-103.9f) > 0.0f);
    assert_true(isnan(grq_expf(NAN)) && isnan(grq_expf(-NAN)));
}

GRQ_SIMD static void exp_many(const float *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = grq_expf(x[i]);
}

__attribute__((optimize("no-tree-vectorize"), noinline)) static float exp_one(float x)
{
    return grq_expf(x);
}

static void vector_code_has_the_scalar_bits(void **state)
{
    (void)state;
    enum { N = 100003 };
    static float x[N], y[N];
    for (size_t i = 0; i < N; i++) x[i] = grq_float_from_bits((uint32_t)(i * 42949u + 7u)); /* NaN and infinities too */
    exp_many(x, y, N);
    for (size_t i = 0; i < N; i++) {
        const float want = exp_one(x[i]);
        if (memcmp(&want, &y[i], sizeof want) && !(isnan(want) && isnan(y[i])))
            fail_msg("exp(%a): %a in the vector loop, %a alone", (double)x[i], (double)y[i], (double)want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_one_and_a_half_ulp),
        cmocka_unit_test(special_values),
        cmocka_unit_test(vector_code_has_the_scalar_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
