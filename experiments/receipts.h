/* experiments/receipts.h - what `gaterq verify` leaves beside codes that passed, and what other commands ask for. */
#ifndef GATERQ_RECEIPTS_H
#define GATERQ_RECEIPTS_H

#include "gaterq/json.h"
#include "gaterq/verify.h"

/* "C.receipt.json"; the caller frees it. NULL when out of memory. */
char *receipt_path(const char *codes_path);

/* Writes, of codes that passed, the digest they had and what was found. */
grq_status receipt_write(const char *path, const char *codes_path, const grq_codes *codes,
                         const grq_verify_options *options, const grq_verify_report *report, grq_error *err);
/* The same into an open object: what verify --json prints. */
void receipt_put(grq_json_writer *writer, const grq_codes *codes, const grq_verify_options *options,
                 const grq_verify_report *report);

/* GRQ_OK when the receipt beside `codes_path` is of these very codes and says that they passed. Reads the receipt and
 * the codes' own digest, not all of the codes: a file that was changed after it was verified is not found out here. */
grq_status receipt_check(const char *codes_path, const grq_codes *codes, grq_error *err);

#endif
