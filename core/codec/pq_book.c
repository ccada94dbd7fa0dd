/* Books other than the built-in one: in files, and as encoders. */
#include "gaterq/pq_book.h"

#include <stdio.h>
#include <stdlib.h>

#include "codec_internal.h"
#include "pq.h"

static const char BOOK[] = "pq.book", CRC[] = "pq.book_crc32";

static const grq_pq_book *book_of(const grq_encoder *encoder)
{
    return encoder->detail ? grq_pq_coding_book(encoder->detail) : grq_pq_book_e8();
}

/* ---- encoders ---- */

grq_status grq_pq_encoder_new(const grq_pq_book *book, grq_encoder **out, grq_error *err)
{
    grq_encoder *const encoder = malloc(sizeof *encoder);
    grq_pq_coding *const coding = grq_pq_coding_new(book);
    *out = NULL;
    if (!encoder || !coding) {
        free(encoder);
        free(coding);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for a book");
    }
    *encoder = grq_encoder_pq;
    encoder->detail = coding;
    *out = encoder;
    return GRQ_OK;
}

void grq_pq_encoder_free(grq_encoder *encoder)
{
    if (!encoder) return;
    free((void *)encoder->detail);
    free(encoder);
}

const grq_pq_book *grq_codes_book(const grq_codes *c)
{
    return c->reader.kind == GRQ_KIND_PQ ? book_of(&c->reader) : NULL;
}

/* ---- files ---- */

const int8_t *grq_pq_stored_book(const grq_encoder *encoder)
{
    return encoder->kind == GRQ_KIND_PQ && encoder->detail ? &book_of(encoder)->vector[0][0] : NULL;
}

void grq_pq_describe(const grq_encoder *encoder, grq_details *details)
{
    grq_details_add(details, BOOK, "%s", book_of(encoder)->id);
    grq_details_add(details, CRC, "%08x", book_of(encoder)->crc32);
}

static grq_status read_book(const grq_safetensors *file, const char *id, grq_pq_book *out, grq_error *err)
{
    const uint64_t shape[] = { GRQ_PQ_ENTRIES, GRQ_PQ_DIM };
    const grq_tensor *t;
    const grq_status st = grq_safetensors_get(file, BOOK, GRQ_I8, 2, shape, &t, err);
    if (st != GRQ_OK) return st;
    memcpy(out->vector, t->data, sizeof out->vector);
    snprintf(out->id, sizeof out->id, "%.15s", id);
    out->crc32 = grq_pq_crc32(out->vector);
    for (uint32_t i = 0; i < sizeof out->vector; i++)
        if ((&out->vector[0][0])[i] == INT8_MIN)
            return grq_fail(err, GRQ_E_DATA, "%s: tensor %s, vector %u holds -128; -127 is the least",
                            grq_safetensors_path(file), BOOK, i / GRQ_PQ_DIM);
    return GRQ_OK;
}

grq_status grq_pq_configure(grq_codes *c, const grq_safetensors *file, grq_error *err)
{
    const char *id, *crc;
    char found[16];
    grq_pq_book book;
    grq_status st = grq_metadata_text(file, BOOK, &id, err);
    if (st == GRQ_OK) st = grq_metadata_text(file, CRC, &crc, err);
    if (st != GRQ_OK) return st;
    const bool built_in = !strcmp(id, grq_pq_book_e8()->id);
    if (!built_in && strcmp(id, "trained"))
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"%s\" is \"%.40s\"; known: %s, trained",
                        grq_safetensors_path(file), BOOK, id, grq_pq_book_e8()->id);
    if (!built_in && (st = read_book(file, id, &book, err)) != GRQ_OK) return st;
    snprintf(found, sizeof found, "%08x", built_in ? grq_pq_book_e8()->crc32 : book.crc32);
    if (strcmp(crc, found))
        return grq_fail(err, GRQ_E_DATA, "%s: metadata \"%s\" is \"%.20s\", the book's is %s",
                        grq_safetensors_path(file), CRC, crc, found);
    if (built_in) return GRQ_OK;
    c->book = grq_pq_coding_new(&book);
    c->reader.detail = c->book;
    return c->book ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for a book");
}
