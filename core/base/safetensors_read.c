#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safetensors_internal.h"
#include "gaterq/json.h"

static const struct {
    const char *name;
    size_t n_bytes;
} dtypes[] = {
    [GRQ_F32] = { "F32", 4 }, [GRQ_F16] = { "F16", 2 },         [GRQ_BF16] = { "BF16", 2 },
    [GRQ_F64] = { "F64", 8 }, [GRQ_F8_E4M3] = { "F8_E4M3", 1 }, [GRQ_F8_E8M0] = { "F8_E8M0", 1 },
    [GRQ_I8] = { "I8", 1 },   [GRQ_U8] = { "U8", 1 },           [GRQ_I16] = { "I16", 2 },
    [GRQ_U16] = { "U16", 2 }, [GRQ_I32] = { "I32", 4 },         [GRQ_U32] = { "U32", 4 },
    [GRQ_I64] = { "I64", 8 }, [GRQ_U64] = { "U64", 8 },         [GRQ_BOOL] = { "BOOL", 1 },
};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

struct grq_safetensors {
    char *path;
    void *map;
    size_t n_map_bytes;
    grq_json *header;        /* owns the names and the metadata */
    grq_json_node *metadata; /* NULL if there is none */
    grq_tensor *tensors;     /* by place in the data */
    const grq_tensor **by_name;
    size_t n_tensors;
};

/* A tensor as the header has it, until its place is checked. */
typedef struct {
    grq_tensor tensor;
    uint64_t begin, end; /* within the data section */
    size_t index;        /* in the header: breaks ties of empty tensors */
} entry;

