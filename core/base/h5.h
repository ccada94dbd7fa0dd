/* base/h5.h - the part of HDF5 that gaterq uses, behind statuses that name file and object.
 *
 * Files are reproducible: object times are off and the format is HDF5 1.8's, so the same calls give the same bytes. A
 * file being written has a temporary name until grq_h5_commit. HDF5 is not safe for threads: one at a time.
 * HDF5's own printing of errors is switched off for the process. Needs libhdf5 and libhdf5_hl. */
#ifndef GATERQ_BASE_H5_H
#define GATERQ_BASE_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/status.h"

typedef struct grq_h5 grq_h5; /* an open file; owns its datasets */
typedef struct grq_h5_dataset grq_h5_dataset;

typedef enum { GRQ_H5_U8, GRQ_H5_I32, GRQ_H5_U32, GRQ_H5_I64, GRQ_H5_U64, GRQ_H5_F32 } grq_h5_type;

size_t grq_h5_type_bytes(grq_h5_type type);
const char *grq_h5_type_name(grq_h5_type type); /* "float32" */

enum { GRQ_H5_MAX_RANK = 4 };
#define GRQ_H5_ANY UINT64_MAX /* in an expected shape: any length */

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Starts a new file that will replace `path`. On GRQ_OK the caller ends it with grq_h5_commit or grq_h5_close. */
grq_status grq_h5_create(const char *path, grq_h5 **out, grq_error *err);
/* Closes, syncs and renames into place; ends the file even when it fails, and then nothing is left behind. Takes NULL.
 */
grq_status grq_h5_commit(grq_h5 *file, grq_error *err);
/* Opens an existing file for reading; the caller ends it with grq_h5_close. */
grq_status grq_h5_open(const char *path, grq_h5 **out, grq_error *err);
/* Closes a file that was opened; discards one that was being written. Takes NULL. */
void grq_h5_close(grq_h5 *file);
const char *grq_h5_path(const grq_h5 *file);

/* ---- writing; object names are absolute ("/layers/1/gates") -------------------------------------------------------
 */

/* Makes a group and the groups above it; existing ones are kept. */
grq_status grq_h5_group(grq_h5 *file, const char *name, grq_error *err);

typedef struct {
    const char *name; /* absolute; the groups above are made */
    grq_h5_type type;
    uint32_t rank;                   /* 1..GRQ_H5_MAX_RANK; axis 0 grows by appending */
    uint64_t shape[GRQ_H5_MAX_RANK]; /* lengths of axes 1.., none 0; shape[0] is not looked at */
    uint64_t chunk_rows;             /* rows per chunk; 0: as many as fill about 64 KiB */
    const char *units;               /* "1" for plain numbers */
    const char *description;
} grq_h5_spec;

/* An extendible dataset of no rows: chunked, shuffled, deflated, with attributes `units` and `description`.
 * *out (may be NULL) is owned by the file. */
grq_status grq_h5_dataset_create(grq_h5 *file, const grq_h5_spec *spec, grq_h5_dataset **out, grq_error *err);
/* Appends `n_rows` rows along axis 0; `rows` is read during the call. */
grq_status grq_h5_append(grq_h5_dataset *dataset, uint64_t n_rows, const void *rows, grq_error *err);
/* Create and append in one call, for small datasets known whole (axes, tables). */
grq_status grq_h5_write(grq_h5 *file, const grq_h5_spec *spec, uint64_t n_rows, const void *rows, grq_h5_dataset **out,
                        grq_error *err);
/* Makes a rank-1 dataset the scale of an axis called `axis_name`; then attaches it to axes of others. */
grq_status grq_h5_make_scale(grq_h5_dataset *dataset, const char *axis_name, grq_error *err);
grq_status grq_h5_attach_scale(grq_h5_dataset *dataset, uint32_t axis, grq_h5_dataset *scale, grq_error *err);

/* Attributes of a group or dataset; "/" is the file itself. Strings are UTF-8 of fixed length. */
grq_status grq_h5_put_string(grq_h5 *file, const char *object, const char *name, const char *value, grq_error *err);
grq_status grq_h5_put_u64(grq_h5 *file, const char *object, const char *name, uint64_t value, grq_error *err);
grq_status grq_h5_put_i64(grq_h5 *file, const char *object, const char *name, int64_t value, grq_error *err);
grq_status grq_h5_put_f64(grq_h5 *file, const char *object, const char *name, double value, grq_error *err);

/* ---- reading ----------------------------------------------------------------------------------------------------- */

bool grq_h5_exists(grq_h5 *file, const char *name);
/* Names of the members of a group, sorted bytewise. The caller frees with grq_h5_free_names. */
grq_status grq_h5_list(grq_h5 *file, const char *group, char ***names, size_t *n_names, grq_error *err);
void grq_h5_free_names(char **names, size_t n_names);

/* Shape of a dataset, which must have this type and rank; GRQ_H5_ANY entries of `expected` accept any length
 * (NULL: all). `shape` receives `rank` lengths. */
grq_status grq_h5_shape(grq_h5 *file, const char *name, grq_h5_type type, uint32_t rank, const uint64_t *expected,
                        uint64_t *shape, grq_error *err);
/* Reads a dataset whole, after the same checks. On GRQ_OK the caller frees *data; `shape` may be NULL. */
grq_status grq_h5_read(grq_h5 *file, const char *name, grq_h5_type type, uint32_t rank, const uint64_t *expected,
                       uint64_t *shape, void **data, grq_error *err);
/* Reads rows [first, first + n_rows) into `rows`, after the same checks. */
grq_status grq_h5_read_rows(grq_h5 *file, const char *name, grq_h5_type type, uint32_t rank, const uint64_t *expected,
                            uint64_t first, uint64_t n_rows, void *rows, grq_error *err);

bool grq_h5_has_attribute(grq_h5 *file, const char *object, const char *name);
grq_status grq_h5_get_string(grq_h5 *file, const char *object, const char *name, char **value,
                             grq_error *err); /* caller frees */
grq_status grq_h5_get_u64(grq_h5 *file, const char *object, const char *name, uint64_t *value, grq_error *err);
grq_status grq_h5_get_i64(grq_h5 *file, const char *object, const char *name, int64_t *value, grq_error *err);
grq_status grq_h5_get_f64(grq_h5 *file, const char *object, const char *name, double *value, grq_error *err);

#endif
