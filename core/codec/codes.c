/* A coded table in memory: shape, planes, decoding, distortion. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec_internal.h"
#include "shared/number.h"

enum { F16_INFINITY = 0x7C00 };

/* ---- encoders by name ---- */

static const grq_encoder *const encoders[] = {
    &grq_encoder_integer, &grq_encoder_integer_rms, &grq_encoder_tcq, &grq_encoder_tcq_b,
    &grq_encoder_tcq_t10, &grq_encoder_tcq_t8,      &grq_encoder_pq,
};

const grq_encoder *grq_encoder_at(size_t index)
{
    return index < sizeof encoders / sizeof *encoders ? encoders[index] : NULL;
}

grq_status grq_encoder_find(const char *name, const grq_encoder **out, grq_error *err)
{
    char known[256] = "";
    for (size_t i = 0; grq_encoder_at(i); i++) {
        if (!strcmp(encoders[i]->name, name)) {
            *out = encoders[i];
            return GRQ_OK;
        }
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", encoders[i]->name);
    }
    return grq_fail(err, GRQ_E_USAGE, "encoder \"%s\" is not known; known: %s", name, known);
}

size_t grq_code_bytes(uint32_t row_dim)
{
    return ((size_t)row_dim + 7) / 8;
}

double grq_code_bits_per_value(uint32_t row_dim)
{
    return 1 + 16.0 / row_dim;
}

uint32_t grq_first_not_finite(const float *row, uint32_t row_dim)
{
    uint32_t i = 0;
    while (i < row_dim && isfinite(row[i])) i++;
    return i;
}

grq_status grq_check_finite(const float *row, uint32_t row_dim, grq_error *err)
{
    const uint32_t bad = grq_first_not_finite(row, row_dim);
    if (bad == row_dim) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "column %u is %g; only finite values can be coded", bad, (double)row[bad]);
}

grq_status grq_f16_scale(double scale, uint32_t stage, uint16_t *out, grq_error *err)
{
    *out = grq_f16_from_f32((float)scale);
    if (*out < F16_INFINITY) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA,
                    "the scale of stage %u is %g, beyond FP16 (65504): scale out of range, set exp_tab", stage + 1,
                    scale);
}

const char *grq_f16_side_fault(const grq_encoder *encoder, const uint16_t *side, uint32_t n_stages, uint32_t *stage)
{
    (void)encoder;
    for (*stage = 0; *stage < n_stages; ++*stage)
        if (side[*stage] >= F16_INFINITY) return "negative, infinite or NaN";
    return NULL;
}

/* ---- the object ---- */

static const grq_codes_transform AS_IT_IS = { 0 };

grq_status grq_codes_new(const grq_encoder *encoder, const grq_codes_transform *transform, uint64_t n_rows,
                         uint32_t row_dim, uint32_t n_stages, const grq_codes_origin *origin, grq_codes **out,
                         grq_error *err)
{
    if (!transform) transform = &AS_IT_IS;
    *out = NULL;
    if (n_stages < 1 || n_stages > GRQ_MAX_STAGES)
        return grq_fail(err, GRQ_E_USAGE, "%u stages; 1 to %d are possible", n_stages, GRQ_MAX_STAGES);
    if (n_rows < 1 || n_rows > INT64_MAX / 65536)
        return grq_fail(err, GRQ_E_DATA, "a table of %" PRIu64 " rows cannot be coded", n_rows);
    if (row_dim < 1 || row_dim > 65536 || row_dim % encoder->dim_multiple)
        return grq_fail(err, GRQ_E_DATA, "rows of %u values: encoder %s needs a multiple of %u, at most 65536", row_dim,
                        encoder->name, encoder->dim_multiple);
    if (transform->exp_tab < -GRQ_MAX_EXP_TAB || transform->exp_tab > GRQ_MAX_EXP_TAB)
        return grq_fail(err, GRQ_E_USAGE, "exp_tab %d; -%d to %d are possible", transform->exp_tab, GRQ_MAX_EXP_TAB,
                        GRQ_MAX_EXP_TAB);
    if (transform->rotate && row_dim % 32)
        return grq_fail(err, GRQ_E_DATA, "rows of %u values: rotation needs a multiple of 32", row_dim);
    grq_codes *c = calloc(1, sizeof *c);
    if (!c) return grq_fail(err, GRQ_E_NOMEM, "no memory for codes");
    *c = (grq_codes){ .encoder = encoder,
                      .reader = *encoder,
                      .transform = *transform,
                      .n_rows = n_rows,
                      .table_rows = n_rows,
                      .row_dim = row_dim,
                      .n_stages = n_stages,
                      .code_bytes = grq_code_bytes(row_dim) };
    /* What outlives an encoder of the caller's own is the encoder of its name. */
    if (grq_encoder_find(encoder->name, &c->encoder, NULL) != GRQ_OK) c->encoder = encoder;
    c->origin.family = strdup(origin && origin->family ? origin->family : "");
    c->origin.layer = origin ? origin->layer : 0;
    c->origin.source = strdup(origin && origin->source ? origin->source : "");
    c->origin.source_digest = strdup(origin && origin->source_digest ? origin->source_digest : "");
    if (!c->origin.family || !c->origin.source || !c->origin.source_digest) {
        grq_codes_close(c);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for codes");
    }
    *out = c;
    return GRQ_OK;
}

void grq_codes_close(grq_codes *c)
{
    if (!c) return;
    for (size_t i = 0; i < sizeof c->owned / sizeof *c->owned; i++) free(c->owned[i]);
    grq_safetensors_close(c->file);
    free(c->book);
    free((char *)c->origin.family);
    free((char *)c->origin.source);
    free((char *)c->origin.source_digest);
    free(c);
}

const grq_encoder *grq_codes_encoder(const grq_codes *c)
{
    return c->encoder;
}

uint64_t grq_codes_n_rows(const grq_codes *c)
{
    return c->n_rows;
}

uint32_t grq_codes_row_dim(const grq_codes *c)
{
    return c->row_dim;
}

uint32_t grq_codes_n_stages(const grq_codes *c)
{
    return c->n_stages;
}

const grq_codes_origin *grq_codes_origin_of(const grq_codes *c)
{
    return &c->origin;
}

const char *grq_codes_digest(const grq_codes *c)
{
    return c->digest;
}

const grq_codes_transform *grq_codes_transform_of(const grq_codes *c)
{
    return &c->transform;
}

void grq_codes_decode(const grq_codes *c, uint64_t row, uint32_t depth, float *out)
{
    const uint8_t *codes[GRQ_MAX_STAGES];
    uint16_t side[GRQ_MAX_STAGES];
    for (uint32_t k = 0; k < depth; k++) {
        codes[k] = c->code[k] + row * c->code_bytes;
        side[k] = grq_side_word(c, k, row);
    }
    c->reader.decode_row(&c->reader, codes, side, c->row_dim, depth, out);
    if (c->transform.rotate) grq_unrotate(out, c->row_dim, c->transform.rotation_seed);
    if (c->transform.exp_tab) grq_scale_by_power(out, c->row_dim, c->transform.exp_tab);
}

void grq_codes_prefetch(const grq_codes *c, uint64_t row, uint32_t depth)
{
    for (uint32_t k = 0; k < depth; k++) {
        const uint8_t *const code = c->code[k] + row * c->code_bytes;
        __builtin_prefetch(code);
        __builtin_prefetch(code + c->code_bytes - 1);
        __builtin_prefetch(c->side[k] + row * sizeof(uint16_t));
    }
}
