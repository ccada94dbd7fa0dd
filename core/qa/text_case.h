/* core/qa/text_case.h - lower() and capitalize() with Python's meaning, which the published metrics rely on.
 *
 * Full Unicode mappings without locale: a capital I with dot becomes two characters, a capital sigma at the end of a
 * word becomes the final one; capitalize() title-cases the first character and lower-cases all others. Broken bytes
 * pass. */
#ifndef GATERQ_TEXT_CASE_H
#define GATERQ_TEXT_CASE_H

#include <stddef.h>

/* Lower case never takes more than three bytes for two (U+0130, U+023A, U+023E); title case adds a few at the start. */
#define GRQ_TEXT_CASE_BYTES(n) ((n) + (n) / 2 + 9)
/* Writes the lower case of n bytes and a NUL to `to` (GRQ_TEXT_CASE_BYTES(n)); returns its length. */
size_t grq_text_lower_to(const char *text, size_t n, char *to);

/* The caller frees; NULL when out of memory. */
char *grq_text_lower(const char *text);
char *grq_text_capitalize(const char *text);

#endif
