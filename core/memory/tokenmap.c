#include "gaterq/tokenmap.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gaterq/digest.h"
#include "gaterq/file.h"
#include "gaterq/geometry.h"
#include "memory/token_key.h"
#include "memory/tokenizer_json.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a map is read and written as it lies in memory, and files are little-endian"
#endif

/* The key of a token, later of a class. */
typedef struct {
    char *bytes; /* NULL: of a reserved token, which shares its class with no other */
    size_t n_bytes;
    uint32_t id; /* of the token */
} token_key;

struct grq_tokenmap {
    int32_t *ids; /* (n_ids) */
    uint32_t n_ids, n_reserved, n_classes;
    token_key *keys; /* (n_classes) of a built map, by class; NULL in one that was opened */
    char sha256[GRQ_SHA256_HEX];
};

/* ---- a finished map --------------------------------------------------------------------------------------------- */

/* Numbering by first appearance: each entry is a class seen before or the next one. */
static grq_status count_classes(grq_tokenmap *map, const char *path, grq_error *err)
{
    for (uint32_t i = 0; i < map->n_ids; i++) {
        const int32_t id = map->ids[i];
        if (id < 0)
            return grq_fail(err, GRQ_E_DATA, "%s: raw id %" PRIu32 " maps to %" PRId32 ", which is negative", path, i,
                            id);
        if ((uint32_t)id > map->n_classes)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: raw id %" PRIu32 " maps to %" PRId32 " before anything maps to %" PRIu32
                            "; classes are numbered by first appearance",
                            path, i, id, map->n_classes);
        map->n_classes += (uint32_t)id == map->n_classes;
    }
    return GRQ_OK;
}

static grq_status check_expected(const grq_tokenmap *map, const char *path, uint64_t n_ids, uint64_t n_classes,
                                 const char *sha256, grq_error *err)
{
    if (n_ids && n_ids != map->n_ids)
        return grq_fail(err, GRQ_E_DATA, "%s: maps %" PRIu32 " ids; %" PRIu64 " are expected", path, map->n_ids, n_ids);
    if (n_classes && n_classes != map->n_classes)
        return grq_fail(err, GRQ_E_DATA, "%s: has %" PRIu32 " classes; %" PRIu64 " are expected", path, map->n_classes,
                        n_classes);
    if (sha256 && strcasecmp(sha256, map->sha256) != 0)
        return grq_fail(err, GRQ_E_DATA, "%s: SHA-256 is %s; %s is expected", path, map->sha256, sha256);
    return GRQ_OK;
}

static grq_status read_ids(grq_tokenmap *map, const char *path, grq_error *err)
{
    char *bytes;
    size_t n_bytes;
    const grq_status st = grq_file_read(path, (size_t)GRQ_TOKENMAP_MAX_IDS * sizeof *map->ids, &bytes, &n_bytes, err);
    if (st != GRQ_OK) return st;
    map->ids = (int32_t *)bytes; /* malloc's alignment suits any type */
    if (n_bytes == 0 || n_bytes % sizeof *map->ids)
        return grq_fail(err, GRQ_E_DATA, "%s: %zu bytes are no list of 32-bit ids", path, n_bytes);
    map->n_ids = (uint32_t)(n_bytes / sizeof *map->ids);
    return GRQ_OK;
}

static grq_status add_digest(grq_tokenmap *map, grq_error *err)
{
    return grq_sha256(map->ids, map->n_ids * sizeof *map->ids, map->sha256, err);
}

grq_status grq_tokenmap_open(const char *path, uint64_t expected_n_ids, uint64_t expected_n_classes,
                             const char *expected_sha256, grq_tokenmap **out, grq_error *err)
{
    *out = NULL;
    grq_tokenmap *map = calloc(1, sizeof *map);
    if (!map) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory to open it", path);
    grq_status st = read_ids(map, path, err);
    if (st == GRQ_OK) st = count_classes(map, path, err);
    if (st == GRQ_OK) st = add_digest(map, err);
    if (st == GRQ_OK) st = check_expected(map, path, expected_n_ids, expected_n_classes, expected_sha256, err);
    if (st == GRQ_OK) *out = map;
    else grq_tokenmap_close(map);
    return st;
}

grq_status grq_tokenmap_save(const grq_tokenmap *map, const char *path, grq_error *err)
{
    grq_outfile *file;
    const grq_status st = grq_outfile_open(path, &file, err);
    if (st != GRQ_OK) return st;
    fwrite(map->ids, sizeof *map->ids, map->n_ids, grq_outfile_stream(file)); /* commit reports a short write */
    return grq_outfile_commit(file, err);
}

void grq_tokenmap_close(grq_tokenmap *map)
{
    if (!map) return;
    for (uint32_t i = 0; map->keys && i < map->n_classes; i++) free(map->keys[i].bytes);
    free(map->keys);
    free(map->ids);
    free(map);
}

/* ---- building --------------------------------------------------------------------------------------------------- */