const char *grq_dtype_name(grq_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t grq_dtype_bytes(grq_dtype dtype)
{
    return dtypes[dtype].n_bytes;
}

void grq_tensor_print(grq_dtype dtype, uint32_t rank, const uint64_t *shape, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "%s (", grq_dtype_name(dtype));
    for (uint32_t i = 0; i < rank && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%" PRIu64, i ? ", " : "", shape[i]);
    if (n < room) snprintf(text + n, room - n, ")");
}

/* ---- one entry of the header ------------------------------------------------------------------------------------- */

static grq_status read_dtype(grq_json_node *object, grq_dtype *dtype, grq_error *err)
{
    const char *name;
    const grq_status st = grq_json_string(object, "dtype", &name, err);
    if (st != GRQ_OK) return st;
    for (int i = 0; i < N_DTYPES; i++) {
        if (strcmp(dtypes[i].name, name) != 0) continue;
        *dtype = (grq_dtype)i;
        return GRQ_OK;
    }
    return grq_fail(err, GRQ_E_DATA, "%s: unknown dtype \"%s\"", grq_json_where(object), name);
}

/* A JSON number; the decimal strings that grq_json_as_u64 also takes are not safetensors. */
static grq_status read_count(grq_json_node *node, uint64_t max, uint64_t *value, grq_error *err)
{
    if (grq_json_kind_of(node) != GRQ_JSON_NUMBER)
        return grq_fail(err, GRQ_E_DATA, "%s: must be a number", grq_json_where(node));
    return grq_json_as_u64(node, 0, max, value, err);
}

static grq_status read_shape(grq_json_node *object, grq_tensor *tensor, grq_error *err)
{
    grq_json_node *shape;
    grq_status st = grq_json_array(object, "shape", &shape, err);
    if (st != GRQ_OK) return st;
    const size_t rank = grq_json_count(shape);
    if (rank > GRQ_MAX_RANK)
        return grq_fail(err, GRQ_E_DATA, "%s: %zu axes; at most %d are supported", grq_json_where(shape), rank,
                        GRQ_MAX_RANK);
    tensor->rank = (uint32_t)rank;
    for (size_t i = 0; i < rank && st == GRQ_OK; i++)
        st = read_count(grq_json_at(shape, i), UINT64_MAX, &tensor->shape[i], err);
    if (st == GRQ_OK && !grq_tensor_size(tensor, &tensor->n_bytes))
        st = grq_fail(err, GRQ_E_DATA, "%s: more than 2^64 bytes", grq_json_where(shape));
    return st;
}

static grq_status read_place(grq_json_node *object, uint64_t n_data_bytes, entry *e, grq_error *err)
{
    grq_json_node *pair;
    grq_status st = grq_json_array(object, "data_offsets", &pair, err);
    if (st != GRQ_OK) return st;
    if (grq_json_count(pair) != 2)
        return grq_fail(err, GRQ_E_DATA, "%s: must hold begin and end", grq_json_where(pair));
    st = read_count(grq_json_at(pair, 0), n_data_bytes, &e->begin, err);
    if (st == GRQ_OK) st = read_count(grq_json_at(pair, 1), n_data_bytes, &e->end, err);
    if (st != GRQ_OK) return st;
    if (e->begin > e->end)
        return grq_fail(err, GRQ_E_DATA, "%s: begin %" PRIu64 " lies behind end %" PRIu64, grq_json_where(pair),
                        e->begin, e->end);
    if (e->end - e->begin == e->tensor.n_bytes) return GRQ_OK;
    char shape[256];
    grq_tensor_print(e->tensor.dtype, e->tensor.rank, e->tensor.shape, shape, sizeof shape);
    return grq_fail(err, GRQ_E_DATA, "%s: %" PRIu64 " bytes, but %s needs %" PRIu64, grq_json_where(pair),
                    e->end - e->begin, shape, e->tensor.n_bytes);
}

static grq_status read_entry(grq_json_node *object, uint64_t n_data_bytes, entry *e, grq_error *err)
{
    if (grq_json_kind_of(object) != GRQ_JSON_OBJECT)
        return grq_fail(err, GRQ_E_DATA, "%s: must be an object", grq_json_where(object));
    grq_status st = read_dtype(object, &e->tensor.dtype, err);
    if (st == GRQ_OK) st = read_shape(object, &e->tensor, err);
    if (st == GRQ_OK) st = read_place(object, n_data_bytes, e, err);
    if (st == GRQ_OK) st = grq_json_finish(object, err);
    return st;
}

static grq_status check_metadata(grq_json_node *metadata, grq_error *err)
{
    if (grq_json_kind_of(metadata) != GRQ_JSON_OBJECT)
        return grq_fail(err, GRQ_E_DATA, "%s: must be an object", grq_json_where(metadata));
    for (size_t i = 0; i < grq_json_count(metadata); i++) {
        const char *value;
        const grq_status st = grq_json_as_string(grq_json_at(metadata, i), &value, err);
        if (st != GRQ_OK) return st;
    }
    return GRQ_OK;
}

/* ---- the whole header -------------------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
    const entry *const x = a, *const y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int compare_names(const void *a, const void *b)
{
    const grq_tensor *const *const x = a, *const *const y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Every byte of the data must belong to exactly one tensor. */
static grq_status check_cover(const grq_safetensors *file, const entry *entries, uint64_t n_data_bytes, grq_error *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < file->n_tensors; at = entries[i++].end) {
        const entry *const e = &entries[i];
        if (e->begin < at)
            return grq_fail(err, GRQ_E_DATA, "%s: %s: begins at %" PRIu64 ", inside %s, which ends at %" PRIu64,
                            file->path, e->tensor.name, e->begin, entries[i - 1].tensor.name, at);
        if (e->begin > at)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: %s: begins at %" PRIu64 ", which leaves a hole of %" PRIu64 " bytes before it",
                            file->path, e->tensor.name, e->begin, e->begin - at);
    }
    if (at == n_data_bytes) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "%s: %" PRIu64 " bytes after the last tensor", file->path, n_data_bytes - at);
}

