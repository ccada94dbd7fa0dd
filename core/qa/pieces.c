#include "qa/pieces.h"

#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

typedef enum { LETTER, DIGIT, UNDERSCORE, SPACE, OTHER, BROKEN, END } character_class;

static character_class classify(utf8proc_int32_t c)
{
    if (c == '_') return UNDERSCORE;
    if (c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F) || c == 0x85) return SPACE;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return LETTER;
    case UTF8PROC_CATEGORY_ND: return DIGIT;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return SPACE;
    default: return OTHER;
    }
}

/* Class and length of the character at text[at]; a broken byte has length 1. */
static character_class look(const char *text, size_t n, size_t at, size_t *length)
{
    utf8proc_int32_t c;
    *length = 0;
    if (at >= n) return END;
    const utf8proc_ssize_t got = utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(n - at), &c);
    *length = got > 0 ? (size_t)got : 1;
    return got > 0 ? classify(c) : BROKEN;
}

static size_t fixed_piece(const char *text, size_t n)
{
    static const char *const fixed[] = { "? A:", "Q:", ".\n", "\n" };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const size_t length = strlen(fixed[i]);
        if (n >= length && !memcmp(text, fixed[i], length)) return length;
    }
    return 0;
}

/* "'s" at the end of a word. */
static bool possessive(const char *text, size_t n)
{
    size_t length;
    if (n < 2 || text[0] != '\'' || text[1] != 's') return false;
    const character_class next = look(text, n, 2, &length);
    return next != LETTER && next != DIGIT && next != UNDERSCORE;
}

size_t grq_piece_length(const char *text, size_t n)
{
    const size_t fixed = fixed_piece(text, n);
    if (fixed) return fixed;
    const size_t lead = text[0] == ' ' ? 1 : 0;
    size_t length, first_length;
    const character_class first = look(text, n, lead, &first_length);
    if (first == LETTER) {
        size_t at = lead + first_length;
        while (look(text, n, at, &length) == LETTER && at + length <= PIECE_MAX_BYTES) at += length;
        return at;
    }
    if (!lead && possessive(text, n)) return 2;
    if (first == DIGIT || first == OTHER) return lead + first_length;
    look(text, n, 0, &length);
    return length;
}
