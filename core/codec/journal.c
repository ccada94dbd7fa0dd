#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MAGIC[8] = "GRQJRNL1";

enum { CHECK_BYTES = 8, HEADING_BYTES = sizeof MAGIC + GRQ_SHA256_BYTES };

typedef struct {
    uint64_t block;
    uint8_t coded[GRQ_SHA256_BYTES], source[GRQ_SHA256_BYTES];
    uint8_t check[CHECK_BYTES]; /* first bytes of the SHA-256 of job, block and digests */
} record;
_Static_assert(sizeof(record) == 80, "a journal's record has no padding");

struct grq_journal {
    char *path;
    int fd;
    uint8_t job[GRQ_SHA256_BYTES];
};

/* A lock of the open file: it ends with the process, and another process can ask for it without taking it. */
static const struct flock WHOLE_FILE = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

/* ---- what is known of blocks ---- */

grq_status grq_block_list_new(uint64_t n_blocks, grq_block_list *out, grq_error *err)
{
    *out = (grq_block_list){ .n_blocks = n_blocks,
                             .done = calloc(n_blocks, 1),
                             .coded = calloc(n_blocks, GRQ_SHA256_BYTES),
                             .source = calloc(n_blocks, GRQ_SHA256_BYTES) };
    if (out->done && out->coded && out->source) return GRQ_OK;
    grq_block_list_free(out);
    return grq_fail(err, GRQ_E_NOMEM, "no memory for the digests of %llu blocks", (unsigned long long)n_blocks);
}

void grq_block_list_free(grq_block_list *list)
{
    free(list->done);
    free(list->coded);
    free(list->source);
    *list = (grq_block_list){ 0 };
}

uint64_t grq_block_list_n_done(const grq_block_list *list)
{
    uint64_t n = 0;
    for (uint64_t b = 0; b < list->n_blocks; b++) n += list->done[b];
    return n;
}

/* ---- records ---- */

static grq_status check_of(const uint8_t job[GRQ_SHA256_BYTES], const record *r, uint8_t check[CHECK_BYTES],
                           grq_error *err)
{
    grq_sha256_stream *stream;
    uint8_t digest[GRQ_SHA256_BYTES];
    grq_status st = grq_sha256_start(&stream, err);
    if (st != GRQ_OK) return st;
    grq_sha256_add(stream, job, GRQ_SHA256_BYTES);
    grq_sha256_add(stream, r, offsetof(record, check));
    st = grq_sha256_finish(stream, digest, err);
    memcpy(check, digest, CHECK_BYTES);
    return st;
}

