#include "provenance.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "gaterq/blas.h"
#include "gaterq/digest.h"

/* Set by the build (cmake/commit.cmake): the commit and whether tracked files differed from it. */
#include "gaterq_commit.h"

static void add(provenance *p, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void add(provenance *p, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->text[p->n_items], sizeof p->text[0], format, args);
    va_end(args);
    p->items[p->n_items] = (grq_metadata){ key, p->text[p->n_items] };
    p->n_items++;
}

grq_status provenance_collect(provenance *p, const char *config_path, uint64_t seed, grq_error *err)
{
    char digest[GRQ_SHA256_HEX] = "";
    p->n_items = 0;
    grq_status st = grq_blas_init(err);
    if (st == GRQ_OK && config_path) st = grq_sha256_file(config_path, digest, err);
    if (st != GRQ_OK) return st;
    add(p, "gaterq.version", "%s", GATERQ_VERSION);
    add(p, "gaterq.commit", "%s", GATERQ_COMMIT);
    add(p, "gaterq.compiler", "%s, %s", GATERQ_COMPILER, GATERQ_BUILD_TYPE);
    add(p, "gaterq.blas", "%s", grq_blas_description());
    add(p, "gaterq.seed", "%" PRIu64, seed);
    if (config_path) add(p, "gaterq.config_sha256", "%s", digest);
    return GRQ_OK;
}

void provenance_write(const provenance *p, const char *key, grq_json_writer *writer)
{
    grq_json_begin_object(writer, key);
    for (size_t i = 0; i < p->n_items; i++) grq_json_put_string(writer, p->items[i].key, p->items[i].value);
    grq_json_end_object(writer);
}
