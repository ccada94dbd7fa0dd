/* core/qa/text_class.h - classes of characters with the meaning that Python's `re` and str.split() give them, which the
 * published scripts rely on: \w is letters, digits and whatever has a numeric value, and the underscore. */
#ifndef GATERQ_TEXT_CLASS_H
#define GATERQ_TEXT_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at text[at] of n bytes and its length; a broken byte gives -1 and length 1. */
int32_t grq_text_look(const char *text, size_t n, size_t at, size_t *length);

bool grq_char_is_word(int32_t c);  /* \w */
bool grq_char_is_space(int32_t c); /* \s, and what split() and strip() take away */
bool grq_char_is_upper(int32_t c); /* isupper() of one character */

static inline bool grq_char_is_ascii_punctuation(int32_t c)
{
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
}

/* Takes the spaces off both ends: moves *text and shortens *n. */
void grq_text_strip(const char **text, size_t *n);

#endif
