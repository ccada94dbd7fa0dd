/* McNemar's tests, the interval that belongs to mid-p, Wilson's interval, and what a comparison could have shown.
 * Source: specs/evaluation-protocols.md 7.1. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_gamma.h>
#include <gsl/gsl_sf_log.h>
#include <inttypes.h>
#include <math.h>

#include "stats/stats_internal.h"

/* ---- binomial(m, 1/2): accurate to about 1e-13 whatever m, where GSL's own tail is NaN from 2 million on ---- */

/* k ln(k / mu) + mu - k without cancellation; mu > 0. */
static double deviance(double k, double mu)
{
    return k > 0 ? -k * gsl_sf_log_1plusx_mx((mu - k) / k) : mu;
}

/* ln(n!) minus Stirling's approximation. */
static double stirling_error(double n)
{
    return log(gsl_sf_gammastar(n));
}

/* ln P(X = k), X ~ Binomial(m, 1/2), by Loader's saddle point (2000): no difference of large logarithms. */
static double log_half_binomial(double k, double m)
{
    if (k == 0 || k == m) return -m * M_LN2;
    const double correction = stirling_error(m) - stirling_error(k) - stirling_error(m - k);
    const double exponent = correction - deviance(k, m / 2) - deviance(m - k, m / 2);
    return exponent + 0.5 * log(m / (2 * M_PI * k * (m - k)));
}

static double half_binomial(double k, double m)
{
    return exp(log_half_binomial(k, m)); /* one exp: tiny values stay denormal, not 0 */
}

/* P(X <= k) / P(X = k) for k < m / 2: terms fall at least as fast as a normal density, so about sqrt(m) of them count.
 */
static double tail_ratio(double k, double m)
{
    double term = 1, sum = 1;
    for (double i = 0; i < k && term > 1e-18 * sum; i++) {
        term *= (k - i) / (m - k + 1 + i);
        sum += term;
    }
    return sum;
}

double grq_mcnemar_exact(uint64_t only_a, uint64_t only_b)
{
    if (only_a == only_b) return 1;
    const double k = (double)(only_a < only_b ? only_a : only_b), m = (double)only_a + (double)only_b;
    const double p = 2 * half_binomial(k, m) * tail_ratio(k, m);
    return p < 1 ? p : 1;
}

double grq_mcnemar_mid_p(uint64_t only_a, uint64_t only_b)
{
    const double k = (double)(only_a < only_b ? only_a : only_b), m = (double)only_a + (double)only_b;
    if (m == 0) return 1;
    if (only_a == only_b) return 1 - 0.5 * half_binomial(k, m);
    return 2 * half_binomial(k, m) * (tail_ratio(k, m) - 0.5);
}

double grq_mcnemar_log_exact(uint64_t only_a, uint64_t only_b)
{
    if (only_a == only_b) return 0;
    const double k = (double)(only_a < only_b ? only_a : only_b), m = (double)only_a + (double)only_b;
    const double log_p = M_LN2 + log_half_binomial(k, m) + log(tail_ratio(k, m));
    return log_p < 0 ? log_p : 0;
}

double grq_mcnemar_log_mid_p(uint64_t only_a, uint64_t only_b)
{
    const double k = (double)(only_a < only_b ? only_a : only_b), m = (double)only_a + (double)only_b;
    if (m == 0) return 0;
    if (only_a == only_b) return log1p(-0.5 * half_binomial(k, m));
    return M_LN2 + log_half_binomial(k, m) + log(tail_ratio(k, m) - 0.5);
}

/* P(X >= b) when `whole`, else P(X > b) + P(X = b) / 2. */
static double upper_tail(uint64_t only_a, uint64_t only_b, bool whole)
{
    const double b = (double)only_a, m = b + (double)only_b;
    if (m == 0) return whole ? 1 : 0.5;
    const double half = (whole ? 0 : half_binomial(b, m) / 2);
    if (only_a > only_b) return half_binomial(b, m) * tail_ratio(m - b, m) - half; /* P(X >= b) = P(X <= m - b) */
    if (only_a == only_b) return 0.5 + half_binomial(b, m) / 2 - half;
    /* 1 - P(X <= b) + P(X = b) */
    return 1 - half_binomial(b, m) * tail_ratio(b, m) + half_binomial(b, m) - half;
}

double grq_mcnemar_exact_a_better(uint64_t only_a, uint64_t only_b)
{
    return upper_tail(only_a, only_b, true);
}

