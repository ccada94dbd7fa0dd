#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors_internal.h"
#include "gaterq/file.h"
#include "gaterq/json.h"

/* The header's JSON: metadata first, then the tensors with their places in the data section. */
static grq_status make_header(const char *path, const grq_tensor *tensors, size_t n_tensors,
                              const grq_metadata *metadata, size_t n_metadata, grq_json_writer *w, grq_error *err)
{
    uint64_t place = 0;
    grq_json_begin_object(w, NULL);
    if (n_metadata) {
        grq_json_begin_object(w, GRQ_SAFETENSORS_METADATA);
        for (size_t i = 0; i < n_metadata; i++) grq_json_put_string(w, metadata[i].key, metadata[i].value);
        grq_json_end_object(w);
    }
    for (size_t i = 0; i < n_tensors; i++) {
        const grq_tensor *t = &tensors[i];
        uint64_t n_bytes;
        if (t->rank > GRQ_MAX_RANK || !grq_tensor_size(t, &n_bytes) || n_bytes != t->n_bytes ||
            place > INT64_MAX - n_bytes)
            return grq_fail(err, GRQ_E_DATA, "%s: tensor %s: %" PRIu64 " bytes do not fit its shape and type", path,
                            t->name, t->n_bytes);
        grq_json_begin_object(w, t->name);
        grq_json_put_string(w, "dtype", grq_dtype_name(t->dtype));
        grq_json_begin_array(w, "shape");
        for (uint32_t k = 0; k < t->rank; k++) grq_json_put_u64(w, NULL, t->shape[k]);
        grq_json_end_array(w);
        grq_json_begin_array(w, "data_offsets");
        grq_json_put_u64(w, NULL, place);
        grq_json_put_u64(w, NULL, place += n_bytes);
        grq_json_end_array(w);
        grq_json_end_object(w);
    }
    grq_json_end_object(w);
    return GRQ_OK;
}

/* Header length, header, spaces up to the alignment. The format leaves no holes between tensors, so a caller that wants
 * every tensor aligned orders them so that each but the last is a multiple of GRQ_SAFETENSORS_ALIGN bytes long. */
static grq_status put_header(const char *path, const char *text, FILE *to, grq_error *err)
{
    const size_t n = strlen(text), align = GRQ_SAFETENSORS_ALIGN;
    const size_t padded = (GRQ_SAFETENSORS_PREFIX + n + align - 1) / align * align - GRQ_SAFETENSORS_PREFIX;
    if (padded > GRQ_SAFETENSORS_MAX_HEADER)
        return grq_fail(err, GRQ_E_DATA, "%s: a header of %zu bytes is beyond the format's %d", path, padded,
                        GRQ_SAFETENSORS_MAX_HEADER);
    unsigned char prefix[GRQ_SAFETENSORS_PREFIX];
    for (size_t i = 0; i < sizeof prefix; i++) prefix[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    fwrite(prefix, 1, sizeof prefix, to);
    fwrite(text, 1, n, to);
    for (size_t i = n; i < padded; i++) fputc(' ', to);
    return GRQ_OK;
}

grq_status grq_safetensors_write(const char *path, const grq_tensor *tensors, size_t n_tensors,
                                 const grq_metadata *metadata, size_t n_metadata, grq_error *err)
{
    grq_outfile *file = NULL;
    const char *text;
    grq_json_writer *w = grq_json_writer_new();
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for the header", path);
    grq_status st = make_header(path, tensors, n_tensors, metadata, n_metadata, w, err);
    if (st == GRQ_OK) st = grq_json_writer_text(w, true, &text, err);
    if (st == GRQ_OK) st = grq_outfile_open(path, &file, err);
    if (st == GRQ_OK) st = put_header(path, text, grq_outfile_stream(file), err);
    for (size_t i = 0; st == GRQ_OK && i < n_tensors; i++)
        if (tensors[i].n_bytes &&
            fwrite(tensors[i].data, 1, tensors[i].n_bytes, grq_outfile_stream(file)) != tensors[i].n_bytes)
            break; /* commit reports what the stream remembers */
    grq_json_writer_free(w);
    if (st == GRQ_OK) return grq_outfile_commit(file, err);
    grq_outfile_discard(file);
    return st;
}
