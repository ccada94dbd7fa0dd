/* Coded tables as files: safetensors with one code plane and one side plane per stage (docs/format.md). */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec_internal.h"

static const char FORMAT[] = "gaterq-codes-1";

/* ---- planes ---- */

/* Every plane starts at a multiple of 64 bytes, a cache line, so that no code of 256 values crosses a sector. The
 * format allows no holes, so a short tensor of zeros fills up the plane before, where its size asks for that. */
enum { PLANE_ALIGN = 64, MAX_TENSORS = 4 * GRQ_MAX_STAGES, NAME_BYTES = 32 };

typedef struct {
    size_t n;
    grq_tensor tensors[MAX_TENSORS];
    char names[MAX_TENSORS][NAME_BYTES];
} plane_list;

static void plane_name(char name[NAME_BYTES], uint32_t stage, const char *what)
{
    snprintf(name, NAME_BYTES, "stage%u.%s", stage + 1, what);
}

static void add_tensor(plane_list *list, grq_tensor tensor, uint32_t stage, const char *what)
{
    plane_name(list->names[list->n], stage, what);
    tensor.name = list->names[list->n];
    list->tensors[list->n++] = tensor;
}

static void add_padding(plane_list *list, uint32_t stage, const char *what)
{
    static const uint8_t zeros[PLANE_ALIGN];
    const uint64_t n = (PLANE_ALIGN - list->tensors[list->n - 1].n_bytes % PLANE_ALIGN) % PLANE_ALIGN;
    if (n)
        add_tensor(list, (grq_tensor){ .dtype = GRQ_U8, .rank = 1, .shape = { n }, .n_bytes = n, .data = zeros }, stage,
                   what);
}

/* Code planes first: for usual row widths and numbers of rows they need no padding. */
static void list_planes(const grq_codes *c, plane_list *list)
{
    list->n = 0;
    for (uint32_t k = 0; k < c->n_stages; k++) {
        add_tensor(list,
                   (grq_tensor){ .dtype = GRQ_U8,
                                 .rank = 2,
                                 .shape = { c->n_rows, c->code_bytes },
                                 .n_bytes = c->n_rows * c->code_bytes,
                                 .data = c->code[k] },
                   k, "code");
        add_padding(list, k, "code.pad");
    }
    for (uint32_t k = 0; k < c->n_stages; k++) {
        add_tensor(list,
                   (grq_tensor){ .dtype = c->encoder->side_words ? GRQ_U16 : GRQ_F16,
                                 .rank = 1,
                                 .shape = { c->n_rows },
                                 .n_bytes = c->n_rows * sizeof(uint16_t),
                                 .data = c->side[k] },
                   k, c->encoder->side_words ? "side" : "scale");
        if (k + 1 < c->n_stages) add_padding(list, k, c->encoder->side_words ? "side.pad" : "scale.pad");
    }
}

/* ---- writing ---- */

enum { COMMON_METADATA = 12 }; /* and an empty one */

void grq_details_add(grq_details *details, const char *key, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    details->key[details->n] = key;
    vsnprintf(details->value[details->n++], GRQ_DETAIL_BYTES, format, arguments);
    va_end(arguments);
}

static void describe(const grq_codes *c, grq_details *details)
{
    details->n = 0;
    if (c->reader.kind == GRQ_KIND_TCQ) grq_tcq_describe(&c->reader, c->row_dim, details);
    if (c->reader.kind == GRQ_KIND_PQ) grq_pq_describe(&c->reader, details);
    if (c->transform.rotate) {
        grq_details_add(details, "rotation", "hadamard");
        grq_details_add(details, "rotation_seed", "%" PRIu64, c->transform.rotation_seed);
    }
}