double grq_mcnemar_mid_p_a_better(uint64_t only_a, uint64_t only_b)
{
    return upper_tail(only_a, only_b, false);
}

/* ---- the interval of mid-p ---- */

/* P(X > b) + P(X = b) / 2, X ~ Binomial(m, share): rises with `share`. GSL's beta tail holds where its binomial tail
 * does not (compared with the normal law up to m = 10^8). */
static double upper_mid(double b, double m, double share)
{
    const double at_least = b > 0 ? gsl_cdf_beta_P(share, b, m - b + 1) : 1;
    const double more = b < m ? gsl_cdf_beta_P(share, b + 1, m - b) : 0;
    return (at_least + more) / 2;
}

/* The share at which upper_mid is `target`. */
static double invert_upper_mid(double b, double m, double target)
{
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (upper_mid(b, m, middle) < target) low = middle;
        else high = middle;
    }
    return (low + high) / 2;
}

void grq_mcnemar_mid_interval(uint64_t only_a, uint64_t only_b, uint64_t n, double *low, double *high)
{
    const double b = (double)only_a, m = b + (double)only_b, alpha = 0.05;
    *low = *high = m > 0 ? 0 : NAN;
    if (!(m > 0) || n == 0) return;
    const double from = only_a == 0 ? 0 : invert_upper_mid(b, m, alpha / 2);
    const double to = only_b == 0 ? 1 : invert_upper_mid(b, m, 1 - alpha / 2);
    *low = (2 * from - 1) * m / (double)n;
    *high = (2 * to - 1) * m / (double)n;
}

/* ---- asymptotic forms ---- */

static const double Z = 1.959963984540054; /* 97.5 % point of the normal distribution */

double grq_mcnemar_chi_square(uint64_t only_a, uint64_t only_b, bool corrected, double *statistic)
{
    const double m = (double)only_a + (double)only_b;
    double away = fabs((double)only_a - (double)only_b) - (corrected ? 1 : 0);
    if (away < 0) away = 0;
    if (statistic) *statistic = m > 0 ? away * away / m : NAN;
    if (m == 0) return 1;
    return gsl_cdf_chisq_Q(away * away / m, 1);
}

/* p12 - p21 of n answers, with its normal interval. */
static grq_interval difference_interval(double p12, double p21, double n)
{
    const double difference = p12 - p21, half = Z * sqrt((p12 + p21 - difference * difference) / n);
    return (grq_interval){ difference, difference - half, difference + half };
}

grq_interval grq_wald_difference(uint64_t only_a, uint64_t only_b, uint64_t n)
{
    return difference_interval((double)only_a / (double)n, (double)only_b / (double)n, (double)n);
}

grq_interval grq_bonett_price(uint64_t only_a, uint64_t only_b, uint64_t n)
{
    const double more = (double)n + 2;
    return difference_interval(((double)only_a + 1) / more, ((double)only_b + 1) / more, more);
}

/* ---- power ---- */

/* Connor (1987): n items whose results differ with probability psi show a difference d with 80 % power at two-sided 5 %
 * when z_a sqrt(psi) + z_b sqrt(psi - d^2) = d sqrt(n). */
double grq_mcnemar_detectable(uint64_t only_a, uint64_t only_b, uint64_t n)
{
    static const double Z_BETA = 0.8416212335729143;
    const double psi = n ? ((double)only_a + (double)only_b) / (double)n : 0;
    double low = 0, high = psi;
    if (!(psi > 0) || Z * sqrt(psi) + Z_BETA * sqrt(psi - psi * psi) > psi * sqrt((double)n)) return NAN;
    for (int i = 0; i < 60; i++) {
        const double d = (low + high) / 2;
        if (Z * sqrt(psi) + Z_BETA * sqrt(psi - d * d) > d * sqrt((double)n)) low = d;
        else high = d;
    }
    return high;
}

grq_interval grq_wilson(uint64_t k, uint64_t n)
{
    if (n == 0 || k > n) return (grq_interval){ NAN, NAN, NAN };
    const double z = Z, total = (double)n, p = (double)k / total, z2n = z * z / total;
    const double centre = (p + z2n / 2) / (1 + z2n);
    const double half = z * sqrt(p * (1 - p) / total + z2n / (4 * total)) / (1 + z2n);
    return (grq_interval){ p, k == 0 ? 0 : centre - half, k == n ? 1 : centre + half };
}
