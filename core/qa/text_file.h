/* qa/text_file.h - whole files of text. */
#ifndef GATERQ_QA_TEXT_FILE_H
#define GATERQ_QA_TEXT_FILE_H

#include <stddef.h>

#include "gaterq/status.h"

/* Reads a file of valid UTF-8 without NUL bytes, less its byte order mark; anything else is an error with its line. The
 * caller frees *text: n bytes and a NUL. */
grq_status grq_text_file_read(const char *path, char **text, size_t *n, grq_error *err);

#endif
