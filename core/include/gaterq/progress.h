/* gaterq/progress.h - how long work reports progress and learns that it should stop.
 *
 * The library calls; the tool draws. A NULL grq_progress means silence and no interruption. */
#ifndef GATERQ_PROGRESS_H
#define GATERQ_PROGRESS_H

#include <stdint.h>

#include "gaterq/status.h"

typedef struct grq_progress {
    /* Called every now and then (the callee decides how often to draw). `done` of `total` in `unit` ("tokens", "rows");
     * `detail` is a short extra text ("loss 1.12  gate 0.21") or NULL. */
    void (*report)(void *context, const char *stage, uint64_t done, uint64_t total, const char *unit,
                   const char *detail);
    /* Returns non-zero once the user wants to stop (Ctrl-C). May be NULL. */
    int (*stop_requested)(void *context);
    void *context;
} grq_progress;

/* Reports, then returns GRQ_E_INTERRUPTED with a message if a stop was requested, else GRQ_OK. `progress` may be NULL.
 */
grq_status grq_progress_step(const grq_progress *progress, const char *stage, uint64_t done, uint64_t total,
                             const char *unit, const char *detail, grq_error *err);

#endif
