#include "partial.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safetensors_internal.h"
#include "gaterq/file.h"

/* ---- bytes at a place ---- */

static grq_status write_at(const grq_partial *p, uint64_t offset, const void *bytes, uint64_t n, grq_error *err)
{
    for (const char *at = bytes; n > 0;) {
        const ssize_t done = pwrite(p->fd, at, n, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return grq_fail(err, GRQ_E_IO, "%s: %s; what was written stays, repeat the command to go on", p->path,
                            done < 0 ? strerror(errno) : "nothing could be written");
        at += done;
        offset += (uint64_t)done;
        n -= (uint64_t)done;
    }
    return GRQ_OK;
}

static grq_status read_at(const grq_partial *p, uint64_t offset, void *bytes, uint64_t n, grq_error *err)
{
    for (char *at = bytes; n > 0;) {
        const ssize_t done = pread(p->fd, at, n, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return grq_fail(err, GRQ_E_IO, "%s: %s", p->path, done < 0 ? strerror(errno) : "is shorter than it was");
        at += done;
        offset += (uint64_t)done;
        n -= (uint64_t)done;
    }
    return GRQ_OK;
}

/* ---- the file ---- */

/* Header and offsets. The digests in the header have a fixed length, so its size is known before they are. */
static grq_status place_tensors(grq_partial *p, char **header, size_t *n_header, grq_error *err)
{
    grq_code_metadata metadata;
    grq_code_layout_make(p->shape, &p->layout);
    grq_status st = grq_code_metadata_make(p->shape, &metadata, err);
    if (st == GRQ_OK)
        st = grq_safetensors_header(p->final_path, p->layout.tensors, p->layout.n, metadata.items, metadata.n, header,
                                    n_header, err);
    if (st != GRQ_OK) return st;
    memcpy(p->shape->digest, metadata.digest, sizeof p->shape->digest);
    p->n_bytes = *n_header;
    for (size_t i = 0; i < p->layout.n; i++) {
        p->offset[i] = p->n_bytes;
        p->n_bytes += p->layout.tensors[i].n_bytes;
    }
    return GRQ_OK;
}

static grq_status take_room(const grq_partial *p, grq_error *err)
{
    struct stat info;
    if (fstat(p->fd, &info) != 0) return grq_fail(err, GRQ_E_IO, "%s: %s", p->path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return grq_fail(err, GRQ_E_IO, "%s: is not a regular file", p->path);
    if ((uint64_t)info.st_size == p->n_bytes) return GRQ_OK;
    if (fallocate(p->fd, 0, 0, (off_t)p->n_bytes) == 0) {
        if (ftruncate(p->fd, (off_t)p->n_bytes) == 0) return GRQ_OK;
    } else if (errno != ENOSPC && errno != EFBIG && ftruncate(p->fd, (off_t)p->n_bytes) == 0) {
        return GRQ_OK; /* a file system that cannot promise room */
    }
    const int reason = errno;
    if (info.st_size == 0) unlink(p->path);
    return grq_fail(err, GRQ_E_IO, "%s: no room for %" PRIu64 " bytes: %s", p->path, p->n_bytes, strerror(reason));
}

grq_status grq_partial_open(const char *path, grq_codes *shape, grq_partial *p, grq_error *err)
{
    *p = (grq_partial){ .fd = -1, .shape = shape };
    char *header = NULL;
    size_t n_header;
    grq_status st = grq_output_name(path, &p->final_path, err);
    if (st == GRQ_OK && asprintf(&p->path, "%s.partial", p->final_path) < 0) {
        p->path = NULL;
        st = grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a name", path);
    }
    if (st == GRQ_OK) st = place_tensors(p, &header, &n_header, err);
    free(header);
    if (st == GRQ_OK) {
        p->fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
        if (p->fd < 0) st = grq_fail(err, GRQ_E_IO, "%s: %s", p->path, strerror(errno));
    }
    if (st == GRQ_OK) st = take_room(p, err);
    if (st != GRQ_OK) grq_partial_close(p);
    return st;
}

void grq_partial_close(grq_partial *p)
{
    if (p->fd >= 0) close(p->fd);
    free(p->path);
    free(p->final_path);
    *p = (grq_partial){ .fd = -1 };
}

void grq_partial_remove(grq_partial *p)
{
    if (p->path) unlink(p->path);
    grq_partial_close(p);
}

/* ---- blocks ---- */

grq_status grq_partial_write(const grq_partial *p, uint64_t block, const uint8_t *const *code,
                             const uint8_t *const *side, grq_error *err)
{
    const uint64_t first = block * GRQ_CODE_BLOCK_ROWS, n = grq_block_rows(p->shape->n_rows, block);
    const size_t code_bytes = p->shape->code_bytes, side_bytes = sizeof(uint16_t);
    grq_status st = GRQ_OK;
    for (uint32_t k = 0; st == GRQ_OK && k < p->shape->n_stages; k++) {
        st = write_at(p, p->offset[p->layout.code[k]] + first * code_bytes, code[k], n * code_bytes, err);
        if (st == GRQ_OK)
            st = write_at(p, p->offset[p->layout.side[k]] + first * side_bytes, side[k], n * side_bytes, err);
    }
    return st;
}

grq_status grq_partial_read(const grq_partial *p, uint64_t block, uint8_t *const *code, uint8_t *const *side,
                            grq_error *err)
{
    const uint64_t first = block * GRQ_CODE_BLOCK_ROWS, n = grq_block_rows(p->shape->n_rows, block);
    const size_t code_bytes = p->shape->code_bytes, side_bytes = sizeof(uint16_t);
    grq_status st = GRQ_OK;
    for (uint32_t k = 0; st == GRQ_OK && k < p->shape->n_stages; k++) {
        st = read_at(p, p->offset[p->layout.code[k]] + first * code_bytes, code[k], n * code_bytes, err);
        if (st == GRQ_OK)
            st = read_at(p, p->offset[p->layout.side[k]] + first * side_bytes, side[k], n * side_bytes, err);
    }
    return st;
}

/* ---- the end ---- */

static grq_status write_ends(grq_partial *p, grq_error *err)
{
    char *header = NULL;
    size_t n_header;
    const uint64_t n_bytes = p->n_bytes;
    grq_status st = place_tensors(p, &header, &n_header, err);
    if (st == GRQ_OK && p->n_bytes != n_bytes)
        st = grq_fail(err, GRQ_E_DATA, "%s: its header changed while it was written", p->path);
    if (st == GRQ_OK) st = write_at(p, 0, header, n_header, err);
    free(header);
    for (size_t i = 0; st == GRQ_OK && i < p->layout.n; i++) { /* planes have no data in `shape`: they are there */
        const grq_tensor *const t = &p->layout.tensors[i];
        if (t->data) st = write_at(p, p->offset[i], t->data, t->n_bytes, err);
    }
    return st;
}

grq_status grq_partial_finish(grq_partial *p, const grq_block_list *list, grq_error *err)
{
    p->shape->coded_digests = (const uint8_t *)list->coded;
    p->shape->source_digests = (const uint8_t *)list->source;
    grq_status st = write_ends(p, err);
    p->shape->coded_digests = p->shape->source_digests = NULL;
    if (st == GRQ_OK && fsync(p->fd) != 0 && errno != EINVAL)
        st = grq_fail(err, GRQ_E_IO, "%s: %s", p->path, strerror(errno));
    return st == GRQ_OK ? grq_rename_synced(p->path, p->final_path, err) : st;
}

void grq_encode_result_take(const grq_codes *shape, grq_encode_result *out)
{
    out->n_rows = shape->n_rows;
    out->encoder = shape->encoder;
    out->row_dim = shape->row_dim;
    out->n_stages = shape->n_stages;
    memcpy(out->digest, shape->digest, sizeof out->digest);
}