static grq_status read_entries(grq_safetensors *file, uint64_t n_data_bytes, entry *entries, grq_error *err)
{
    grq_json_node *const root = grq_json_root(file->header);
    for (size_t i = 0; i < grq_json_count(root); i++) {
        grq_json_node *const node = grq_json_at(root, i);
        const char *const name = grq_json_key_at(root, i);
        grq_status st;
        if (strcmp(name, GRQ_SAFETENSORS_METADATA) == 0) {
            file->metadata = node;
            st = check_metadata(node, err);
        } else {
            entry *const e = &entries[file->n_tensors++];
            *e = (entry){ .tensor.name = name, .index = i };
            st = read_entry(node, n_data_bytes, e, err);
        }
        if (st != GRQ_OK) return st;
    }
    qsort(entries, file->n_tensors, sizeof *entries, compare_places);
    return check_cover(file, entries, n_data_bytes, err);
}

static grq_status index_tensors(grq_safetensors *file, const char *data, uint64_t n_data_bytes, grq_error *err)
{
    const size_t n = grq_json_count(grq_json_root(file->header)) + 1; /* an empty header is a file of no tensors */
    entry *entries = calloc(n, sizeof *entries);
    file->tensors = calloc(n, sizeof *file->tensors);
    file->by_name = calloc(n, sizeof(grq_tensor *));
    grq_status st = entries && file->tensors && file->by_name
                        ? GRQ_OK
                        : grq_fail(err, GRQ_E_NOMEM, "%s: no memory for %zu tensors", file->path, n - 1);
    if (st == GRQ_OK) st = read_entries(file, n_data_bytes, entries, err);
    for (size_t i = 0; st == GRQ_OK && i < file->n_tensors; i++) {
        file->tensors[i] = entries[i].tensor;
        file->tensors[i].data = data + entries[i].begin;
        file->by_name[i] = &file->tensors[i];
    }
    if (st == GRQ_OK) qsort(file->by_name, file->n_tensors, sizeof *file->by_name, compare_names);
    free(entries);
    return st;
}

static uint64_t header_length(const unsigned char *bytes)
{
    uint64_t n_header = 0;
    for (int i = GRQ_SAFETENSORS_PREFIX - 1; i >= 0; i--) n_header = n_header << 8 | bytes[i];
    return n_header;
}

static grq_status read_header(grq_safetensors *file, grq_error *err)
{
    const unsigned char *const bytes = file->map;
    const uint64_t n_header = header_length(bytes);
    const uint64_t n_after = file->n_map_bytes - GRQ_SAFETENSORS_PREFIX;
    if (n_header > GRQ_SAFETENSORS_MAX_HEADER)
        return grq_fail(err, GRQ_E_DATA, "%s: not safetensors: a header of %" PRIu64 " bytes, above the limit of %d",
                        file->path, n_header, GRQ_SAFETENSORS_MAX_HEADER);
    if (n_header > n_after)
        return grq_fail(err, GRQ_E_DATA,
                        "%s: a header of %" PRIu64 " bytes in a file that has %" PRIu64 " after its length", file->path,
                        n_header, n_after);
    const char *const header = (const char *)bytes + GRQ_SAFETENSORS_PREFIX;
    if (n_header == 0 || header[0] != '{')
        return grq_fail(err, GRQ_E_DATA, "%s: not safetensors: the header does not start with {", file->path);
    const grq_status st = grq_json_parse(file->path, header, n_header, &file->header, err);
    return st == GRQ_OK ? index_tensors(file, header + n_header, n_after - n_header, err) : st;
}

static grq_status map_file(grq_safetensors *file, grq_error *err)
{
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not wait for ever */
    if (fd < 0) return grq_fail(err, GRQ_E_IO, "%s: %s", file->path, strerror(errno));
    struct stat info;
    grq_status st = fstat(fd, &info) == 0 ? GRQ_OK : grq_fail(err, GRQ_E_IO, "%s: %s", file->path, strerror(errno));
    if (st == GRQ_OK && !S_ISREG(info.st_mode)) st = grq_fail(err, GRQ_E_IO, "%s: is not a regular file", file->path);
    if (st == GRQ_OK && info.st_size < GRQ_SAFETENSORS_PREFIX)
        st = grq_fail(err, GRQ_E_DATA, "%s: not safetensors: only %lld bytes", file->path, (long long)info.st_size);
    if (st == GRQ_OK) {
        file->n_map_bytes = (size_t)info.st_size;
        void *const map = mmap(NULL, file->n_map_bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) st = grq_fail(err, GRQ_E_IO, "%s: cannot be mapped: %s", file->path, strerror(errno));
        else file->map = map;
    }
    close(fd); /* the mapping outlives the descriptor */
    return st;
}

