/* experiments/tables.h - a table of rows named on the command line as FILE.safetensors:TENSOR. */
#ifndef GATERQ_TABLES_H
#define GATERQ_TABLES_H

#include "gaterq/digest.h"
#include "gaterq/safetensors.h"

typedef struct {
    grq_safetensors *file;
    const float *values; /* (n_rows, row_dim); inside the file, or `owned` when it had to be converted */
    float *owned;
    uint64_t n_rows;
    uint32_t row_dim;
    char source[256];            /* base name of the file, ":", tensor */
    char sha256[GRQ_SHA256_HEX]; /* of the tensor's bytes as stored */
} input_table;

/* `name` is "FILE.safetensors:TENSOR"; F32, F16, BF16, or F8_E4M3 with E8M0 scales (one per row and 32 columns) in the
 * tensor whose name ends in ".scale" in place of ".weight". NaN codes are refused with their row. */
grq_status input_table_open(const char *name, input_table *out, grq_error *err);
void input_table_close(input_table *table);

#endif
