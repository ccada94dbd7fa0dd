/* base/json_check.h - the JSON grammar (RFC 8259), strictly, over bytes. */
#ifndef GATERQ_BASE_JSON_CHECK_H
#define GATERQ_BASE_JSON_CHECK_H

#include <stddef.h>

#include "gaterq/status.h"

enum { GRQ_JSON_MAX_DEPTH = 200 };

/* Accepts exactly one JSON value in UTF-8, surrounded by JSON whitespace at most; anything else is refused as
 * "name:line:column: ...". Stricter than the RFC where a value could not be represented faithfully afterwards: no NUL,
 * no lone surrogate, no byte order mark, numbers of at most 63 characters, at most GRQ_JSON_MAX_DEPTH levels.
 * `n_values` counts the values inside, the root included. */
grq_status grq_json_check(const char *name, const char *text, size_t n_bytes, size_t *n_values, grq_error *err);

#endif
