#include "layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- tensors ---- */

static const uint8_t zeros[GRQ_PLANE_ALIGN];

static size_t add_tensor(grq_code_layout *l, grq_tensor tensor)
{
    tensor.name = l->names[l->n];
    l->tensors[l->n] = tensor;
    return l->n++;
}

static void add_padding(grq_code_layout *l)
{
    const grq_tensor *const before = &l->tensors[l->n - 1];
    const uint64_t n = -before->n_bytes % GRQ_PLANE_ALIGN;
    if (!n) return;
    snprintf(l->names[l->n], GRQ_PLANE_NAME_BYTES, "%.*s.pad", GRQ_PLANE_NAME_BYTES - 5, before->name);
    add_tensor(l, (grq_tensor){ .dtype = GRQ_U8, .rank = 1, .shape = { n }, .n_bytes = n, .data = zeros });
}

static size_t add_digests(grq_code_layout *l, const char *name, uint64_t n_blocks, const uint8_t *digests)
{
    snprintf(l->names[l->n], GRQ_PLANE_NAME_BYTES, "%s", name);
    return add_tensor(l, (grq_tensor){ .dtype = GRQ_U8,
                                       .rank = 2,
                                       .shape = { n_blocks, GRQ_SHA256_BYTES },
                                       .n_bytes = n_blocks * GRQ_SHA256_BYTES,
                                       .data = digests });
}

/* Code planes first: for usual row widths and numbers of rows they need no padding. */
void grq_code_layout_make(const grq_codes *c, grq_code_layout *l)
{
    const bool words = c->encoder->side_words;
    l->n = 0;
    for (uint32_t k = 0; k < c->n_stages; k++) {
        snprintf(l->names[l->n], GRQ_PLANE_NAME_BYTES, "stage%u.code", k + 1);
        l->code[k] = add_tensor(l, (grq_tensor){ .dtype = GRQ_U8,
                                                 .rank = 2,
                                                 .shape = { c->n_rows, c->code_bytes },
                                                 .n_bytes = c->n_rows * c->code_bytes,
                                                 .data = c->code[k] });
        add_padding(l);
    }
    for (uint32_t k = 0; k < c->n_stages; k++) {
        snprintf(l->names[l->n], GRQ_PLANE_NAME_BYTES, "stage%u.%s", k + 1, words ? "side" : "scale");
        l->side[k] = add_tensor(l, (grq_tensor){ .dtype = words ? GRQ_U16 : GRQ_F16,
                                                 .rank = 1,
                                                 .shape = { c->n_rows },
                                                 .n_bytes = c->n_rows * sizeof(uint16_t),
                                                 .data = c->side[k] });
        add_padding(l);
    }
    const int8_t *const book = grq_pq_stored_book(&c->reader);
    if (book) {
        snprintf(l->names[l->n], GRQ_PLANE_NAME_BYTES, "pq.book");
        add_tensor(l, (grq_tensor){ .dtype = GRQ_I8,
                                    .rank = 2,
                                    .shape = { GRQ_PQ_ENTRIES, GRQ_PQ_DIM },
                                    .n_bytes = GRQ_PQ_ENTRIES * GRQ_PQ_DIM,
                                    .data = book });
    }
    const uint64_t n_blocks = grq_n_blocks(c->n_rows);
    l->coded_digests = add_digests(l, "blocks.sha256", n_blocks, c->coded_digests);
    add_padding(l);
    l->source_digests = add_digests(l, "blocks.source_sha256", n_blocks, c->source_digests);
}

/* ---- metadata ---- */

void grq_details_add(grq_details *details, const char *key, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    details->key[details->n] = key;
    vsnprintf(details->value[details->n++], GRQ_DETAIL_BYTES, format, arguments);
    va_end(arguments);
}

static void describe_encoder(const grq_codes *c, grq_details *details)
{
    details->n = 0;
    if (c->reader.kind == GRQ_KIND_TCQ) grq_tcq_describe(&c->reader, c->row_dim, details);
    if (c->reader.kind == GRQ_KIND_PQ) grq_pq_describe(&c->reader, details);
    if (c->transform.rotate) {
        grq_details_add(details, "rotation", "hadamard");
        grq_details_add(details, "rotation_seed", "%" PRIu64, c->transform.rotation_seed);
    }
}

static void describe_shape(const grq_codes *c, grq_details *numbers)
{
    numbers->n = 0;
    grq_details_add(numbers, "layer", "%u", c->origin.layer);
    grq_details_add(numbers, "rows", "%" PRIu64, c->n_rows);
    grq_details_add(numbers, "row_dim", "%u", c->row_dim);
    grq_details_add(numbers, "stages", "%u", c->n_stages);
    grq_details_add(numbers, "exp_tab", "%d", c->transform.exp_tab);
    grq_details_add(numbers, "block_rows", "%d", GRQ_CODE_BLOCK_ROWS);
    if (c->n_rows == c->table_rows) return;
    grq_details_add(numbers, "first_row", "%" PRIu64, c->first_row);
    grq_details_add(numbers, "table_rows", "%" PRIu64, c->table_rows);
}

static void add_item(grq_code_metadata *m, const char *key, const char *value)
{
    m->items[m->n++] = (grq_metadata){ key, value };
}

static grq_status digest_all(const grq_codes *c, const grq_code_metadata *m, char hex[GRQ_SHA256_HEX], grq_error *err)
{
    const size_t n_digests = grq_n_blocks(c->n_rows) * GRQ_SHA256_BYTES;
    grq_sha256_stream *stream;
    uint8_t digest[GRQ_SHA256_BYTES];
    grq_status st = grq_sha256_start(&stream, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < m->n; i++) {
        grq_sha256_add(stream, m->items[i].key, strlen(m->items[i].key) + 1);
        grq_sha256_add(stream, m->items[i].value, strlen(m->items[i].value) + 1);
    }
    grq_sha256_add(stream, c->coded_digests, n_digests);
    grq_sha256_add(stream, c->source_digests, n_digests);
    st = grq_sha256_finish(stream, digest, err);
    if (st == GRQ_OK) grq_sha256_hex(digest, hex);
    return st;
}

grq_status grq_code_metadata_make(const grq_codes *c, grq_code_metadata *m, grq_error *err)
{
    const bool digests = c->coded_digests && c->source_digests;
    describe_shape(c, &m->numbers);
    describe_encoder(c, &m->details);
    memset(m->source_digest, '0', sizeof m->source_digest - 1);
    memset(m->digest, '0', sizeof m->digest - 1);
    m->source_digest[sizeof m->source_digest - 1] = m->digest[sizeof m->digest - 1] = '\0';
    m->n = 0;
    grq_status st = GRQ_OK;
    if (digests) st = grq_sha256(c->source_digests, grq_n_blocks(c->n_rows) * GRQ_SHA256_BYTES, m->source_digest, err);
    add_item(m, "format", GRQ_CODES_FORMAT);
    add_item(m, "family", c->origin.family);
    add_item(m, "encoder", c->encoder->name);
    add_item(m, "scale_rule", c->encoder->scale_rule);
    for (size_t i = 0; i < m->numbers.n; i++) add_item(m, m->numbers.key[i], m->numbers.value[i]);
    for (size_t i = 0; i < m->details.n; i++) add_item(m, m->details.key[i], m->details.value[i]);
    add_item(m, "source", c->origin.source);
    add_item(m, "source_digest", m->source_digest);
    if (st == GRQ_OK && digests) st = digest_all(c, m, m->digest, err);
    add_item(m, "digest", m->digest);
    return st;
}
