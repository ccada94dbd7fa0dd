#include "gaterq/shards.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/safetensors_internal.h"
#include "gaterq/file.h"
#include "gaterq/json.h"

static const char INDEX[] = "model.safetensors.index.json";

typedef struct {
    char *path;
    grq_safetensors *file; /* NULL: not opened yet */
} shard;

typedef struct {
    const char *name; /* owned by the index or by the shard's file */
    size_t shard;
} entry;

struct grq_shards {
    char *path;
    grq_json *index; /* NULL without one */
    shard *shards;   /* by the numbers in their names */
    size_t n_shards;
    entry *entries; /* by name */
    size_t n_entries;
};

/* Runs of digits compare as numbers, all else as bytes. */
static int compare_numbered(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            const size_t n_a = strspn(a, "0123456789"), n_b = strspn(b, "0123456789");
            const int order = n_a != n_b ? (n_a < n_b ? -1 : 1) : strncmp(a, b, n_a);
            if (order) return order;
            a += n_a;
            b += n_b;
            continue;
        }
        if (*a != *b) return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        a++;
        b++;
    }
    return *a ? 1 : *b ? -1 : 0;
}

static int compare_shards(const void *a, const void *b)
{
    const shard *const x = a, *const y = b;
    const int order = compare_numbered(x->path, y->path);
    return order ? order : strcmp(x->path, y->path);
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static grq_status no_memory(const grq_shards *s, grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its list of tensors", s->path);
}

static grq_status add_shard(grq_shards *s, char *path, grq_error *err)
{
    shard *const more = path ? realloc(s->shards, (s->n_shards + 1) * sizeof *more) : NULL;
    if (!more) {
        free(path);
        return no_memory(s, err);
    }
    s->shards = more;
    s->shards[s->n_shards++] = (shard){ .path = path };
    return GRQ_OK;
}

/* ---- with an index ---- */

/* A plain name within the folder: an index from elsewhere must not make us read other files. */
static grq_status check_file_name(const char *where, const char *name, grq_error *err)
{
    const size_t n = strlen(name);
    if (n > 12 && !strchr(name, '/') && !strcmp(name + n - 12, ".safetensors")) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "%s: \"%.80s\" is no name of a safetensors file in this folder", where, name);
}

/* The file that `node` names, as a shard that is not opened; the caller frees shard.path. */
static grq_status shard_of(const grq_shards *s, grq_json_node *node, shard *out, grq_error *err)
{
    const char *name;
    grq_status st = grq_json_as_string(node, &name, err);
    if (st == GRQ_OK) st = check_file_name(grq_json_where(node), name, err);
    *out = (shard){ .path = st == GRQ_OK ? grq_path_join(s->path, name) : NULL };
    return st == GRQ_OK && !out->path ? no_memory(s, err) : st;
}

/* Every file once, in order. */
static grq_status list_files(grq_shards *s, grq_json_node *map, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < grq_json_count(map); i++) {
        shard named;
        st = shard_of(s, grq_json_at(map, i), &named, err);
        if (st == GRQ_OK) st = add_shard(s, named.path, err);
    }
    if (st != GRQ_OK || !s->n_shards) return st;
    qsort(s->shards, s->n_shards, sizeof *s->shards, compare_shards);
    size_t n = 1;
    for (size_t i = 1; i < s->n_shards; i++) {
        if (strcmp(s->shards[i].path, s->shards[n - 1].path)) s->shards[n++] = s->shards[i];
        else free(s->shards[i].path);
    }
    s->n_shards = n;
    return GRQ_OK;
}

static grq_status list_index(grq_shards *s, grq_json_node *map, grq_error *err)
{
    grq_status st = list_files(s, map, err);
    for (size_t i = 0; st == GRQ_OK && i < grq_json_count(map); i++) {
        shard named;
        st = shard_of(s, grq_json_at(map, i), &named, err);
        if (st != GRQ_OK) break;
        const shard *const at = bsearch(&named, s->shards, s->n_shards, sizeof *s->shards, compare_shards);
        s->entries[s->n_entries++] = (entry){ grq_json_key_at(map, i), (size_t)(at - s->shards) };
        free(named.path);
    }
    return st;
}

static grq_status read_index(grq_shards *s, const char *path, grq_error *err)
{
    grq_json_node *map;
    grq_status st = grq_json_open(path, &s->index, err);
    if (st == GRQ_OK) st = grq_json_object(grq_json_root(s->index), "weight_map", &map, err);
    if (st != GRQ_OK) return st;
    s->entries = calloc(grq_json_count(map) + 1, sizeof *s->entries);
    if (!s->entries) return no_memory(s, err);
    st = list_index(s, map, err);
    if (st == GRQ_OK) qsort(s->entries, s->n_entries, sizeof *s->entries, compare_entries);
    return st;
}

/* ---- without one ---- */

