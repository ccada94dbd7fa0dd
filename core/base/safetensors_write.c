#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors_internal.h"
#include "base/utf8.h"
#include "gaterq/file.h"
#include "gaterq/json.h"

typedef struct {
    const char *path;
    const grq_tensor *tensors;
    size_t n_tensors;
    const grq_metadata *metadata;
    size_t n_metadata;
} content;

/* ---- what must not be written ------------------------------------------------------------------------------------ */

static int compare_strings(const void *a, const void *b)
{
    const char *const *const x = a, *const *const y = b;
    return strcmp(*x, *y);
}

/* Refuses names that our reader, or JSON, could not give back: missing, not UTF-8, twice. `names` is sorted. */
static grq_status check_names(const char *path, const char *what, const char **names, size_t n, grq_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!names[i]) return grq_fail(err, GRQ_E_DATA, "%s: %s %zu has no name", path, what, i);
        if (!grq_utf8_valid(names[i]))
            return grq_fail(err, GRQ_E_DATA, "%s: the name of %s %zu is not UTF-8", path, what, i);
    }
    qsort(names, n, sizeof *names, compare_strings);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return grq_fail(err, GRQ_E_DATA, "%s: %s \"%s\" appears twice", path, what, names[i]);
    return GRQ_OK;
}

static grq_status check_all_names(const content *c, grq_error *err)
{
    const size_t n = c->n_tensors > c->n_metadata ? c->n_tensors : c->n_metadata;
    const char **names = calloc(n ? n : 1, sizeof(char *));
    if (!names) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for %zu names", c->path, n);
    for (size_t i = 0; i < c->n_tensors; i++) names[i] = c->tensors[i].name;
    grq_status st = check_names(c->path, "tensor", names, c->n_tensors, err);
    for (size_t i = 0; i < c->n_metadata; i++) names[i] = c->metadata[i].key;
    if (st == GRQ_OK) st = check_names(c->path, "metadata", names, c->n_metadata, err);
    free(names);
    for (size_t i = 0; st == GRQ_OK && i < c->n_metadata; i++)
        if (!c->metadata[i].value || !grq_utf8_valid(c->metadata[i].value))
            st = grq_fail(err, GRQ_E_DATA, "%s: metadata \"%s\" is not UTF-8 text", c->path, c->metadata[i].key);
    return st;
}

static grq_status check_tensor(const char *path, const grq_tensor *t, bool with_data, grq_error *err)
{
    if (strcmp(t->name, GRQ_SAFETENSORS_METADATA) == 0)
        return grq_fail(err, GRQ_E_DATA, "%s: a tensor must not be called %s", path, t->name);
    if (t->rank > GRQ_MAX_RANK)
        return grq_fail(err, GRQ_E_DATA, "%s: %s: %" PRIu32 " axes; at most %d", path, t->name, t->rank, GRQ_MAX_RANK);
    uint64_t needed;
    if (!grq_tensor_size(t, &needed) || needed != t->n_bytes || (with_data && !t->data && needed)) {
        char shape[256];
        grq_tensor_print(t->dtype, t->rank, t->shape, shape, sizeof shape);
        return grq_fail(err, GRQ_E_DATA, "%s: %s: %" PRIu64 " bytes at %s do not make %s", path, t->name, t->n_bytes,
                        t->data ? "hand" : "NULL", shape);
    }
    return GRQ_OK;
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static grq_json_writer *write_header(const content *c)
{
    grq_json_writer *const w = grq_json_writer_new();
    if (!w) return NULL;
    grq_json_begin_object(w, NULL);
    if (c->n_metadata > 0) {
        grq_json_begin_object(w, GRQ_SAFETENSORS_METADATA);
        for (size_t i = 0; i < c->n_metadata; i++) grq_json_put_string(w, c->metadata[i].key, c->metadata[i].value);
        grq_json_end_object(w);
    }
    uint64_t at = 0;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const grq_tensor *const t = &c->tensors[i];
        grq_json_begin_object(w, t->name);
        grq_json_put_string(w, "dtype", grq_dtype_name(t->dtype));
        grq_json_begin_array(w, "shape");
        for (uint32_t k = 0; k < t->rank; k++) grq_json_put_u64(w, NULL, t->shape[k]);
        grq_json_end_array(w);
        grq_json_begin_array(w, "data_offsets");
        grq_json_put_u64(w, NULL, at);
        grq_json_put_u64(w, NULL, at += t->n_bytes);
        grq_json_end_array(w);
        grq_json_end_object(w);
    }
    grq_json_end_object(w);
    return w;
}

