/* base/utf8.h - strict UTF-8, one character at a time (Unicode 15, table 3-7). */
#ifndef GATERQ_BASE_UTF8_H
#define GATERQ_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes of the character at `text`, 1 to 4; 0 where there is none: stray or missing continuation bytes, overlong
 * forms, surrogates, beyond U+10FFFF, or cut off by the end. */
static inline size_t grq_utf8_length(const char *text, size_t n_bytes)
{
    const unsigned char *const s = (const unsigned char *)text;
    if (n_bytes == 0) return 0;
    if (s[0] < 0x80) return 1;
    const size_t n = s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    if (n == 0 || n > n_bytes) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90)) return 0; /* overlong */
    if ((s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF4 && s[1] > 0x8F)) return 0; /* surrogate; too large */
    return n;
}

static inline bool grq_utf8_valid(const char *text)
{
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n)
        if ((n = grq_utf8_length(text, left)) == 0) return false;
    return true;
}

#endif
