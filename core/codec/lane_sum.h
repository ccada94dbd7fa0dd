/* S(v) of the specification: the sum of n terms in binary64 by 32 lanes, lane j holding terms j, j + 32, ...; folded by
 * halves. The terms are exact, so that the order is all that a sum's bits depend on. */
#ifndef GATERQ_LANE_SUM_H
#define GATERQ_LANE_SUM_H

#include <stdint.h>

enum { GRQ_SUM_LANES = 32 };

static inline __attribute__((always_inline)) double grq_fold_lanes(double lane[GRQ_SUM_LANES])
{
    for (uint32_t h = GRQ_SUM_LANES / 2; h > 0; h /= 2)
        for (uint32_t l = 0; l < h; l++) lane[l] += lane[l + h];
    return lane[0];
}

#endif
