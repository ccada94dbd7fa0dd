#include "gaterq/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/safetensors_internal.h"
#include "block_run.h"
#include "gaterq/rng.h"
#include "layout.h"

static void add_check(grq_verify_report *r, const char *name, bool passed, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add_check(grq_verify_report *r, const char *name, bool passed, const char *format, ...)
{
    grq_verify_check *const c = &r->checks[r->n_checks++];
    va_list arguments;
    *c = (grq_verify_check){ .name = name, .passed = passed };
    va_start(arguments, format);
    vsnprintf(c->detail, sizeof c->detail, format, arguments);
    va_end(arguments);
    r->passed = r->passed && passed;
}

/* ---- header ---- */

/* Our writer has one header for a table: any other byte in it was not written by us. The digest in it covers all that
 * the rest of it says. */
static grq_status check_header(const grq_codes *c, grq_verify_report *r, grq_error *err)
{
    static const char NAME[] = "header";
    grq_code_layout layout;
    grq_code_metadata metadata;
    char *header = NULL;
    size_t n_header, n_head;
    if (!c->file) return grq_fail(err, GRQ_E_USAGE, "these codes are in no file");
    const void *const head = grq_safetensors_head(c->file, &n_head);
    grq_code_layout_make(c, &layout);
    grq_status st = grq_code_metadata_make(c, &metadata, err);
    if (st == GRQ_OK)
        st = grq_safetensors_header(grq_safetensors_path(c->file), layout.tensors, layout.n, metadata.items, metadata.n,
                                    &header, &n_header, err);
    if (st != GRQ_OK) return st;
    if (strcmp(metadata.digest, c->digest))
        add_check(r, NAME, false, "its digest is %.12s..., what it says and its blocks' digests give %.12s...",
                  c->digest, metadata.digest);
    else if (n_header != n_head || memcmp(header, head, n_head))
        add_check(r, NAME, false, "it is not, byte for byte, the header of this table");
    else add_check(r, NAME, true, "digest %.12s...", c->digest);
    free(header);
    return GRQ_OK;
}

/* ---- every block ---- */

typedef struct {
    uint64_t coded, side, source; /* first block that is wrong; the number of blocks when there is none */
} first_faults;

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static grq_status check_coded(const grq_codes *c, uint64_t block, bool *digest, bool *side_words, grq_error *err)
{
    const uint64_t first = block * GRQ_CODE_BLOCK_ROWS, n = grq_block_rows(c->n_rows, block);
    const uint8_t *code[GRQ_MAX_STAGES], *side[GRQ_MAX_STAGES];
    uint8_t found[GRQ_SHA256_BYTES];
    for (uint32_t k = 0; k < c->n_stages; k++) {
        code[k] = c->code[k] + first * c->code_bytes;
        side[k] = c->side[k] + first * sizeof(uint16_t);
    }
    const grq_status st = grq_digest_coded_rows(code, side, c->n_stages, c->code_bytes, n, found, err);
    *digest = st == GRQ_OK && !memcmp(found, c->coded_digests + block * GRQ_SHA256_BYTES, sizeof found);
    *side_words = true;
    for (uint64_t r = first; r < first + n; r++) {
        uint16_t words[GRQ_MAX_STAGES];
        uint32_t stage;
        for (uint32_t k = 0; k < c->n_stages; k++) words[k] = grq_side_word(c, k, r);
        if (c->reader.side_fault(&c->reader, words, c->n_stages, &stage)) *side_words = false;
    }
    return st;
}

static grq_status check_block(const grq_codes *c, const grq_table *table, uint64_t block, first_faults *f,
                              grq_error *err)
{
    bool digest, side_words;
    uint8_t found[GRQ_SHA256_BYTES];
    grq_status st = check_coded(c, block, &digest, &side_words, err);
    if (st == GRQ_OK)
        st = grq_digest_stored_rows(table, block * GRQ_CODE_BLOCK_ROWS, grq_block_rows(c->n_rows, block), found, err);
    if (st != GRQ_OK) return st;
    const bool source = !memcmp(found, c->source_digests + block * GRQ_SHA256_BYTES, sizeof found);
#pragma omp critical(grq_verify)
    {
        if (!digest) f->coded = lower(f->coded, block);
        if (!side_words) f->side = lower(f->side, block);
        if (!source) f->source = lower(f->source, block);
    }
    return GRQ_OK;
}

static void add_block_check(grq_verify_report *r, const grq_codes *c, const char *name, uint64_t fault,
                            const char *good, const char *bad)
{
    const uint64_t n_blocks = grq_n_blocks(c->n_rows), first = fault * GRQ_CODE_BLOCK_ROWS;
    if (fault == n_blocks) add_check(r, name, true, "%s (%" PRIu64 " blocks of rows)", good, n_blocks);
    else
        add_check(r, name, false, "%s, first among rows %" PRIu64 " to %" PRIu64, bad, first,
                  first + grq_block_rows(c->n_rows, fault) - 1);
}

static grq_status check_blocks(const grq_codes *c, const grq_table *table, const grq_verify_options *o,
                               grq_verify_report *r, grq_error *err)
{
    const uint64_t n_blocks = grq_n_blocks(c->n_rows);
    first_faults f = { n_blocks, n_blocks, n_blocks };
    grq_block_run run = grq_block_run_of(n_blocks, c->n_rows, "verify", o->progress);
#pragma omp parallel for schedule(dynamic, 1) num_threads(o->n_threads ? o->n_threads : 1)
    for (uint64_t b = 0; b < n_blocks; b++) {
        if (grq_block_run_over(&run, b)) continue;
        grq_error own = { .status = GRQ_OK };
        const grq_status st = check_block(c, table, b, &f, &own);
        grq_block_run_ended(&run, b, grq_block_rows(c->n_rows, b), st, &own);
    }
    const grq_status st = grq_block_run_status(&run, err);
    if (st != GRQ_OK) return st;
    add_block_check(r, c, "code blocks", f.coded, "every block has its digest", "blocks that do not have their digest");
    add_block_check(r, c, "side words", f.side, "all are finite and well formed", "words that no encoder writes");
    add_block_check(r, c, "source", f.source, "the table is the one that was coded", "rows that are not those coded");
    return GRQ_OK;
}

/* ---- a sample ---- */

double grq_verify_factor(const grq_encoder *encoder)
{
    return strcmp(encoder->scale_rule, "rms") ? 1.25 : 2.05;
}

/* FP16 scales have 11 bits: what a code without error may still be off by. */
static const double ROUNDING = 1e-6;

static void judge_sample(const grq_codes *c, const grq_verify_options *o, grq_verify_report *r)
{
    const grq_distortion *const d = &r->distortion;
    const bool known = d->n_rows > d->n_zero_rows;
    char text[128] = "";
    bool within = true, worse = true;
    for (uint32_t k = 0; known && k < c->n_stages; k++) {
        r->limit[k] = o->limit[k] > 0 ? o->limit[k] : grq_verify_factor(c->encoder) * d->sign_mse[k] + ROUNDING;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.4f (limit %.4f)", k ? ", " : "",
                 d->relative_mse[k], r->limit[k]);
        within = within && d->relative_mse[k] <= r->limit[k];
        worse = worse && (d->n_rows < 2 || d->relative_mse[k] < d->shuffled_mse[k]);
    }
    add_check(r, "distortion", within, "relative MSE %s of %" PRIu64 " rows", known ? text : "of nothing but zeros",
              d->n_rows);
    add_check(r, "other rows", worse, "codes of another row give %.4f", known ? d->shuffled_mse[c->n_stages - 1] : NAN);
    add_check(r, "zero rows", d->n_wrong_zero_rows == 0,
              "%" PRIu64 " of %" PRIu64 " zero rows decode to something else", d->n_wrong_zero_rows, d->n_zero_rows);
}

