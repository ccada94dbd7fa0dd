/* core/trace/trace_internal.h - the file's layout as data, and a writer that takes blocks of positions. */
#ifndef GATERQ_TRACE_INTERNAL_H
#define GATERQ_TRACE_INTERNAL_H

#include "base/h5.h"
#include "gaterq/trace.h"

typedef struct {
    size_t n_positions; /* of the whole file */
    uint32_t n_layers, n_columns, n_branches, row_dim;
    uint32_t layer_ids[GRQ_MAX_MEMORY_LAYERS];
    uint32_t column_order[GRQ_MAX_COLUMNS], column_head[GRQ_MAX_COLUMNS];
    grq_budget budget; /* what `depth` was given by */
} grq_trace_shape;

typedef enum {
    GRQ_AXES_POSITION,
    GRQ_AXES_BRANCH,
    GRQ_AXES_COLUMN
} grq_field_axes; /* (T), (T, branches), (T, columns) */

/* One dataset: where it lies in the file and which member of grq_trace (positions) or grq_trace_layer holds it. */
typedef struct {
    const char *group, *name; /* "positions"; below /layers/<L>: "gates", "lookups" */
    grq_h5_type type;
    grq_field_axes axes;
    size_t member;   /* offset of the pointer */
    double min, max; /* accepted values */
    const char *units, *description;
} grq_trace_field;

extern const grq_trace_field grq_position_fields[];
extern const size_t grq_n_position_fields;
extern const grq_trace_field grq_layer_fields[];
extern const size_t grq_n_layer_fields;

enum { GRQ_FIELD_PATH_BYTES = 96 };
/* "/layers/1/lookups/row"; `layer` is ignored for positions. */
void grq_field_path(const grq_trace_field *field, uint32_t layer, char path[GRQ_FIELD_PATH_BYTES]);
void **grq_field_of_positions(const grq_trace *trace, const grq_trace_field *field);
void **grq_field_of_layer(const grq_trace_layer *layer, const grq_trace_field *field);
size_t grq_field_width(const grq_trace_layer *layer, const grq_trace_field *field); /* 1, branches or columns */
/* Refuses values outside [min, max] and NaN; `where` names the dataset, `first` the number of the first position. */
grq_status grq_field_check(const grq_trace_field *field, const char *where, const void *values, size_t first, size_t n,
                           size_t width, grq_error *err);

/* A trace (or block) with room for n_positions; all arrays zero. Ends with grq_trace_free. */
grq_status grq_trace_new(const grq_trace_shape *shape, size_t n_positions, grq_trace *out, grq_error *err);

enum { GRQ_TRACE_VERSION = 1 };
#define GRQ_TRACE_FORMAT "gaterq-trace"

/* Writes under a temporary name; blocks follow each other until shape->n_positions are there. */
typedef struct grq_trace_writer grq_trace_writer;
grq_status grq_trace_writer_open(const char *path, const grq_trace_shape *shape, const grq_trace_info *info,
                                 grq_trace_writer **out, grq_error *err);
grq_status grq_trace_writer_append(grq_trace_writer *writer, const grq_trace *block, grq_error *err);
grq_status grq_trace_writer_commit(grq_trace_writer *writer, grq_error *err); /* ends the writer in any case */
void grq_trace_writer_discard(grq_trace_writer *writer); /* takes NULL; removes the temporary file */

#endif
