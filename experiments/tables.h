/* experiments/tables.h - the rows that a command line names: a tensor, or the table of a checkpoint's layer. */
#ifndef GATERQ_TABLES_H
#define GATERQ_TABLES_H

#include "gaterq/checkpoint.h"
#include "gaterq/safetensors.h"
#include "gaterq/table.h"
#include "tool.h"

typedef struct {
    const char *table;  /* "FILE.safetensors:TENSOR" */
    const char *memory; /* checkpoint folder, or a model file; with layer */
    uint64_t layer;     /* INPUT_NO_LAYER: none given */
    const char *e8m0;   /* "ocp" or "shift" */
} input_rows_options;

enum { INPUT_NO_LAYER = 1000000 };

#define INPUT_ROWS_DEFAULTS                                                                                            \
    {                                                                                                                  \
        .layer = INPUT_NO_LAYER, .e8m0 = "ocp"                                                                         \
    }

/* Entries of a command's tool_option list for an input_rows_options `o`. */
#define INPUT_ROWS_OPTIONS(o)                                                                                          \
    { "table",                                                                                                         \
      "FILE:NAME",                                                                                                     \
      "tensor of a safetensors file: F32, F16, BF16, or F8_E4M3 with its .scale",                                      \
      TOOL_TEXT,                                                                                                       \
      &(o).table,                                                                                                      \
      false,                                                                                                           \
      0,                                                                                                               \
      0 },                                                                                                             \
        { "memory",                                                                                                    \
          "DIR",                                                                                                       \
          "in place of --table: a checkpoint folder, or a model file; with --layer",                                   \
          TOOL_TEXT,                                                                                                   \
          &(o).memory,                                                                                                 \
          false,                                                                                                       \
          0,                                                                                                           \
          0 },                                                                                                         \
        { "layer", "L", "0-based decoder layer of the table", TOOL_U64, &(o).layer, false, 0, INPUT_NO_LAYER - 1 },    \
    {                                                                                                                  \
        "e8m0", "RULE", "ocp: scale byte 0 is 2^-127; shift: it is 0 [ocp]", TOOL_TEXT, &(o).e8m0, false, 0, 0         \
    }

typedef struct {
    grq_table *table;
    const char *family; /* "" for a tensor */
    uint32_t layer;     /* 0 for a tensor */
    uint32_t layer_index;
    grq_safetensors *file;
    grq_checkpoint *checkpoint;
} input_rows;

/* `F8_E4M3` tensors take their E8M0 scales (one per row and 32 values) from the tensor whose name ends in ".scale" in
 * place of ".weight". On GRQ_OK the caller ends *out with input_rows_close. */
grq_status input_rows_open(const input_rows_options *options, input_rows *out, grq_error *err);
void input_rows_close(input_rows *rows);

/* GRQ_E_USAGE when writing `path` would replace what the rows are read from. */
grq_status input_rows_check_output(const input_rows_options *options, const char *path, grq_error *err);

#endif
