/* gaterq/safetensors.h - safetensors files: strict reader over mmap, and a writer.
 *
 * Layout: 8-byte little-endian header length, JSON header, data. Refused by name: a header above 100 MB or past the end
 * of the file, broken JSON, duplicate names, unknown dtypes, shapes that do not give the byte count, overlapping
 * tensors, holes, trailing bytes. Our writer sorts nothing: tensors lie in the order given, each start aligned to
 * `GRQ_SAFETENSORS_ALIGN` bytes by padding the header (first tensor) and by requiring callers' sizes; see the .c file.
 */
#ifndef GATERQ_SAFETENSORS_H
#define GATERQ_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/status.h"

typedef enum {
    GRQ_F32,
    GRQ_F16,
    GRQ_BF16,
    GRQ_F64,
    GRQ_F8_E4M3,
    GRQ_F8_E8M0,
    GRQ_I8,
    GRQ_U8,
    GRQ_I16,
    GRQ_U16,
    GRQ_I32,
    GRQ_U32,
    GRQ_I64,
    GRQ_U64,
    GRQ_BOOL
} grq_dtype;

const char *grq_dtype_name(grq_dtype dtype); /* "F32", "F8_E4M3", ... as in the format */
size_t grq_dtype_bytes(grq_dtype dtype);

enum { GRQ_MAX_RANK = 8 };

typedef struct {
    const char *name;
    grq_dtype dtype;
    uint32_t rank;
    uint64_t shape[GRQ_MAX_RANK];
    uint64_t n_bytes;
    const void *data; /* inside the mapping; aligned as the file has it */
} grq_tensor;

typedef struct grq_safetensors grq_safetensors;

/* Maps `path` read-only; O(header). On GRQ_OK the caller ends *out with _close. An open file never changes, so any
 * number of threads may read it. Whoever cuts the file short meanwhile makes reads of its data fault (SIGBUS). */
grq_status grq_safetensors_open(const char *path, grq_safetensors **out, grq_error *err);
void grq_safetensors_close(grq_safetensors *file); /* takes NULL */
size_t grq_safetensors_count(const grq_safetensors *file);
const grq_tensor *grq_safetensors_at(const grq_safetensors *file, size_t index); /* by place in the data */
/* Fails by name when missing, when dtype or shape differ (rank 0 in `rank`: any shape), or when the data are not
 * aligned to the dtype: *out may be read through a pointer to it. */
grq_status grq_safetensors_get(const grq_safetensors *file, const char *name, grq_dtype dtype, uint32_t rank,
                               const uint64_t *shape, const grq_tensor **out, grq_error *err);
const grq_tensor *grq_safetensors_find(const grq_safetensors *file, const char *name); /* NULL when missing */
const char *grq_safetensors_metadata(const grq_safetensors *file, const char *key);    /* NULL when missing */
const char *grq_safetensors_path(const grq_safetensors *file);

typedef struct {
    const char *key, *value;
} grq_metadata;

/* Writes complete or not at all (temporary name, then rename). `data` of each tensor is read during the call; `n_bytes`
 * must be what dtype and shape give. Names and metadata are UTF-8, and unique. */
grq_status grq_safetensors_write(const char *path, const grq_tensor *tensors, size_t n_tensors,
                                 const grq_metadata *metadata, size_t n_metadata, grq_error *err);

#endif
