/* The trellis code in a file's metadata. A reader decodes by what the file says, not by what the code's name means. */
#include <stdio.h>
#include <stdlib.h>

#include "codec_internal.h"

static const int MAX_LEVEL = 127;

void grq_tcq_describe(const grq_encoder *encoder, uint32_t row_dim, grq_details *details)
{
    const grq_tcq_coding *const coding = encoder->detail;
    const grq_tcq_code *const code = coding->code;
    char masks[GRQ_DETAIL_BYTES] = "", levels[GRQ_DETAIL_BYTES] = "";
    for (uint32_t j = 0; j < code->n_masks; j++)
        snprintf(masks + strlen(masks), sizeof masks - strlen(masks), "%s0x%03X", j ? " " : "", code->mask[j]);
    for (uint32_t j = 0; j < 1u << code->n_masks; j++)
        snprintf(levels + strlen(levels), sizeof levels - strlen(levels), "%s%d", j ? " " : "", code->level[j]);
    grq_details_add(details, "tcq.format", "%c", coding->format);
    grq_details_add(details, "tcq.code", "%s", code->id);
    grq_details_add(details, "tcq.window_bits", "%u", code->n_bits);
    grq_details_add(details, "tcq.masks", "%s", masks);
    grq_details_add(details, "tcq.levels", "%s", levels);
    if (coding->format == 'A') grq_details_add(details, "tcq.warm_up", "%u", grq_tcq_warm_up(coding, row_dim));
    grq_details_add(details, "tcq.search_scale", "%s rms", coding->format == 'B' ? "0.88" : coding->rms ? "1" : "0.87");
}

/* Whole numbers between single blanks, and nothing else. Returns how many, or 0. */
static uint32_t parse_list(const char *text, int base, long min, long max, uint32_t max_n, long *out)
{
    uint32_t n = 0;
    for (const char *p = text;; p++) {
        char *end;
        if (n == max_n || *p == ' ' || *p == '+') return 0;
        out[n] = strtol(p, &end, base);
        if (end == p || out[n] < min || out[n] > max) return 0;
        n++;
        if (*end == '\0') return n;
        if (*end != ' ') return 0;
        p = end;
    }
}

static grq_status read_code(const grq_safetensors *file, grq_tcq_code *code, grq_error *err)
{
    const char *const path = grq_safetensors_path(file), *masks, *levels, *id;
    long number[GRQ_TCQ_MAX_LEVELS];
    int64_t n_bits;
    grq_status st = grq_metadata_text(file, "tcq.code", &id, err);
    if (st == GRQ_OK) st = grq_metadata_number(file, "tcq.window_bits", 2, GRQ_TCQ_MAX_BITS, &n_bits, err);
    if (st == GRQ_OK) st = grq_metadata_text(file, "tcq.masks", &masks, err);
    if (st == GRQ_OK) st = grq_metadata_text(file, "tcq.levels", &levels, err);
    if (st != GRQ_OK) return st;
    const grq_tcq_code *const known = grq_tcq_code_find(id);
    *code = (grq_tcq_code){ .id = known ? known->id : "custom", .n_bits = (uint32_t)n_bits };
    code->n_masks = parse_list(masks, 16, 1, (1L << n_bits) - 1, GRQ_TCQ_MAX_MASKS, number);
    if (code->n_masks == 0)
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"tcq.masks\" is \"%.60s\", not 1 to %d masks of %u bits", path,
                        masks, GRQ_TCQ_MAX_MASKS, code->n_bits);
    for (uint32_t j = 0; j < code->n_masks; j++) code->mask[j] = (uint16_t)number[j];
    const uint32_t n_levels = 1u << code->n_masks;
    if (parse_list(levels, 10, -MAX_LEVEL, MAX_LEVEL, n_levels, number) != n_levels)
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"tcq.levels\" is \"%.80s\", not %u numbers of -%d to %d", path,
                        levels, n_levels, MAX_LEVEL, MAX_LEVEL);
    for (uint32_t j = 0; j < n_levels; j++) code->level[j] = (int8_t)number[j];
    if (known && (known->n_bits != code->n_bits || known->n_masks != code->n_masks ||
                  memcmp(known->mask, code->mask, sizeof code->mask)))
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"tcq.masks\" are \"%.60s\" of %u bits, not those of code %s",
                        path, masks, code->n_bits, id);
    grq_tcq_code_complete(code);
    return GRQ_OK;
}

grq_status grq_tcq_configure(grq_codes *c, const grq_safetensors *file, grq_error *err)
{
    const grq_tcq_coding *const usual = c->encoder->detail;
    const char *format;
    grq_status st = grq_metadata_text(file, "tcq.format", &format, err);
    if (st == GRQ_OK) st = read_code(file, &c->tcq_code, err);
    if (st != GRQ_OK) return st;
    if (format[0] != usual->format || format[1])
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"tcq.format\" is \"%.20s\", but encoder %s writes %c",
                        grq_safetensors_path(file), format, c->encoder->name, usual->format);
    /* Format B's side words have room for 11 tail bits. */
    if (usual->format == 'B' && c->tcq_code.n_bits > 12)
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"tcq.window_bits\" is %u; format B has room for 12",
                        grq_safetensors_path(file), c->tcq_code.n_bits);
    c->coding = *usual;
    c->coding.code = &c->tcq_code;
    c->reader.detail = &c->coding;
    return GRQ_OK;
}
