#include "receipts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"

static const char FORMAT[] = "gaterq-receipt-1";

char *receipt_path(const char *codes_path)
{
    char *path;
    return asprintf(&path, "%s.receipt.json", codes_path) < 0 ? NULL : path;
}

/* ---- writing ---- */

static void put_depths(grq_json_writer *w, const char *key, const double *values, uint32_t n)
{
    grq_json_begin_array(w, key);
    for (uint32_t k = 0; k < n; k++) grq_json_put_f64(w, NULL, values[k]);
    grq_json_end_array(w);
}

void receipt_put(grq_json_writer *w, const grq_codes *c, const grq_verify_options *o, const grq_verify_report *r)
{
    const grq_codes_origin *const origin = grq_codes_origin_of(c);
    const uint32_t n = grq_codes_n_stages(c);
    grq_json_put_string(w, "format", FORMAT);
    grq_json_put_bool(w, "passed", r->passed);
    grq_json_put_string(w, "digest", grq_codes_digest(c));
    grq_json_put_string(w, "encoder", grq_codes_encoder(c)->name);
    grq_json_put_u64(w, "rows", grq_codes_n_rows(c));
    grq_json_put_string(w, "source", origin->source);
    grq_json_put_string(w, "source_digest", origin->source_digest);
    grq_json_put_string(w, "verified_by", "gaterq " GATERQ_VERSION);
    grq_json_put_u64(w, "sampled_rows", r->distortion.n_rows);
    grq_json_put_u64(w, "seed", o->seed);
    put_depths(w, "relative_mse", r->distortion.relative_mse, n);
    put_depths(w, "limit", r->limit, n);
    put_depths(w, "sign_mse", r->distortion.sign_mse, n);
    put_depths(w, "other_row_mse", r->distortion.shuffled_mse, n);
    grq_json_begin_array(w, "checks");
    for (size_t i = 0; i < r->n_checks; i++) {
        grq_json_begin_object(w, NULL);
        grq_json_put_string(w, "name", r->checks[i].name);
        grq_json_put_bool(w, "passed", r->checks[i].passed);
        grq_json_put_string(w, "detail", r->checks[i].detail);
        grq_json_end_object(w);
    }
    grq_json_end_array(w);
}

grq_status receipt_write(const char *path, const char *codes_path, const grq_codes *c, const grq_verify_options *o,
                         const grq_verify_report *r, grq_error *err)
{
    const char *const slash = strrchr(codes_path, '/');
    grq_json_writer *const w = grq_json_writer_new();
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory to write it", path);
    grq_json_begin_object(w, NULL);
    grq_json_put_string(w, "codes", slash ? slash + 1 : codes_path);
    receipt_put(w, c, o, r);
    grq_json_end_object(w);
    const grq_status st = grq_json_writer_save(w, path, err);
    grq_json_writer_free(w);
    return st;
}

/* ---- checking ---- */

static grq_status read_receipt(const char *path, const grq_codes *c, grq_error *err)
{
    grq_json *document = NULL;
    const char *format, *digest;
    bool passed;
    grq_status st = grq_json_open(path, &document, err);
    grq_json_node *const root = st == GRQ_OK ? grq_json_root(document) : NULL;
    if (st == GRQ_OK) st = grq_json_string(root, "format", &format, err);
    if (st == GRQ_OK) st = grq_json_string(root, "digest", &digest, err);
    if (st == GRQ_OK) st = grq_json_bool(root, "passed", &passed, err);
    if (st == GRQ_OK && strcmp(format, FORMAT))
        st = grq_fail(err, GRQ_E_DATA, "%s: format \"%.60s\"; this program reads %s", path, format, FORMAT);
    if (st == GRQ_OK && !passed) st = grq_fail(err, GRQ_E_DATA, "%s: says that the codes did not pass", path);
    if (st == GRQ_OK && strcmp(digest, grq_codes_digest(c)))
        st = grq_fail(err, GRQ_E_DATA, "%s: is of codes with digest %.12s..., these have %.12s...: verify them again",
                      path, digest, grq_codes_digest(c));
    grq_json_close(document);
    return st;
}

grq_status receipt_check(const char *codes_path, const grq_codes *c, grq_error *err)
{
    char *const path = receipt_path(codes_path);
    if (!path) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a name", codes_path);
    grq_status st = GRQ_OK;
    if (!grq_file_exists(path))
        st = grq_fail(err, GRQ_E_DATA,
                      "%s: has no receipt %s; check it with gaterq verify, or take it as it is with --unverified",
                      codes_path, path);
    if (st == GRQ_OK) st = read_receipt(path, c, err);
    free(path);
    return st;
}
