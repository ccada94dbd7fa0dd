/* gaterq/encode.h - coding a table of any size into a file, in memory that does not grow with the table.
 *
 * Rows are coded in blocks of 4096 on all threads and written to "C.partial"; "C.journal" says which blocks are done. A
 * run that was stopped anywhere, by a signal, a crash or a full disk, goes on where it was when it is repeated, and
 * ends in the same bytes: blocks that the journal has are read back and must have the digest it says. Only a whole file
 * gets the name C. Several processes may share one file (ranks), or code parts of a table apart (row ranges, joined
 * later). File layout: docs/format.md. */
#ifndef GATERQ_ENCODE_H
#define GATERQ_ENCODE_H

#include "gaterq/codec.h"
#include "gaterq/digest.h"
#include "gaterq/table.h"

typedef struct {
    const grq_encoder *encoder;
    const grq_codes_transform *transform; /* NULL: rows as they are */
    uint32_t n_stages;
    const grq_codes_origin *origin;
    uint64_t first_row, n_rows; /* of the table; n_rows 0: all from first_row on. Parts begin at multiples of 4096 rows,
                                   and end at one or at the table's end */
    uint32_t rank, n_ranks;     /* this process is `rank` of n_ranks, which must stay the same when a run is repeated;
                                   0 of 0 is 0 of 1. Rank 0 ends the file once all ranks are done */
    uint32_t n_threads;
    const grq_progress *progress;
} grq_encode_job;

typedef struct {
    uint64_t n_rows;    /* of the file */
    uint64_t n_coded;   /* by this call */
    uint64_t n_resumed; /* found done, by this rank */
    bool complete;      /* C is there; false for ranks but 0 */
    const grq_encoder *encoder;
    uint32_t row_dim, n_stages;
    char digest[GRQ_SHA256_HEX]; /* of the file, when complete: as grq_codes_digest */
} grq_encode_result;

/* Writes `path`. A row that cannot be coded (NaN, a scale out of range) is named, and then nothing is left behind;
 * after other errors and interruptions the partial file and its journal stay. */
grq_status grq_encode_file(const grq_table *table, const grq_encode_job *job, const char *path, grq_encode_result *out,
                           grq_error *err);

/* Puts parts of a table, in any order, together: the same bytes as coding it at once. Refused by name: parts that leave
 * rows out or share some, that were coded otherwise or from another table, and blocks without their digest. */
grq_status grq_encode_join(const char *const *parts, size_t n_parts, const char *path, const grq_progress *progress,
                           grq_encode_result *out, grq_error *err);

#endif
