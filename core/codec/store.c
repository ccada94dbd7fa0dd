/* Coded tables as files: safetensors with one code plane and one side plane per stage (docs/format.md). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "layout.h"

grq_status grq_codes_save(const grq_codes *c, const char *path, grq_error *err)
{
    grq_code_layout layout;
    grq_code_metadata metadata;
    grq_code_layout_make(c, &layout);
    const grq_status st = grq_code_metadata_make(c, &metadata, err);
    return st == GRQ_OK ? grq_safetensors_write(path, layout.tensors, layout.n, metadata.items, metadata.n, err) : st;
}

/* ---- reading ---- */

grq_status grq_metadata_text(const grq_safetensors *file, const char *key, const char **out, grq_error *err)
{
    *out = grq_safetensors_metadata(file, key);
    if (*out) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "%s: no metadata \"%s\": not a coded table of gaterq", grq_safetensors_path(file),
                    key);
}

grq_status grq_metadata_number(const grq_safetensors *file, const char *key, int64_t min, int64_t max, int64_t *out,
                               grq_error *err)
{
    const char *text;
    char *end;
    const grq_status st = grq_metadata_text(file, key, &text, err);
    if (st != GRQ_OK) return st;
    errno = 0;
    *out = strtoll(text, &end, 10);
    const char first = text[*text == '-'];
    if (first < '0' || first > '9' || *end || errno || *out < min || *out > max)
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"%s\" is \"%.60s\", not %" PRId64 " to %" PRId64,
                        grq_safetensors_path(file), key, text, min, max);
    return GRQ_OK;
}

/* Of a table that does not fit in memory only the first rows: opening it must not read all of it. gaterq verify does.
 */
enum { CHECKED_ROWS = 1 << 24 };

static grq_status check_sides(const grq_codes *c, const char *path, grq_error *err)
{
    for (uint64_t r = 0; r < c->n_rows && r < CHECKED_ROWS; r++) {
        uint16_t side[GRQ_MAX_STAGES];
        uint32_t stage;
        for (uint32_t k = 0; k < c->n_stages; k++) side[k] = grq_side_word(c, k, r);
        const char *const fault = c->reader.side_fault(&c->reader, side, c->n_stages, &stage);
        if (fault)
            return grq_fail(err, GRQ_E_DATA, "%s: stage%u.%s, row %" PRIu64 " is 0x%04X: %s", path, stage + 1,
                            c->encoder->side_words ? "side" : "scale", r, side[stage], fault);
    }
    return GRQ_OK;
}

static const char PADDING[] = ".pad";

static bool is_padding(const char *name)
{
    const size_t n = strlen(name), n_end = sizeof PADDING - 1;
    return n > n_end && !strcmp(name + n - n_end, PADDING);
}

static bool all_zero(const uint8_t *bytes, uint64_t n)
{
    uint64_t i = 0;
    while (i < n && bytes[i] == 0) i++;
    return i == n;
}

/* A tensor of the layout, or padding behind one; others may need padding where we need none. */
static bool belongs(const grq_code_layout *layout, const grq_tensor *t)
{
    const bool padding = is_padding(t->name);
    const size_t n_name = strlen(t->name) - (padding ? sizeof PADDING - 1 : 0);
    for (size_t i = 0; i < layout->n; i++) {
        const char *const name = layout->tensors[i].name;
        if (strlen(name) != n_name || strncmp(name, t->name, n_name)) continue;
        return !padding || (t->dtype == GRQ_U8 && t->n_bytes < GRQ_PLANE_ALIGN && all_zero(t->data, t->n_bytes));
    }
    return false;
}

