#include "gaterq/progress.h"

#include <inttypes.h>

grq_status grq_progress_step(const grq_progress *progress, const char *stage, uint64_t done, uint64_t total,
                             const char *unit, const char *detail, grq_error *err)
{
    if (!progress) return GRQ_OK;
    if (progress->report) progress->report(progress->context, stage, done, total, unit, detail);
    if (!progress->stop_requested || !progress->stop_requested(progress->context)) return GRQ_OK;
    return grq_fail(err, GRQ_E_INTERRUPTED, "%s: stopped on request after %" PRIu64 " of %" PRIu64 " %s", stage, done,
                    total, unit);
}