/* Length, JSON and the spaces that bring the data to a multiple of GRQ_SAFETENSORS_ALIGN. */
static grq_status make_header(const content *c, char **bytes, size_t *n_bytes, grq_error *err)
{
    grq_json_writer *w = write_header(c);
    const char *text;
    grq_status st = grq_json_writer_text(w, true, &text, err);
    const size_t n_text = st == GRQ_OK ? strlen(text) : 0;
    const size_t n_spaces = -(GRQ_SAFETENSORS_PREFIX + n_text) % GRQ_SAFETENSORS_ALIGN;
    const uint64_t n_header = n_text + n_spaces;
    if (st == GRQ_OK && n_header > GRQ_SAFETENSORS_MAX_HEADER)
        st = grq_fail(err, GRQ_E_DATA, "%s: %zu tensors need a header of %" PRIu64 " bytes; the format allows %d",
                      c->path, c->n_tensors, n_header, GRQ_SAFETENSORS_MAX_HEADER);
    *n_bytes = GRQ_SAFETENSORS_PREFIX + n_header;
    *bytes = st == GRQ_OK ? malloc(*n_bytes) : NULL;
    if (st == GRQ_OK && !*bytes) st = grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its header", c->path);
    if (st == GRQ_OK) {
        for (int i = 0; i < GRQ_SAFETENSORS_PREFIX; i++) (*bytes)[i] = (char)(n_header >> 8 * i & 0xFF);
        memcpy(*bytes + GRQ_SAFETENSORS_PREFIX, text, n_text);
        memset(*bytes + GRQ_SAFETENSORS_PREFIX + n_text, ' ', n_spaces);
    }
    grq_json_writer_free(w);
    return st;
}

static grq_status check_content(const content *c, bool with_data, grq_error *err)
{
    grq_status st = check_all_names(c, err);
    uint64_t total = 0; /* stays far below 2^53, from where offsets could not be JSON numbers */
    for (size_t i = 0; st == GRQ_OK && i < c->n_tensors; i++) {
        st = check_tensor(c->path, &c->tensors[i], with_data, err);
        if (st == GRQ_OK && (__builtin_add_overflow(total, c->tensors[i].n_bytes, &total) || total >> 53))
            st = grq_fail(err, GRQ_E_DATA, "%s: more than 2^53 bytes of tensors", c->path);
    }
    return st;
}

grq_status grq_safetensors_header(const char *path, const grq_tensor *tensors, size_t n_tensors,
                                  const grq_metadata *metadata, size_t n_metadata, char **bytes, size_t *n_bytes,
                                  grq_error *err)
{
    const content c = { path, tensors, n_tensors, metadata, n_metadata };
    *bytes = NULL;
    const grq_status st = check_content(&c, false, err);
    return st == GRQ_OK ? make_header(&c, bytes, n_bytes, err) : st;
}

grq_status grq_safetensors_write(const char *path, const grq_tensor *tensors, size_t n_tensors,
                                 const grq_metadata *metadata, size_t n_metadata, grq_error *err)
{
    const content c = { path, tensors, n_tensors, metadata, n_metadata };
    char *header = NULL;
    size_t n_header;
    grq_outfile *file = NULL;
    grq_status st = check_content(&c, true, err);
    if (st == GRQ_OK) st = make_header(&c, &header, &n_header, err);
    if (st == GRQ_OK) st = grq_outfile_open(path, &file, err);
    if (st == GRQ_OK) fwrite(header, 1, n_header, grq_outfile_stream(file)); /* commit reports what cannot be written */
    for (size_t i = 0; st == GRQ_OK && i < n_tensors; i++) {
        const size_t n = tensors[i].n_bytes;
        if (n > 0 && fwrite(tensors[i].data, 1, n, grq_outfile_stream(file)) != n)
            break; /* the disk is full, say: commit finds out and names the reason */
    }
    free(header);
    if (st == GRQ_OK) return grq_outfile_commit(file, err);
    grq_outfile_discard(file);
    return st;
}
