/* base/safetensors_internal.h - what reader and writer of safetensors must agree on. */
#ifndef GATERQ_BASE_SAFETENSORS_INTERNAL_H
#define GATERQ_BASE_SAFETENSORS_INTERNAL_H

#include <stdbool.h>

#include "gaterq/safetensors.h"

enum {
    GRQ_SAFETENSORS_PREFIX = 8,             /* bytes of the header's length */
    GRQ_SAFETENSORS_MAX_HEADER = 100000000, /* the format's own limit */
    GRQ_SAFETENSORS_ALIGN = 64              /* where our data section starts: a cache line */
};

#define GRQ_SAFETENSORS_METADATA "__metadata__"

/* Bytes that dtype and shape ask for; false on overflow. */
static inline bool grq_tensor_size(const grq_tensor *tensor, uint64_t *n_bytes)
{
    *n_bytes = grq_dtype_bytes(tensor->dtype);
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(*n_bytes, tensor->shape[i], n_bytes)) return false;
    return true;
}

/* "F32 (2, 3)" for messages; cut if there is no room. */
void grq_tensor_print(grq_dtype dtype, uint32_t rank, const uint64_t *shape, char *text, size_t room);

/* The bytes that grq_safetensors_write puts before the data, for files whose data are written elsewhere (`data` of the
 * tensors is not looked at). The caller frees *bytes. */
grq_status grq_safetensors_header(const char *path, const grq_tensor *tensors, size_t n_tensors,
                                  const grq_metadata *metadata, size_t n_metadata, char **bytes, size_t *n_bytes,
                                  grq_error *err);

/* The bytes of an open file before its data. */
const void *grq_safetensors_head(const grq_safetensors *file, size_t *n_bytes);

#endif