static grq_status map_planes(grq_codes *c, const grq_safetensors *file, grq_error *err)
{
    grq_code_layout layout;
    const grq_tensor *mapped[GRQ_MAX_CODE_TENSORS] = { NULL };
    grq_status st = GRQ_OK;
    grq_code_layout_make(c, &layout);
    for (size_t i = 0; i < grq_safetensors_count(file); i++)
        if (!belongs(&layout, grq_safetensors_at(file, i)))
            return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is no plane of %u stage%s, nor padding",
                            grq_safetensors_path(file), grq_safetensors_at(file, i)->name, c->n_stages,
                            c->n_stages == 1 ? "" : "s");
    for (size_t i = 0; st == GRQ_OK && i < layout.n; i++) {
        const grq_tensor *const t = &layout.tensors[i];
        if (!is_padding(t->name)) st = grq_safetensors_get(file, t->name, t->dtype, t->rank, t->shape, &mapped[i], err);
    }
    if (st != GRQ_OK) return st;
    for (uint32_t k = 0; k < c->n_stages; k++) {
        c->code[k] = mapped[layout.code[k]]->data;
        c->side[k] = mapped[layout.side[k]]->data;
    }
    c->coded_digests = mapped[layout.coded_digests]->data;
    c->source_digests = mapped[layout.source_digests]->data;
    return check_sides(c, grq_safetensors_path(file), err);
}

/* Files without rotation do not speak of it. */
static grq_status read_transform(const grq_safetensors *file, grq_codes_transform *out, grq_error *err)
{
    const char *const rotation = grq_safetensors_metadata(file, "rotation");
    int64_t exp_tab;
    *out = (grq_codes_transform){ .rotate = rotation != NULL };
    grq_status st = grq_metadata_number(file, "exp_tab", -GRQ_MAX_EXP_TAB, GRQ_MAX_EXP_TAB, &exp_tab, err);
    if (st != GRQ_OK) return st;
    out->exp_tab = (int32_t)exp_tab;
    if (!rotation) return GRQ_OK;
    if (strcmp(rotation, "hadamard"))
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"rotation\" is \"%.40s\"; known: hadamard",
                        grq_safetensors_path(file), rotation);
    const char *text;
    char *end;
    st = grq_metadata_text(file, "rotation_seed", &text, err);
    if (st != GRQ_OK) return st;
    errno = 0;
    out->rotation_seed = strtoull(text, &end, 10); /* all 64 bits */
    if (*text < '0' || *text > '9' || *end || errno)
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"rotation_seed\" is \"%.40s\", not a whole number",
                        grq_safetensors_path(file), text);
    return GRQ_OK;
}

static grq_status read_details(grq_codes *c, const grq_safetensors *file, grq_error *err)
{
    if (c->encoder->kind == GRQ_KIND_TCQ) return grq_tcq_configure(c, file, err);
    if (c->encoder->kind == GRQ_KIND_PQ) return grq_pq_configure(c, file, err);
    return GRQ_OK;
}

static grq_status read_digest(const grq_safetensors *file, const char **out, grq_error *err)
{
    const grq_status st = grq_metadata_text(file, "digest", out, err);
    if (st != GRQ_OK) return st;
    if (strlen(*out) == GRQ_SHA256_HEX - 1 && strspn(*out, "0123456789abcdef") == GRQ_SHA256_HEX - 1) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "%s: metadata \"digest\" is \"%.80s\", not 64 hexadecimal digits",
                    grq_safetensors_path(file), *out);
}

/* Files of whole tables do not say where they lie. */
static grq_status read_place(grq_codes *c, const grq_safetensors *file, grq_error *err)
{
    int64_t first, rows;
    if (!grq_safetensors_metadata(file, "first_row") && !grq_safetensors_metadata(file, "table_rows")) return GRQ_OK;
    grq_status st = grq_metadata_number(file, "table_rows", (int64_t)c->n_rows, INT64_MAX / 65536, &rows, err);
    if (st == GRQ_OK) st = grq_metadata_number(file, "first_row", 0, rows - (int64_t)c->n_rows, &first, err);
    if (st != GRQ_OK) return st;
    c->first_row = (uint64_t)first;
    c->table_rows = (uint64_t)rows;
    return GRQ_OK;
}