static grq_status list_tensors(grq_shards *s, grq_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_shards; i++) {
        const grq_status st = grq_safetensors_open(s->shards[i].path, &s->shards[i].file, err);
        if (st != GRQ_OK) return st;
        n += grq_safetensors_count(s->shards[i].file);
    }
    s->entries = calloc(n + 1, sizeof *s->entries);
    if (!s->entries) return no_memory(s, err);
    for (size_t i = 0; i < s->n_shards; i++)
        for (size_t k = 0; k < grq_safetensors_count(s->shards[i].file); k++)
            s->entries[s->n_entries++] = (entry){ grq_safetensors_at(s->shards[i].file, k)->name, i };
    qsort(s->entries, s->n_entries, sizeof *s->entries, compare_entries);
    for (size_t i = 1; i < s->n_entries; i++)
        if (!strcmp(s->entries[i].name, s->entries[i - 1].name))
            return grq_fail(err, GRQ_E_DATA, "tensor \"%s\" is both in %s and in %s", s->entries[i].name,
                            s->shards[s->entries[i - 1].shard].path, s->shards[s->entries[i].shard].path);
    return GRQ_OK;
}

static grq_status list_folder(grq_shards *s, grq_error *err)
{
    DIR *const folder = opendir(s->path);
    if (!folder) return grq_fail(err, GRQ_E_IO, "%s: %s", s->path, strerror(errno));
    grq_status st = GRQ_OK;
    for (const struct dirent *e; st == GRQ_OK && (e = readdir(folder));) {
        const size_t n = strlen(e->d_name);
        if (n > 12 && e->d_name[0] != '.' && !strcmp(e->d_name + n - 12, ".safetensors"))
            st = add_shard(s, grq_path_join(s->path, e->d_name), err);
    }
    closedir(folder);
    if (st == GRQ_OK && s->n_shards == 0)
        st = grq_fail(err, GRQ_E_DATA, "%s: no safetensors files in this folder", s->path);
    if (st == GRQ_OK) qsort(s->shards, s->n_shards, sizeof *s->shards, compare_shards);
    return st == GRQ_OK ? list_tensors(s, err) : st;
}

/* ---- opening ---- */

static grq_status open_path(grq_shards *s, grq_error *err)
{
    struct stat info;
    if (stat(s->path, &info) != 0) return grq_fail(err, GRQ_E_IO, "%s: %s", s->path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) {
        const grq_status st = add_shard(s, strdup(s->path), err);
        return st == GRQ_OK ? list_tensors(s, err) : st;
    }
    char *const index = grq_path_join(s->path, INDEX);
    if (!index) return no_memory(s, err);
    const grq_status st = grq_file_exists(index) ? read_index(s, index, err) : list_folder(s, err);
    free(index);
    return st;
}

grq_status grq_shards_open(const char *path, grq_shards **out, grq_error *err)
{
    *out = NULL;
    grq_shards *s = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return grq_fail(err, GRQ_E_NOMEM, "%s: no memory to open it", path);
    }
    const grq_status st = open_path(s, err);
    if (st == GRQ_OK) *out = s;
    else grq_shards_close(s);
    return st;
}

void grq_shards_close(grq_shards *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_shards; i++) {
        grq_safetensors_close(s->shards[i].file);
        free(s->shards[i].path);
    }
    grq_json_close(s->index);
    free(s->shards);
    free(s->entries);
    free(s->path);
    free(s);
}

const char *grq_shards_path(const grq_shards *s)
{
    return s->path;
}

/* ---- tensors ---- */

size_t grq_shards_count(const grq_shards *s)
{
    return s->n_entries;
}

const char *grq_shards_name(const grq_shards *s, size_t index)
{
    return index < s->n_entries ? s->entries[index].name : NULL;
}

grq_status grq_shards_find(grq_shards *s, const char *name, const grq_tensor **tensor, const char **file,
                           grq_error *err)
{
    *tensor = NULL;
    const entry wanted = { .name = name };
    const entry *const e =
        s->n_entries ? bsearch(&wanted, s->entries, s->n_entries, sizeof *s->entries, compare_entries) : NULL;
    if (!e) return GRQ_OK;
    shard *const sh = &s->shards[e->shard];
    if (!sh->file) {
        const grq_status st = grq_safetensors_open(sh->path, &sh->file, err);
        if (st != GRQ_OK) return grq_fail_prefix(err, st, "tensor %s of %s", name, s->path);
    }
    *tensor = grq_safetensors_find(sh->file, name);
    if (file) *file = sh->path;
    if (*tensor) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is missing, though %s says it is there", sh->path, name, INDEX);
}

grq_status grq_shards_get(grq_shards *s, const char *name, grq_dtype dtype, uint32_t rank, const uint64_t *shape,
                          const grq_tensor **out, grq_error *err)
{
    const char *file = s->path;
    const grq_tensor *t;
    *out = NULL;
    const grq_status st = grq_shards_find(s, name, &t, &file, err);
    if (st != GRQ_OK) return st;
    if (!t) return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is missing", s->path, name);
    bool right = t->dtype == dtype && rank == t->rank;
    for (uint32_t i = 0; right && i < rank; i++) right = shape[i] == t->shape[i];
    if (right) {
        *out = t;
        return GRQ_OK;
    }
    char wanted[256], found[256];
    grq_tensor_print(dtype, rank, shape, wanted, sizeof wanted);
    grq_tensor_print(t->dtype, t->rank, t->shape, found, sizeof found);
    return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" must be %s, is %s", file, name, wanted, found);
}

const char *grq_shards_metadata(const grq_shards *s, const char *key)
{
    return s->n_shards == 1 && s->shards[0].file ? grq_safetensors_metadata(s->shards[0].file, key) : NULL;
}