static int compare_bytes(const token_key *x, const token_key *y)
{
    const int order = memcmp(x->bytes, y->bytes, x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes);
    return order ? order : (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* Equal keys stand together, by ascending id. */
static int compare_keys(const void *a, const void *b)
{
    const token_key *const x = a, *const y = b;
    const int order = compare_bytes(x, y);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static grq_status make_keys(const grq_tokenizer_json *file, token_key *keys, uint32_t n, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (uint32_t id = 0; id < n && st == GRQ_OK; id++) {
        const grq_token *const token = grq_tokenizer_json_at(file, id);
        keys[id].id = id;
        st = grq_token_key(token->bytes, token->n_bytes, token->spelling, &keys[id].bytes, &keys[id].n_bytes, err);
        if (st != GRQ_OK) st = grq_fail_prefix(err, st, "id %" PRIu32 ", \"%s\"", id, token->spelling);
    }
    return st;
}

/* keys (n) sorted. Every id first gets the smallest id of its class; then the classes are numbered by that. */
static void number_classes(grq_tokenmap *map, const token_key *keys, uint32_t n)
{
    for (uint32_t i = 0, head = 0; i < n; i++) {
        if (compare_bytes(&keys[head], &keys[i]) != 0) head = i;
        map->ids[keys[i].id] = (int32_t)keys[head].id;
    }
    for (uint32_t id = 0; id < map->n_ids; id++) {
        const bool first = id >= n || map->ids[id] == (int32_t)id;
        map->ids[id] = first ? (int32_t)map->n_classes++ : map->ids[map->ids[id]];
    }
}

/* The classes take over the keys of their tokens, one each. */
static grq_status keep_keys(grq_tokenmap *map, token_key *keys, uint32_t n, grq_error *err)
{
    map->keys = calloc(map->n_classes, sizeof *map->keys);
    if (!map->keys) return grq_fail(err, GRQ_E_NOMEM, "no memory for the keys of %" PRIu32 " classes", map->n_classes);
    for (uint32_t i = 0; i < n; i++) {
        token_key *const of_class = &map->keys[map->ids[keys[i].id]];
        if (of_class->bytes) continue;
        *of_class = keys[i];
        keys[i].bytes = NULL;
    }
    return GRQ_OK;
}

static grq_status build(const grq_tokenizer_json *file, grq_tokenmap *map, grq_error *err)
{
    const uint32_t n = map->n_ids - map->n_reserved;
    map->ids = malloc(map->n_ids * sizeof *map->ids);
    token_key *const keys = calloc(n, sizeof *keys);
    grq_status st = map->ids && keys ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for %" PRIu32 " ids", map->n_ids);
    if (st == GRQ_OK) st = make_keys(file, keys, n, err);
    if (st == GRQ_OK) {
        qsort(keys, n, sizeof *keys, compare_keys);
        number_classes(map, keys, n);
        st = keep_keys(map, keys, n, err);
    }
    for (uint32_t i = 0; keys && i < n; i++) free(keys[i].bytes);
    free(keys);
    return st;
}

grq_status grq_tokenmap_build(const char *tokenizer_json, uint64_t n_ids, grq_tokenmap **out, grq_error *err)
{
    *out = NULL;
    if (n_ids > GRQ_TOKENMAP_MAX_IDS)
        return grq_fail(err, GRQ_E_USAGE, "%" PRIu64 " ids; at most %d are supported", n_ids, GRQ_TOKENMAP_MAX_IDS);
    grq_tokenizer_json *file;
    grq_status st = grq_tokenizer_json_open(tokenizer_json, &file, err);
    if (st != GRQ_OK) return st;
    const uint32_t n = grq_tokenizer_json_count(file);
    grq_tokenmap *map = calloc(1, sizeof *map);
    if (!map) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a map");
    else if (n_ids && n_ids < n)
        st = grq_fail(err, GRQ_E_USAGE, "has %" PRIu32 " ids, more than the %" PRIu64 " asked for", n, n_ids);
    if (st == GRQ_OK) {
        map->n_ids = n_ids ? (uint32_t)n_ids : n;
        map->n_reserved = map->n_ids - n;
        st = build(file, map, err);
    }
    if (st == GRQ_OK) st = add_digest(map, err);
    grq_tokenizer_json_close(file);
    if (st == GRQ_OK) {
        *out = map;
        return GRQ_OK;
    }
    grq_tokenmap_close(map);
    return grq_fail_prefix(err, st, "%s", tokenizer_json);
}

/* ---- using it --------------------------------------------------------------------------------------------------- */

uint32_t grq_tokenmap_n_ids(const grq_tokenmap *map)
{
    return map->n_ids;
}

uint32_t grq_tokenmap_n_reserved(const grq_tokenmap *map)
{
    return map->n_reserved;
}

uint32_t grq_tokenmap_n_classes(const grq_tokenmap *map)
{
    return map->n_classes;
}

const int32_t *grq_tokenmap_ids(const grq_tokenmap *map)
{
    return map->ids;
}

const char *grq_tokenmap_sha256(const grq_tokenmap *map)
{
    return map->sha256;
}

const char *grq_tokenmap_key(const grq_tokenmap *map, int32_t class_id, size_t *n_bytes)
{
    const bool known = map->keys && class_id >= 0 && (uint32_t)class_id < map->n_classes;
    *n_bytes = known ? map->keys[class_id].n_bytes : 0;
    return known ? map->keys[class_id].bytes : NULL;
}

grq_status grq_tokenmap_apply(const grq_tokenmap *map, int32_t dead_id, const int32_t *raw, size_t n,
                              int32_t *compressed, grq_error *err)
{
    for (size_t i = 0; i < n; i++)
        if ((uint32_t)raw[i] >= map->n_ids) /* a negative one too: a map ends far below 2^31 */
            return grq_fail(err, GRQ_E_DATA,
                            "position %zu: raw id %" PRId32 " is not among the map's ids, 0 to %" PRIu32, i, raw[i],
                            map->n_ids - 1);
    for (size_t i = 0; i < n; i++) compressed[i] = raw[i] == dead_id ? GRQ_DEAD : map->ids[raw[i]];
    return GRQ_OK;
}
