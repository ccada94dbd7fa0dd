/* lm/lanes.h - sums and weighted sums with the lanes written out.
 *
 * A sum is vectorised only where the source keeps partial sums apart, so the order of every addition is fixed here and
 * the bits are the same on any instruction set. LM_LANES numbers go side by side (gcc splits them where registers are
 * narrower); partial sums are folded by halves. Everything is inlined into a GRQ_SIMD function of the caller. */
#ifndef GATERQ_LM_LANES_H
#define GATERQ_LM_LANES_H

#include <stddef.h>

#include "lm/real.h"
#include "shared/simd.h"

#define LM_INLINE static inline __attribute__((always_inline))

enum { LM_LANES = 8 };

/* Unaligned by declaration: activations of odd widths are allowed, and loads cost the same when they happen to align.
 */
typedef grq_real lm_lanes
    __attribute__((vector_size(LM_LANES * sizeof(grq_real)), aligned(sizeof(grq_real)), may_alias));

typedef __typeof__((lm_lanes){ 0 } > (lm_lanes){ 0 }) lm_mask; /* integers of the same width: all ones where true */

#define LM_LOAD(p) (*(const lm_lanes *)(p))
#define LM_STORE(p) (*(lm_lanes *)(p))

LM_INLINE grq_real lm_fold(const lm_lanes *v)
{
    const lm_lanes s = *v;
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

LM_INLINE grq_real lm_dot(const grq_real *a, const grq_real *b, size_t n)
{
    lm_lanes s0 = { 0 }, s1 = { 0 };
    size_t i = 0;
    for (; i + 2 * LM_LANES <= n; i += 2 * LM_LANES) {
        s0 += LM_LOAD(a + i) * LM_LOAD(b + i);
        s1 += LM_LOAD(a + i + LM_LANES) * LM_LOAD(b + i + LM_LANES);
    }
    grq_real tail = 0;
    for (; i < n; i++) tail += a[i] * b[i];
    s0 += s1;
    return lm_fold(&s0) + tail;
}

LM_INLINE grq_real lm_sum(const grq_real *a, size_t n)
{
    lm_lanes s0 = { 0 }, s1 = { 0 };
    size_t i = 0;
    for (; i + 2 * LM_LANES <= n; i += 2 * LM_LANES) {
        s0 += LM_LOAD(a + i);
        s1 += LM_LOAD(a + i + LM_LANES);
    }
    grq_real tail = 0;
    for (; i < n; i++) tail += a[i];
    s0 += s1;
    return lm_fold(&s0) + tail;
}

LM_INLINE grq_real lm_max(const grq_real *a, size_t n) /* n > 0 */
{
    grq_real best = a[0];
    size_t i = 0;
    if (n >= LM_LANES) {
        lm_lanes m = LM_LOAD(a);
        for (i = LM_LANES; i + LM_LANES <= n; i += LM_LANES) {
            const lm_lanes x = LM_LOAD(a + i);
            const lm_mask larger = x > m;
            m = (lm_lanes)(((lm_mask)x & larger) | ((lm_mask)m & ~larger));
        }
        for (int l = 0; l < LM_LANES; l++) best = m[l] > best ? m[l] : best;
    }
    for (; i < n; i++) best = a[i] > best ? a[i] : best;
    return best;
}

/* y += c x */
LM_INLINE void lm_add_scaled(grq_real *y, grq_real c, const grq_real *x, size_t n)
{
    size_t i = 0;
    for (; i + LM_LANES <= n; i += LM_LANES) LM_STORE(y + i) = LM_LOAD(y + i) + c * LM_LOAD(x + i);
    for (; i < n; i++) y[i] = y[i] + c * x[i];
}

#endif
