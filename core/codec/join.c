/* Parts of a coded table put together. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gaterq/encode.h"
#include "gaterq/file.h"
#include "partial.h"

typedef struct {
    const char *path;
    grq_codes *codes;
} part;

static int by_first_row(const void *a, const void *b)
{
    const uint64_t x = ((const part *)a)->codes->first_row, y = ((const part *)b)->codes->first_row;
    return (x > y) - (x < y);
}

static bool differs_between_parts(const char *key)
{
    static const char *const keys[] = { "rows", "first_row", "source_digest", "digest" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i])) return true;
    return false;
}

static const char *value_of(const grq_code_metadata *m, const char *key)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->items[i].key, key)) return m->items[i].value;
    return "(nothing)";
}

/* Both were coded in the same way from the same table, as far as they say. */
static grq_status check_same(const part *a, const part *b, grq_error *err)
{
    grq_code_metadata x, y;
    grq_status st = grq_code_metadata_make(a->codes, &x, err);
    if (st == GRQ_OK) st = grq_code_metadata_make(b->codes, &y, err);
    for (size_t i = 0; st == GRQ_OK && i < x.n; i++) {
        const char *const key = x.items[i].key, *const other = value_of(&y, key);
        if (!differs_between_parts(key) && strcmp(x.items[i].value, other))
            st = grq_fail(err, GRQ_E_DATA, "%s and %s are not parts of one table: %s is \"%.80s\" and \"%.80s\"",
                          a->path, b->path, key, x.items[i].value, other);
    }
    return st;
}

static grq_status check_order(const part *parts, size_t n, grq_error *err)
{
    uint64_t row = 0;
    for (size_t i = 0; i < n; i++) {
        const grq_codes *const c = parts[i].codes;
        const grq_status st = i ? check_same(&parts[0], &parts[i], err) : GRQ_OK;
        if (st != GRQ_OK) return st;
        if (c->first_row > row)
            return grq_fail(err, GRQ_E_DATA,
                            "no part holds rows %" PRIu64 " to %" PRIu64 ", which come before those of %s", row,
                            c->first_row - 1, parts[i].path);
        if (c->first_row < row)
            return grq_fail(err, GRQ_E_DATA, "%s and %s both hold row %" PRIu64, parts[i - 1].path, parts[i].path,
                            c->first_row);
        if (c->first_row % GRQ_CODE_BLOCK_ROWS)
            return grq_fail(err, GRQ_E_DATA, "%s: begins at row %" PRIu64 ", no multiple of %d", parts[i].path,
                            c->first_row, GRQ_CODE_BLOCK_ROWS);
        row += c->n_rows;
    }
    if (row != parts[0].codes->table_rows)
        return grq_fail(err, GRQ_E_DATA, "no part holds rows %" PRIu64 " to %" PRIu64 " of %" PRIu64, row,
                        parts[0].codes->table_rows - 1, parts[0].codes->table_rows);
    return GRQ_OK;
}

/* ---- copying ---- */

/* Block `block` of part p, into block `to` of the file. */
static grq_status copy_block(const part *p, uint64_t block, const grq_partial *file, grq_block_list *list, uint64_t to,
                             grq_error *err)
{
    const grq_codes *const c = p->codes;
    const uint64_t first = block * GRQ_CODE_BLOCK_ROWS, n = grq_block_rows(c->n_rows, block);
    const uint8_t *code[GRQ_MAX_STAGES], *side[GRQ_MAX_STAGES];
    for (uint32_t k = 0; k < c->n_stages; k++) {
        code[k] = c->code[k] + first * c->code_bytes;
        side[k] = c->side[k] + first * sizeof(uint16_t);
    }
    grq_status st = grq_digest_coded_rows(code, side, c->n_stages, c->code_bytes, n, list->coded[to], err);
    if (st == GRQ_OK && memcmp(list->coded[to], c->coded_digests + block * GRQ_SHA256_BYTES, GRQ_SHA256_BYTES))
        st = grq_fail(err, GRQ_E_DATA, "%s: rows %" PRIu64 " to %" PRIu64 " do not have their digest", p->path,
                      c->first_row + first, c->first_row + first + n - 1);
    memcpy(list->source[to], c->source_digests + block * GRQ_SHA256_BYTES, GRQ_SHA256_BYTES);
    return st == GRQ_OK ? grq_partial_write(file, to, code, side, err) : st;
}

