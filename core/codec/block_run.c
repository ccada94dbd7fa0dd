#include "block_run.h"

bool grq_block_run_over(grq_block_run *run, uint64_t block)
{
    uint64_t failed;
#pragma omp atomic read
    failed = run->failed_block;
    return block > failed;
}

void grq_block_run_ended(grq_block_run *run, uint64_t block, uint64_t n_rows, grq_status status, grq_error *own)
{
#pragma omp critical(grq_block_run)
    {
        run->n_done += n_rows;
        if (status == GRQ_OK && run->failure.status == GRQ_OK)
            status = grq_progress_step(run->progress, run->stage, run->n_done, run->n_rows, "rows", NULL, own);
        if (status != GRQ_OK && block < run->failed_block) {
            run->failure = *own;
#pragma omp atomic write
            run->failed_block = block;
        }
    }
}

grq_status grq_block_run_status(const grq_block_run *run, grq_error *err)
{
    return run->failure.status == GRQ_OK ? GRQ_OK : grq_fail(err, run->failure.status, "%s", run->failure.message);
}
