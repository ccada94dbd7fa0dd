/* Coded tables: an accepted file decodes at every depth, and sums over stages are what the depths say. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gaterq/codec.h"
#include "safetensors_mutator.h"

static void decode(const grq_codes *codes)
{
    const uint64_t n_rows = grq_codes_n_rows(codes);
    const uint32_t dim = grq_codes_row_dim(codes);
    const uint64_t rows[] = { 0, n_rows / 2, n_rows - 1 };
    float *const out = malloc(2 * dim * sizeof *out); /* of this very size: a write past it is seen */
    fuzz_require(out != NULL, "no memory for a row");
    for (uint32_t depth = 1; depth <= grq_codes_n_stages(codes); depth++)
        for (int i = 0; i < 3; i++) {
            grq_codes_prefetch(codes, rows[i], depth);
            grq_codes_decode(codes, rows[i], depth, out + dim);
            grq_codes_decode(codes, rows[i], depth, out);
            fuzz_require(!memcmp(out, out + dim, dim * sizeof *out), "decoding twice gives other bits");
        }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    grq_codes *codes;
    grq_error err;
    const grq_status st = grq_codes_open(fuzz_file(data, size), &codes, &err);
    if (st != GRQ_OK) {
        fuzz_refused(st, &err);
        fuzz_require(!codes, "a refused file is handed out");
        return 0;
    }
    fuzz_accepted = 1;
    const grq_codes_origin *const origin = grq_codes_origin_of(codes);
    fuzz_touch(origin->family, strlen(origin->family) + 1);
    fuzz_touch(origin->source, strlen(origin->source) + 1);
    fuzz_touch(origin->source_digest, strlen(origin->source_digest) + 1);
    fuzz_require(strlen(grq_codes_digest(codes)) == 64, "a digest that is none");
    fuzz_touch(grq_codes_encoder(codes)->name, 1);
    fuzz_touch(grq_codes_transform_of(codes), sizeof(grq_codes_transform));
    fuzz_require(grq_codes_n_rows(codes) > 0 && grq_codes_row_dim(codes) > 0, "a table without values");
    decode(codes);
    grq_codes_close(codes);
    return 0;
}