static grq_status check_sample(const grq_codes *c, const grq_table *table, const grq_verify_options *o,
                               grq_verify_report *r, grq_error *err)
{
    const bool all = o->n_sample >= c->n_rows;
    grq_row_sample sample = { .n = o->n_sample };
    int64_t *const rows = all ? NULL : malloc(o->n_sample * sizeof *rows);
    if (!all && !rows) return grq_fail(err, GRQ_E_NOMEM, "no memory for a sample of %" PRIu64 " rows", o->n_sample);
    grq_rng rng;
    grq_rng_seed_for(&rng, o->seed, "verify");
    for (uint64_t i = 0; !all && i < o->n_sample; i++) rows[i] = (int64_t)grq_rng_below(&rng, c->n_rows);
    sample.rows = rows;
    const grq_status st =
        grq_codes_distortion(c, table, all ? NULL : &sample, o->n_threads, o->progress, &r->distortion, err);
    free(rows);
    if (st == GRQ_OK) judge_sample(c, o, r);
    return st;
}

grq_status grq_codes_verify(const grq_codes *c, const grq_table *table, const grq_verify_options *o,
                            grq_verify_report *r, grq_error *err)
{
    *r = (grq_verify_report){ .passed = true };
    if (grq_table_n_rows(table) != c->n_rows || grq_table_row_dim(table) != c->row_dim)
        return grq_fail(err, GRQ_E_DATA, "the codes hold %" PRIu64 " rows of %u values, %s %" PRIu64 " of %u",
                        c->n_rows, c->row_dim, grq_table_name(table), grq_table_n_rows(table),
                        grq_table_row_dim(table));
    if (o->n_sample == 0) return grq_fail(err, GRQ_E_USAGE, "a sample of no rows");
    grq_status st = check_header(c, r, err);
    if (st == GRQ_OK) st = check_blocks(c, table, o, r, err);
    if (st == GRQ_OK) st = check_sample(c, table, o, r, err);
    r->passed = r->passed && st == GRQ_OK;
    return st;
}
