/* The only file that knows OpenSSL. */
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 20 };

void grq_sha256_hex(const uint8_t digest[GRQ_SHA256_BYTES], char hex[GRQ_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < GRQ_SHA256_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * GRQ_SHA256_BYTES] = '\0';
}

grq_status grq_sha256(const void *bytes, size_t n_bytes, char hex[GRQ_SHA256_HEX], grq_error *err)
{
    uint8_t digest[GRQ_SHA256_BYTES];
    hex[0] = '\0';
    if (EVP_Digest(bytes, n_bytes, digest, NULL, EVP_sha256(), NULL) != 1)
        return grq_fail(err, GRQ_E_NOMEM, "SHA-256 of %zu bytes failed inside OpenSSL", n_bytes);
    grq_sha256_hex(digest, hex);
    return GRQ_OK;
}

/* ---- in pieces ---- */

struct grq_sha256_stream {
    EVP_MD_CTX *context;
    bool failed;
};

grq_status grq_sha256_start(grq_sha256_stream **out, grq_error *err)
{
    grq_sha256_stream *s = calloc(1, sizeof *s);
    *out = s;
    if (s) s->context = EVP_MD_CTX_new();
    if (s && s->context && EVP_DigestInit_ex(s->context, EVP_sha256(), NULL) == 1) return GRQ_OK;
    grq_sha256_abandon(s);
    *out = NULL;
    return grq_fail(err, GRQ_E_NOMEM, "no memory for a SHA-256");
}

void grq_sha256_add(grq_sha256_stream *s, const void *bytes, size_t n_bytes)
{
    s->failed |= EVP_DigestUpdate(s->context, bytes, n_bytes) != 1;
}

grq_status grq_sha256_finish(grq_sha256_stream *s, uint8_t digest[GRQ_SHA256_BYTES], grq_error *err)
{
    const bool failed = s->failed || EVP_DigestFinal_ex(s->context, digest, NULL) != 1;
    grq_sha256_abandon(s);
    return failed ? grq_fail(err, GRQ_E_NOMEM, "SHA-256 failed inside OpenSSL") : GRQ_OK;
}

void grq_sha256_abandon(grq_sha256_stream *s)
{
    if (!s) return;
    EVP_MD_CTX_free(s->context);
    free(s);
}

static grq_status add_file(int fd, const char *path, grq_sha256_stream *stream, void *buffer, grq_error *err)
{
    for (;;) {
        const ssize_t n = read(fd, buffer, READ_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
        if (n == 0) return GRQ_OK;
        grq_sha256_add(stream, buffer, (size_t)n);
    }
}

grq_status grq_sha256_file(const char *path, char hex[GRQ_SHA256_HEX], grq_error *err)
{
    hex[0] = '\0';
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    uint8_t digest[GRQ_SHA256_BYTES];
    grq_sha256_stream *stream = NULL;
    void *const buffer = malloc(READ_BYTES);
    grq_status st =
        buffer ? grq_sha256_start(&stream, err) : grq_fail(err, GRQ_E_NOMEM, "%s: no memory to read it", path);
    if (st == GRQ_OK) st = add_file(fd, path, stream, buffer, err);
    if (st == GRQ_OK) st = grq_sha256_finish(stream, digest, err);
    else grq_sha256_abandon(stream);
    if (st == GRQ_OK) grq_sha256_hex(digest, hex);
    free(buffer);
    close(fd);
    return st;
}
