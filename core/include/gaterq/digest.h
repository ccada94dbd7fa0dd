/* gaterq/digest.h - SHA-256 of bytes and files (OpenSSL underneath). */
#ifndef GATERQ_DIGEST_H
#define GATERQ_DIGEST_H

#include <stddef.h>

#include "gaterq/status.h"

enum { GRQ_SHA256_HEX = 65 }; /* 64 lower-case hex digits and a NUL */

grq_status grq_sha256(const void *bytes, size_t n_bytes, char hex[GRQ_SHA256_HEX], grq_error *err);
grq_status grq_sha256_file(const char *path, char hex[GRQ_SHA256_HEX], grq_error *err); /* streams; any size */

#endif
