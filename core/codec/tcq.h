/* Trellis codes behind the encoder interface. Source: specs/encoders.md sections 4 to 6. */
#ifndef GATERQ_TCQ_H
#define GATERQ_TCQ_H

#include <string.h>

#include "cpu/viterbi.h"
#include "gaterq/codec.h"
#include "shared/tcq_code.h"

/* What an encoder of this kind is made of; grq_encoder.detail points to one. */
typedef struct {
    const grq_tcq_code *code;
    char format;                       /* 'A': tail-biting, FP16 scale; 'B': free end, small scales, in one side word */
    bool rms;                          /* A: the scale is the root mean square (the paper), not the least-squares one */
    uint32_t warm_up;                  /* A: warm-up in halves of a row: 1 is W = n/2, 2 is W = n */
    uint32_t short_row, short_warm_up; /* rows of fewer values than short_row take this one */
} grq_tcq_coding;

extern const grq_tcq_code grq_tcq_t12, grq_tcq_t10, grq_tcq_t8;
const grq_tcq_code *grq_tcq_code_find(const char *id); /* NULL when unknown */

uint32_t grq_tcq_warm_up(const grq_tcq_coding *coding, uint32_t row_dim); /* W */

/* The functions of grq_encoder, for any detail; row_dim is a multiple of 32. */
grq_status grq_tcq_encode_row(const grq_encoder *encoder, const float *row, uint32_t row_dim, uint32_t n_stages,
                              uint8_t *codes, uint16_t *side, grq_error *err);
void grq_tcq_decode_row(const grq_encoder *encoder, const uint8_t *const *codes, const uint16_t *side, uint32_t row_dim,
                        uint32_t depth, float *out);
const char *grq_tcq_side_fault(const grq_encoder *encoder, const uint16_t *side, uint32_t n_stages, uint32_t *stage);

/* ---- one stage (tcq_stage.c), and what the formats make of it ---- */

/* A row in coding. All arrays (n) but codes. */
typedef struct {
    const grq_tcq_coding *coding;
    uint32_t n;
    grq_viterbi search;
    float *left;   /* what the stages so far left over */
    int16_t *q;    /* the same in units of 1/64 of the search scale */
    uint8_t *bits; /* a byte each, and the tail behind the row */
    int8_t *c;     /* the integers of the stage */
} grq_tcq_row;

/* The outcome of a stage. A zero stage has scale 0, side word 0 and code bytes 0. */
typedef struct {
    uint16_t side;
    double scale; /* as the side word says it */
} grq_tcq_stage;

grq_status grq_tcq_stage_a(grq_tcq_row *row, uint32_t stage, uint8_t *code, grq_tcq_stage *out, grq_error *err);
grq_status grq_tcq_stage_b(grq_tcq_row *row, uint32_t stage, double last_scale, uint8_t *code, grq_tcq_stage *out,
                           grq_error *err);

/* Format A: the bits that follow a row's last are its first. */
static inline uint32_t grq_tcq_wrapped(const uint8_t *code)
{
    uint32_t tail;
    memcpy(&tail, code, sizeof tail);
    return tail;
}

double grq_tcq_rms(const grq_tcq_row *row); /* of what is left; 0 when there is nothing */
/* Fills row->q. False when the scale is so small that nothing can be coded. */
bool grq_tcq_quantise(grq_tcq_row *row, double search_scale);
void grq_tcq_pack(const grq_tcq_row *row, uint8_t *code); /* row->bits as code bytes */
/* Fills row->c from the code; `tail` holds the bits that follow its last. */
void grq_tcq_take_values(grq_tcq_row *row, const uint8_t *code, uint32_t tail);
double grq_tcq_least_squares(const grq_tcq_row *row); /* scale of row->c, in values; 0 when there is none */

/* Format B's side words. */
double grq_tcq_u8_scale(uint8_t byte);
int grq_tcq_u8_encode(double scale); /* 0: zero; 256: too large */
/* S_k of each stage (0: zero) and the bits that follow each code. False at words that no encoder writes; *stage is
 * then the first such. */
bool grq_tcq_b_sides(const grq_tcq_code *code, const uint16_t *side, uint32_t n_stages, double *scale, uint32_t *tail,
                     uint32_t *stage);

#endif