static grq_status copy_parts(const part *parts, size_t n_parts, grq_partial *file, const grq_progress *progress,
                             grq_error *err)
{
    grq_block_list list;
    uint64_t to = 0, n_rows = 0;
    grq_status st = grq_block_list_new(grq_n_blocks(file->shape->n_rows), &list, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; st == GRQ_OK && i < n_parts; i++)
        for (uint64_t b = 0; st == GRQ_OK && b < grq_n_blocks(parts[i].codes->n_rows); b++) {
            st = copy_block(&parts[i], b, file, &list, to++, err);
            n_rows += grq_block_rows(parts[i].codes->n_rows, b);
            if (st == GRQ_OK) st = grq_progress_step(progress, "join", n_rows, file->shape->n_rows, "rows", NULL, err);
        }
    if (st == GRQ_OK) st = grq_partial_finish(file, &list, err);
    grq_block_list_free(&list);
    return st;
}

/* ---- the whole ---- */

static grq_status check_not_begun(const char *path, grq_error *err)
{
    char *name;
    if (asprintf(&name, "%s.journal", path) < 0) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a name", path);
    const bool begun = grq_file_exists(name);
    const grq_status st =
        begun ? grq_fail(err, GRQ_E_USAGE,
                         "%s: an encoding of this file was begun; finish it by repeating its command, or "
                         "remove %s",
                         path, name)
              : GRQ_OK;
    free(name);
    return st;
}

static grq_status join(const part *parts, size_t n_parts, const char *path, const grq_progress *progress,
                       grq_encode_result *out, grq_error *err)
{
    const grq_codes *const first = parts[0].codes;
    grq_codes *shape = NULL;
    grq_partial file;
    grq_status st = check_order(parts, n_parts, err);
    if (st == GRQ_OK) st = check_not_begun(path, err);
    if (st == GRQ_OK)
        st = grq_codes_new(first->encoder, &first->transform, first->table_rows, first->row_dim, first->n_stages,
                           &first->origin, &shape, err);
    if (st != GRQ_OK) return st;
    shape->reader = first->reader;
    st = grq_partial_open(path, shape, &file, err);
    if (st == GRQ_OK) {
        st = copy_parts(parts, n_parts, &file, progress, err);
        if (st == GRQ_OK) grq_partial_close(&file);
        else grq_partial_remove(&file);
    }
    out->complete = st == GRQ_OK;
    if (st == GRQ_OK) grq_encode_result_take(shape, out);
    grq_codes_close(shape);
    return st;
}

grq_status grq_encode_join(const char *const *paths, size_t n_parts, const char *path, const grq_progress *progress,
                           grq_encode_result *out, grq_error *err)
{
    *out = (grq_encode_result){ 0 };
    if (n_parts == 0) return grq_fail(err, GRQ_E_USAGE, "no parts to join");
    part *const parts = calloc(n_parts, sizeof *parts);
    if (!parts) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu parts", n_parts);
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < n_parts; i++) {
        parts[i].path = paths[i];
        st = grq_codes_open_part(paths[i], &parts[i].codes, err);
    }
    if (st == GRQ_OK) {
        qsort(parts, n_parts, sizeof *parts, by_first_row);
        st = join(parts, n_parts, path, progress, out, err);
    }
    for (size_t i = 0; i < n_parts; i++) grq_codes_close(parts[i].codes);
    free(parts);
    return st;
}