grq_status grq_codes_save(const grq_codes *c, const char *path, grq_error *err)
{
    plane_list planes;
    grq_details details;
    char layer[16], rows[24], dim[16], stages[16], exp_tab[16];
    list_planes(c, &planes);
    snprintf(layer, sizeof layer, "%u", c->origin.layer);
    snprintf(rows, sizeof rows, "%" PRIu64, c->n_rows);
    snprintf(dim, sizeof dim, "%u", c->row_dim);
    snprintf(stages, sizeof stages, "%u", c->n_stages);
    snprintf(exp_tab, sizeof exp_tab, "%d", c->transform.exp_tab);
    describe(c, &details);
    grq_metadata metadata[COMMON_METADATA + GRQ_MAX_DETAILS] = {
        { "format", FORMAT },
        { "family", c->origin.family },
        { "layer", layer },
        { "encoder", c->encoder->name },
        { "scale_rule", c->encoder->scale_rule },
        { "rows", rows },
        { "row_dim", dim },
        { "stages", stages },
        { "exp_tab", exp_tab },
        { "source", c->origin.source },
        { "source_sha256", c->origin.source_sha256 },
    };
    size_t n = 0;
    while (metadata[n].key) n++;
    for (size_t i = 0; i < details.n; i++) metadata[n++] = (grq_metadata){ details.key[i], details.value[i] };
    return grq_safetensors_write(path, planes.tensors, planes.n, metadata, n, err);
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

static grq_status check_sides(const grq_codes *c, const char *path, grq_error *err)
{
    for (uint64_t r = 0; r < c->n_rows; r++) {
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

/* A plane of one of the stages, or the padding behind one. */
static bool tensor_belongs(const grq_codes *c, const grq_tensor *t)
{
    const bool words = c->encoder->side_words;
    const char *const planes[] = { "code", words ? "side" : "scale" };
    const char *const padding[] = { "code.pad", words ? "side.pad" : "scale.pad" };
    for (uint32_t k = 0; k < c->n_stages; k++)
        for (int i = 0; i < 2; i++) {
            char name[NAME_BYTES];
            plane_name(name, k, planes[i]);
            if (!strcmp(t->name, name)) return true;
            plane_name(name, k, padding[i]);
            if (strcmp(t->name, name) || t->dtype != GRQ_U8 || t->n_bytes >= PLANE_ALIGN) continue;
            const uint8_t *const bytes = t->data;
            uint64_t n_zero = 0;
            while (n_zero < t->n_bytes && bytes[n_zero] == 0) n_zero++;
            return n_zero == t->n_bytes;
        }
    return false;
}

static grq_status map_planes(grq_codes *c, const grq_safetensors *file, grq_error *err)
{
    const uint64_t code_shape[] = { c->n_rows, c->code_bytes }, side_shape[] = { c->n_rows };
    grq_status st = GRQ_OK;
    for (size_t i = 0; i < grq_safetensors_count(file); i++)
        if (!tensor_belongs(c, grq_safetensors_at(file, i)))
            return grq_fail(err, GRQ_E_DATA, "%s: tensor \"%s\" is no plane of %u stage%s, nor padding",
                            grq_safetensors_path(file), grq_safetensors_at(file, i)->name, c->n_stages,
                            c->n_stages == 1 ? "" : "s");
    for (uint32_t k = 0; st == GRQ_OK && k < c->n_stages; k++) {
        char name[NAME_BYTES];
        const grq_tensor *code, *side;
        plane_name(name, k, "code");
        st = grq_safetensors_get(file, name, GRQ_U8, 2, code_shape, &code, err);
        const bool words = c->encoder->side_words;
        plane_name(name, k, words ? "side" : "scale");
        if (st == GRQ_OK) st = grq_safetensors_get(file, name, words ? GRQ_U16 : GRQ_F16, 1, side_shape, &side, err);
        if (st != GRQ_OK) break;
        c->code[k] = code->data;
        c->side[k] = side->data;
    }
    return st == GRQ_OK ? check_sides(c, grq_safetensors_path(file), err) : st;
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
    if (c->encoder->kind == GRQ_KIND_PQ) return grq_pq_check(file, err);
    return GRQ_OK;
}

/* What the metadata says, into an object without planes. */
static grq_status read_metadata(const grq_safetensors *file, grq_codes **out, grq_error *err)
{
    const char *format, *name;
    const grq_encoder *encoder;
    grq_codes_transform transform;
    int64_t rows, dim, stages, layer;
    grq_codes_origin origin;
    grq_status st = grq_metadata_text(file, "format", &format, err);
    if (st == GRQ_OK && strcmp(format, FORMAT))
        st = grq_fail(err, GRQ_E_DATA, "%s: format \"%.60s\"; this program reads %s", grq_safetensors_path(file),
                      format, FORMAT);
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
    if (st == GRQ_OK) st = grq_metadata_text(file, "source_sha256", &origin.source_sha256, err);
    if (st != GRQ_OK) return st;
    origin.layer = (uint32_t)layer;
    st = grq_codes_new(encoder, &transform, (uint64_t)rows, (uint32_t)dim, (uint32_t)stages, &origin, out, err);
    if (st != GRQ_OK) grq_fail_prefix(err, st, "%s", grq_safetensors_path(file));
    return st == GRQ_OK ? read_details(*out, file, err) : st;
}

grq_status grq_codes_open(const char *path, grq_codes **out, grq_error *err)
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
