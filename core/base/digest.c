/* The only file that knows OpenSSL. */
#include "gaterq/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHA256_BYTES = 32, READ_BYTES = 1 << 20 };

static void to_hex(const unsigned char digest[SHA256_BYTES], char hex[GRQ_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < SHA256_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * SHA256_BYTES] = '\0';
}

grq_status grq_sha256(const void *bytes, size_t n_bytes, char hex[GRQ_SHA256_HEX], grq_error *err)
{
    unsigned char digest[SHA256_BYTES];
    hex[0] = '\0';
    if (EVP_Digest(bytes, n_bytes, digest, NULL, EVP_sha256(), NULL) != 1)
        return grq_fail(err, GRQ_E_NOMEM, "SHA-256 of %zu bytes failed inside OpenSSL", n_bytes);
    to_hex(digest, hex);
    return GRQ_OK;
}

static grq_status digest_stream(int fd, const char *path, EVP_MD_CTX *context, void *buffer, grq_error *err)
{
    for (;;) {
        const ssize_t n = read(fd, buffer, READ_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
        if (n == 0) return GRQ_OK;
        if (EVP_DigestUpdate(context, buffer, (size_t)n) != 1)
            return grq_fail(err, GRQ_E_NOMEM, "%s: SHA-256 failed inside OpenSSL", path);
    }
}

grq_status grq_sha256_file(const char *path, char hex[GRQ_SHA256_HEX], grq_error *err)
{
    hex[0] = '\0';
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    unsigned char digest[SHA256_BYTES];
    void *const buffer = malloc(READ_BYTES);
    EVP_MD_CTX *const context = EVP_MD_CTX_new();
    grq_status st = GRQ_OK;
    if (!buffer || !context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1)
        st = grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its SHA-256", path);
    if (st == GRQ_OK) st = digest_stream(fd, path, context, buffer, err);
    if (st == GRQ_OK && EVP_DigestFinal_ex(context, digest, NULL) != 1)
        st = grq_fail(err, GRQ_E_NOMEM, "%s: SHA-256 failed inside OpenSSL", path);
    if (st == GRQ_OK) to_hex(digest, hex);
    EVP_MD_CTX_free(context);
    free(buffer);
    close(fd);
    return st;
}
