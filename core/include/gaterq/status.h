/* gaterq/status.h - how every library function reports failure.
 *
 * Library code never prints and never exits: it returns a status and fills a message that names the file, the field
 * and the value that was wrong, and where it helps the remedy. Only the tool (experiments/) prints messages. */
#ifndef GATERQ_STATUS_H
#define GATERQ_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    GRQ_OK = 0,
    GRQ_E_CHECK,      /* a result fell outside its tolerance      (tool exits 1)   */
    GRQ_E_USAGE,      /* bad command line or configuration        (tool exits 2)   */
    GRQ_E_IO,         /* the operating system refused             (tool exits 3)   */
    GRQ_E_DATA,       /* a file's content is not what it must be  (tool exits 3)   */
    GRQ_E_NOMEM,      /* no memory                                (tool exits 3)   */
    GRQ_E_DEVICE,     /* no such accelerator                      (tool exits 4)   */
    GRQ_E_INTERRUPTED /* the caller asked to stop                 (tool exits 130) */
} grq_status;

enum { GRQ_ERROR_BYTES = 1024 };

/* Owned by the caller; one per thread. A message is always NUL-terminated, and cut with "..." if it is too long. */
typedef struct {
    grq_status status;
    char message[GRQ_ERROR_BYTES];
} grq_error;

/* Fills *err (which may be NULL) and returns `status`, so that `return grq_fail(err, GRQ_E_IO, "%s: ...", path)` reads
 * as one sentence. */
grq_status grq_fail(grq_error *err, grq_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message already in *err; for callers that know the file or field when the callee did not.
 * Returns err->status (or `status` when err is NULL). */
grq_status grq_fail_prefix(grq_error *err, grq_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For readers of configs: broken content of a config is bad usage (GRQ_E_USAGE), not bad data. Other statuses pass. */
grq_status grq_config_status(grq_status status, grq_error *err);

/* The exit code the tool ends with: see the enum above. */
int grq_status_exit_code(grq_status status);

#ifdef __cplusplus
}
#endif
#endif
