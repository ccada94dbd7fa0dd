/* base/sha256.h - SHA-256 of bytes that come in pieces. */
#ifndef GATERQ_BASE_SHA256_H
#define GATERQ_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/digest.h"
#include "gaterq/status.h"

enum { GRQ_SHA256_BYTES = 32 };

typedef struct grq_sha256_stream grq_sha256_stream;

grq_status grq_sha256_start(grq_sha256_stream **out, grq_error *err);
void grq_sha256_add(grq_sha256_stream *stream, const void *bytes, size_t n_bytes);
/* Ends the stream, whatever is returned. */
grq_status grq_sha256_finish(grq_sha256_stream *stream, uint8_t digest[GRQ_SHA256_BYTES], grq_error *err);
void grq_sha256_abandon(grq_sha256_stream *stream); /* takes NULL */

void grq_sha256_hex(const uint8_t digest[GRQ_SHA256_BYTES], char hex[GRQ_SHA256_HEX]);

#endif
