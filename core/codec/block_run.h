/* codec/block_run.h - work over blocks on several threads: progress, interruption, and which error is told.
 *
 *     grq_block_run run = grq_block_run_of(n_blocks, n_rows, "encode", progress);
 *     #pragma omp parallel for schedule(dynamic, 1)
 *     for (b = 0; b < n_blocks; b++) {
 *         if (grq_block_run_over(&run, b)) continue;
 *         ... own error ...
 *         grq_block_run_ended(&run, b, n_rows_of_block, status, &own);
 *     }
 *     return grq_block_run_status(&run, err);
 *
 * Blocks are begun in order, so those before a block that failed are all ended: the error of the lowest wins, whichever
 * thread meets one first. */
#ifndef GATERQ_CODEC_BLOCK_RUN_H
#define GATERQ_CODEC_BLOCK_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/progress.h"

typedef struct {
    const char *stage;
    const grq_progress *progress;
    uint64_t n_rows, n_done, failed_block;
    grq_error failure;
} grq_block_run;

static inline grq_block_run grq_block_run_of(uint64_t n_blocks, uint64_t n_rows, const char *stage,
                                             const grq_progress *progress)
{
    return (grq_block_run){ stage, progress, n_rows, 0, n_blocks, { .status = GRQ_OK } };
}

bool grq_block_run_over(grq_block_run *run, uint64_t block); /* a lower block failed: nothing more to do */
void grq_block_run_ended(grq_block_run *run, uint64_t block, uint64_t n_rows, grq_status status, grq_error *own);
grq_status grq_block_run_status(const grq_block_run *run, grq_error *err);

#endif