static grq_status read_all(int fd, const char *path, uint8_t **bytes, size_t *n_bytes, grq_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    *bytes = malloc((size_t)info.st_size + 1);
    if (!*bytes) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory to read it", path);
    *n_bytes = 0;
    while (*n_bytes < (size_t)info.st_size) {
        const ssize_t n = pread(fd, *bytes + *n_bytes, (size_t)info.st_size - *n_bytes, (off_t)*n_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
        if (n == 0) break;
        *n_bytes += (size_t)n;
    }
    return GRQ_OK;
}

/* Marks whole, sound records; *n_sound is the length of the file up to the first that is not. */
static grq_status take_records(const char *path, const uint8_t *bytes, size_t n_bytes,
                               const uint8_t job[GRQ_SHA256_BYTES], grq_block_list *list, size_t *n_sound,
                               grq_error *err)
{
    *n_sound = 0;
    if (n_bytes < HEADING_BYTES) return GRQ_OK; /* cut while it was started */
    if (memcmp(bytes, MAGIC, sizeof MAGIC))
        return grq_fail(err, GRQ_E_DATA, "%s: not a journal of gaterq encode; move it away", path);
    if (memcmp(bytes + sizeof MAGIC, job, GRQ_SHA256_BYTES))
        return grq_fail(
            err, GRQ_E_DATA,
            "%s: left by an encoding with other settings or of another table; repeat that command, or remove "
            "this file and the .partial beside it",
            path);
    for (*n_sound = HEADING_BYTES; *n_sound + sizeof(record) <= n_bytes; *n_sound += sizeof(record)) {
        record r;
        uint8_t check[CHECK_BYTES];
        memcpy(&r, bytes + *n_sound, sizeof r);
        const grq_status st = check_of(job, &r, check, err);
        if (st != GRQ_OK) return st;
        if (memcmp(check, r.check, CHECK_BYTES) || r.block >= list->n_blocks) break;
        list->done[r.block] = 1;
        memcpy(list->coded[r.block], r.coded, GRQ_SHA256_BYTES);
        memcpy(list->source[r.block], r.source, GRQ_SHA256_BYTES);
    }
    return GRQ_OK;
}

static grq_status load(int fd, const char *path, const uint8_t job[GRQ_SHA256_BYTES], grq_block_list *list,
                       size_t *n_sound, grq_error *err)
{
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    grq_status st = read_all(fd, path, &bytes, &n_bytes, err);
    if (st == GRQ_OK) st = take_records(path, bytes, n_bytes, job, list, n_sound, err);
    free(bytes);
    return st;
}

/* ---- the file ---- */

static grq_status write_all(const grq_journal *j, const void *bytes, size_t n, grq_error *err)
{
    const char *at = bytes;
    while (n > 0) {
        const ssize_t written = write(j->fd, at, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return grq_fail(err, GRQ_E_IO, "%s: %s", j->path, strerror(errno));
        at += written;
        n -= (size_t)written;
    }
    return GRQ_OK;
}

static grq_status start_or_continue(grq_journal *j, grq_block_list *list, grq_error *err)
{
    size_t n_sound;
    grq_status st = load(j->fd, j->path, j->job, list, &n_sound, err);
    if (st != GRQ_OK) return st;
    if (ftruncate(j->fd, (off_t)n_sound) != 0 || lseek(j->fd, 0, SEEK_END) < 0)
        return grq_fail(err, GRQ_E_IO, "%s: %s", j->path, strerror(errno));
    if (n_sound > 0) return GRQ_OK;
    st = write_all(j, MAGIC, sizeof MAGIC, err);
    return st == GRQ_OK ? write_all(j, j->job, GRQ_SHA256_BYTES, err) : st;
}

grq_status grq_journal_open(const char *path, const uint8_t job[GRQ_SHA256_BYTES], grq_block_list *list,
                            grq_journal **out, grq_error *err)
{
    *out = NULL;
    grq_journal *j = calloc(1, sizeof *j);
    if (!j || !(j->path = strdup(path))) {
        free(j);
        return grq_fail(err, GRQ_E_NOMEM, "%s: no memory to open it", path);
    }
    memcpy(j->job, job, GRQ_SHA256_BYTES);
    j->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    grq_status st = j->fd >= 0 ? GRQ_OK : grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    struct flock lock = WHOLE_FILE;
    if (st == GRQ_OK && fcntl(j->fd, F_OFD_SETLK, &lock) != 0)
        st = errno == EAGAIN || errno == EACCES
                 ? grq_fail(err, GRQ_E_IO, "%s: another process is encoding this file", path)
                 : grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    if (st == GRQ_OK) st = start_or_continue(j, list, err);
    if (st == GRQ_OK) *out = j;
    else grq_journal_close(j);
    return st;
}

grq_status grq_journal_append(grq_journal *j, const grq_block_list *list, uint64_t block, grq_error *err)
{
    record r = { .block = block };
    memcpy(r.coded, list->coded[block], GRQ_SHA256_BYTES);
    memcpy(r.source, list->source[block], GRQ_SHA256_BYTES);
    const grq_status st = check_of(j->job, &r, r.check, err);
    return st == GRQ_OK ? write_all(j, &r, sizeof r, err) : st;
}

void grq_journal_close(grq_journal *j)
{
    if (!j) return;
    if (j->fd >= 0) close(j->fd);
    free(j->path);
    free(j);
}

grq_status grq_journal_peek(const char *path, const uint8_t job[GRQ_SHA256_BYTES], grq_block_list *list, bool *busy,
                            grq_error *err)
{
    *busy = false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT ? GRQ_OK : grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    struct flock lock = WHOLE_FILE;
    *busy = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    size_t n_sound;
    const grq_status st = load(fd, path, job, list, &n_sound, err);
    close(fd);
    return st;
}