/* What the metadata says, into an object without planes. */
static grq_status read_metadata(const grq_safetensors *file, grq_codes **out, grq_error *err)
{
    const char *format, *name, *digest;
    const grq_encoder *encoder;
    grq_codes_transform transform;
    int64_t rows, dim, stages, layer, block;
    grq_codes_origin origin;
    grq_status st = grq_metadata_text(file, "format", &format, err);
    if (st == GRQ_OK && strcmp(format, GRQ_CODES_FORMAT))
        st = grq_fail(err, GRQ_E_DATA,
                      "%s: format \"%.60s\"; this program reads " GRQ_CODES_FORMAT ": encode the table again",
                      grq_safetensors_path(file), format);
    if (st == GRQ_OK) st = grq_metadata_text(file, "encoder", &name, err);
    if (st == GRQ_OK && grq_encoder_find(name, &encoder, err) != GRQ_OK) {
        st = GRQ_E_DATA;
        grq_fail(err, st, "%s: %s", grq_safetensors_path(file), err ? err->message : "");
    }
    if (st == GRQ_OK) st = read_transform(file, &transform, err);
    if (st == GRQ_OK) st = grq_metadata_number(file, "rows", 1, INT64_MAX / 65536, &rows, err);
    if (st == GRQ_OK) st = grq_metadata_number(file, "row_dim", 1, 65536, &dim, err);
    if (st == GRQ_OK) st = grq_metadata_number(file, "stages", 1, GRQ_MAX_STAGES, &stages, err);
    if (st == GRQ_OK) st = grq_metadata_number(file, "layer", 0, UINT32_MAX, &layer, err);
    if (st == GRQ_OK) st = grq_metadata_text(file, "family", &origin.family, err);
    if (st == GRQ_OK) st = grq_metadata_text(file, "source", &origin.source, err);
    if (st == GRQ_OK) st = grq_metadata_text(file, "source_digest", &origin.source_digest, err);
    if (st == GRQ_OK)
        st = grq_metadata_number(file, "block_rows", GRQ_CODE_BLOCK_ROWS, GRQ_CODE_BLOCK_ROWS, &block, err);
    if (st == GRQ_OK) st = read_digest(file, &digest, err);
    if (st != GRQ_OK) return st;
    origin.layer = (uint32_t)layer;
    st = grq_codes_new(encoder, &transform, (uint64_t)rows, (uint32_t)dim, (uint32_t)stages, &origin, out, err);
    if (st != GRQ_OK) grq_fail_prefix(err, st, "%s", grq_safetensors_path(file));
    if (st == GRQ_OK) memcpy((*out)->digest, digest, sizeof(*out)->digest);
    if (st == GRQ_OK) st = read_place(*out, file, err);
    return st == GRQ_OK ? read_details(*out, file, err) : st;
}

grq_status grq_codes_open_part(const char *path, grq_codes **out, grq_error *err)
{
    grq_safetensors *file = NULL;
    grq_codes *c = NULL;
    *out = NULL;
    grq_status st = grq_safetensors_open(path, &file, err);
    if (st != GRQ_OK) return st;
    st = read_metadata(file, &c, err);
    if (st == GRQ_OK) st = map_planes(c, file, err);
    if (st != GRQ_OK) {
        grq_codes_close(c);
        grq_safetensors_close(file);
        return st;
    }
    c->file = file;
    *out = c;
    return GRQ_OK;
}

grq_status grq_codes_open(const char *path, grq_codes **out, grq_error *err)
{
    const grq_status st = grq_codes_open_part(path, out, err);
    if (st != GRQ_OK || (*out)->n_rows == (*out)->table_rows) return st;
    grq_fail(err, GRQ_E_DATA,
             "%s: holds rows %" PRIu64 " to %" PRIu64 " of a table of %" PRIu64
             "; join it with the others first: gaterq "
             "encode --join",
             path, (*out)->first_row, (*out)->first_row + (*out)->n_rows - 1, (*out)->table_rows);
    grq_codes_close(*out);
    *out = NULL;
    return GRQ_E_DATA;
}