grq_status grq_safetensors_open(const char *path, grq_safetensors **out, grq_error *err)
{
    *out = NULL;
    grq_safetensors *file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(path))) {
        free(file);
        return grq_fail(err, GRQ_E_NOMEM, "%s: no memory to open it", path);
    }
    grq_status st = map_file(file, err);
    if (st == GRQ_OK) st = read_header(file, err);
    if (st == GRQ_OK) *out = file;
    else grq_safetensors_close(file);
    return st;
}

void grq_safetensors_close(grq_safetensors *file)
{
    if (!file) return;
    if (file->map) munmap(file->map, file->n_map_bytes);
    grq_json_close(file->header);
    free(file->by_name);
    free(file->tensors);
    free(file->path);
    free(file);
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

size_t grq_safetensors_count(const grq_safetensors *file)
{
    return file->n_tensors;
}

const grq_tensor *grq_safetensors_at(const grq_safetensors *file, size_t index)
{
    return index < file->n_tensors ? &file->tensors[index] : NULL;
}

const grq_tensor *grq_safetensors_find(const grq_safetensors *file, const char *name)
{
    const grq_tensor wanted = { .name = name }, *const key = &wanted;
    const grq_tensor *const *const found =
        bsearch(&key, file->by_name, file->n_tensors, sizeof *file->by_name, compare_names);
    return found ? *found : NULL;
}

grq_status grq_safetensors_get(const grq_safetensors *file, const char *name, grq_dtype dtype, uint32_t rank,
                               const uint64_t *shape, const grq_tensor **out, grq_error *err)
{
    *out = NULL;
    const grq_tensor *const t = grq_safetensors_find(file, name);
    if (!t) return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is missing", file->path, name);
    bool right = t->dtype == dtype && (rank == 0 || rank == t->rank);
    for (uint32_t i = 0; right && i < rank; i++) right = shape[i] == t->shape[i];
    if (!right) {
        char wanted[256], found[256];
        if (rank > 0) grq_tensor_print(dtype, rank, shape, wanted, sizeof wanted);
        else snprintf(wanted, sizeof wanted, "%s of any shape", grq_dtype_name(dtype));
        grq_tensor_print(t->dtype, t->rank, t->shape, found, sizeof found);
        return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" must be %s, is %s", file->path, name, wanted, found);
    }
    if (t->n_bytes > 0 && (uintptr_t)t->data % grq_dtype_bytes(dtype) != 0)
        return grq_fail(err, GRQ_E_DATA,
                        "%s: tensor \"%s\" begins at byte %zu, which is no multiple of its %zu-byte values; "
                        "save the file again with tensors of wide types first",
                        file->path, name, (size_t)((const char *)t->data - (const char *)file->map),
                        grq_dtype_bytes(dtype));
    *out = t;
    return GRQ_OK;
}

/* A walk over the keys rather than grq_json_find, which takes notes: an open file never changes. */
const char *grq_safetensors_metadata(const grq_safetensors *file, const char *key)
{
    const char *value = NULL;
    for (size_t i = 0; file->metadata && i < grq_json_count(file->metadata); i++)
        if (strcmp(grq_json_key_at(file->metadata, i), key) == 0)
            grq_json_as_string(grq_json_at(file->metadata, i), &value, NULL);
    return value;
}

const char *grq_safetensors_path(const grq_safetensors *file)
{
    return file->path;
}

/* index_tensors has found that the data, if any, begin where the header ends. */
const void *grq_safetensors_head(const grq_safetensors *file, size_t *n_bytes)
{
    const unsigned char *const bytes = file->map;
    *n_bytes = GRQ_SAFETENSORS_PREFIX + (size_t)header_length(bytes);
    return bytes;
}
