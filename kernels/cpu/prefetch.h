/* kernels/cpu/prefetch.h - how many rows are asked for at once, ahead of those that are read. Shared by the fetch and
 * the bench of its bound. */
#ifndef GATERQ_CPU_PREFETCH_H
#define GATERQ_CPU_PREFETCH_H

enum {
    GRQ_CACHE_LINE = 64,
    GRQ_PREFETCH_ROWS = 32 /* by measurement: docs/decisions.md */
};

#endif
