/* kernels/shared/gate.h - the gate of one branch from three sums over its width, written once for both precisions.
 *
 * With hh = sum h^2, kk = sum key^2 and hk = sum of GRQ_GATE_TERM, over a branch of width d:
 *     s = hk rsqrt(hh / d + eps) rsqrt(kk / d + eps) d^-1/2
 *     r = copysign(sqrt(max(|s|, clamp)), s)          gate = 1 / (1 + exp(-r))
 * Source: specs/deepseek-v41-engram.md section 10. Each operation is rounded by itself, in the order written. A NaN
 * stays one, so that broken streams and keys are not taken for gates near 1/2. Where exp(-r) overflows the gate is 0.
 */
#ifndef GATERQ_GATE_H
#define GATERQ_GATE_H

#include <math.h>

#include "expf.h"

/* Element j of hk; w is query_gain * key_gain. For numbers and for vectors of them. */
#define GRQ_GATE_TERM(h, w, key) ((h) * (w) * (key))

#define GRQ_DEFINE_GATE(real, suffix, SQRT, FABS, COPYSIGN, EXP)                                                       \
    static inline real grq_gate_score_##suffix(real hh, real kk, real hk, real d, real eps)                            \
    {                                                                                                                  \
        const real rstd = (1 / SQRT(hh / d + eps)) * (1 / SQRT(kk / d + eps));                                         \
        return hk * rstd * (1 / SQRT(d));                                                                              \
    }                                                                                                                  \
    static inline real grq_gate_of_score_##suffix(real s, real clamp)                                                  \
    {                                                                                                                  \
        const real size = FABS(s) < clamp ? clamp : FABS(s);                                                           \
        return 1 / (1 + EXP(-COPYSIGN(SQRT(size), s)));                                                                \
    }

GRQ_DEFINE_GATE(float, f32, sqrtf, fabsf, copysignf, grq_expf)
GRQ_DEFINE_GATE(double, f64, sqrt, fabs, copysign, exp)

#endif
