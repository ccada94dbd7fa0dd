#include "qa/text_class.h"

#include <utf8proc.h>

int32_t grq_text_look(const char *text, size_t n, size_t at, size_t *length)
{
    const unsigned char first = (unsigned char)text[at];
    utf8proc_int32_t c;
    *length = 1;
    if (first < 0x80) return first;
    const utf8proc_ssize_t got = utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(n - at), &c);
    if (got <= 0) return -1;
    *length = (size_t)got;
    return c;
}

bool grq_char_is_word(int32_t c)
{
    if (c < 0x80) return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return true;
    default: return false;
    }
}

bool grq_char_is_space(int32_t c)
{
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool grq_char_is_upper(int32_t c)
{
    if (c < 0x80) return c >= 'A' && c <= 'Z';
    if (utf8proc_category(c) == UTF8PROC_CATEGORY_LU) return true;
    return (c >= 0x2160 && c <= 0x216F) || (c >= 0x24B6 && c <= 0x24CF) || /* Roman numerals, circled letters */
           (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

void grq_text_strip(const char **text, size_t *n)
{
    size_t length;
    while (*n && grq_char_is_space(grq_text_look(*text, *n, 0, &length))) {
        *text += length;
        *n -= length;
    }
    while (*n) {
        size_t last = *n - 1;
        while (last > 0 && *n - last < 4 && ((unsigned char)(*text)[last] & 0xC0) == 0x80) last--;
        const int32_t c = grq_text_look(*text, *n, last, &length);
        if (last + length != *n || !grq_char_is_space(c)) return;
        *n = last;
    }
}
