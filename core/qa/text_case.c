#include "qa/text_case.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { CAPITAL_SIGMA = 0x3A3, SMALL_SIGMA = 0x3C3, FINAL_SIGMA = 0x3C2, CAPITAL_I_DOT = 0x130, COMBINING_DOT = 0x307 };

/* Characters whose title case is more than one character (Unicode SpecialCasing, unconditional). */
static const struct {
    utf8proc_int32_t from;
    const char *to;
} long_titles[] = {
    { 0xDF, "Ss" },
    { 0x149, "\u02BCN" },
    { 0x1F0, "J\u030C" },
    { 0x390, "\u0399\u0308\u0301" },
    { 0x3B0, "\u03A5\u0308\u0301" },
    { 0x587, "\u0535\u0582" },
    { 0x1E96, "H\u0331" },
    { 0x1E97, "T\u0308" },
    { 0x1E98, "W\u030A" },
    { 0x1E99, "Y\u030A" },
    { 0x1E9A, "A\u02BE" },
    { 0x1F50, "\u03A5\u0313" },
    { 0x1F52, "\u03A5\u0313\u0300" },
    { 0x1F54, "\u03A5\u0313\u0301" },
    { 0x1F56, "\u03A5\u0313\u0342" },
    { 0x1FB2, "\u1FBA\u0345" },
    { 0x1FB4, "\u0386\u0345" },
    { 0x1FB6, "\u0391\u0342" },
    { 0x1FB7, "\u0391\u0342\u0345" },
    { 0x1FC2, "\u1FCA\u0345" },
    { 0x1FC4, "\u0389\u0345" },
    { 0x1FC6, "\u0397\u0342" },
    { 0x1FC7, "\u0397\u0342\u0345" },
    { 0x1FD2, "\u0399\u0308\u0300" },
    { 0x1FD3, "\u0399\u0308\u0301" },
    { 0x1FD6, "\u0399\u0342" },
    { 0x1FD7, "\u0399\u0308\u0342" },
    { 0x1FE2, "\u03A5\u0308\u0300" },
    { 0x1FE3, "\u03A5\u0308\u0301" },
    { 0x1FE4, "\u03A1\u0313" },
    { 0x1FE6, "\u03A5\u0342" },
    { 0x1FE7, "\u03A5\u0308\u0342" },
    { 0x1FF2, "\u1FFA\u0345" },
    { 0x1FF4, "\u038F\u0345" },
    { 0x1FF6, "\u03A9\u0342" },
    { 0x1FF7, "\u03A9\u0342\u0345" },
    { 0xFB00, "Ff" },
    { 0xFB01, "Fi" },
    { 0xFB02, "Fl" },
    { 0xFB03, "Ffi" },
    { 0xFB04, "Ffl" },
    { 0xFB05, "St" },
    { 0xFB06, "St" },
    { 0xFB13, "\u0544\u0576" },
    { 0xFB14, "\u0544\u0565" },
    { 0xFB15, "\u0544\u056B" },
    { 0xFB16, "\u054E\u0576" },
    { 0xFB17, "\u0544\u056D" },
};

/* The character at text[at] and its length; a broken byte gives -1 and length 1. */
static utf8proc_int32_t look(const char *text, size_t n, size_t at, size_t *length)
{
    utf8proc_int32_t c;
    const utf8proc_ssize_t got = utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(n - at), &c);
    *length = got > 0 ? (size_t)got : 1;
    return got > 0 ? c : -1;
}

/* Unicode's Cased, as far as the sigma rule needs it: modifier letters are cased too, but they are ignorable first. */
static bool is_cased(utf8proc_int32_t c)
{
    static const struct {
        utf8proc_int32_t first, last;
    } others[] = {
        { 0xAA, 0xAA },       { 0xBA, 0xBA },       { 0x2160, 0x217F },   /* ordinals, Roman numerals */
        { 0x24B6, 0x24E9 },                                               /* circled letters */
        { 0x1F130, 0x1F149 }, { 0x1F150, 0x1F169 }, { 0x1F170, 0x1F189 }, /* letters in squares */
    };
    if (c < 0) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (c >= others[i].first && c <= others[i].last) return true;
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT;
}

/* Unicode's Case_Ignorable: marks, and punctuation that may stand inside a word. Neither begins nor ends a word. */
static bool is_ignorable(utf8proc_int32_t c)
{
    static const utf8proc_int32_t inside[] = { '\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                               0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A };
    if (c < 0) return false;
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (c == inside[i]) return true;
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK;
}

/* A capital sigma at text[at] ends a word: a cased letter stands before it and none after, ignorable characters aside.
 */
static bool ends_word(const char *text, size_t n, size_t at, bool cased_before)
{
    size_t length;
    if (!cased_before) return false;
    for (size_t i = at + 2; i < n; i += length) {
        const utf8proc_int32_t c = look(text, n, i, &length);
        if (is_cased(c)) return false;
        if (!is_ignorable(c)) return true;
    }
    return true;
}

/* The text being made; it has room, see GRQ_TEXT_CASE_BYTES: the longest of long_titles has 6 bytes. */
typedef struct {
    char *text;
    size_t n;
} output;

static void put(output *to, utf8proc_int32_t c)
{
    to->n += (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)to->text + to->n);
}

static void put_text(output *to, const char *text, size_t n)
{
    memcpy(to->text + to->n, text, n);
    to->n += n;
}

/* `cased` says whether the last character that is not ignorable was a cased letter. */
static void put_lower(output *to, const char *text, size_t n, size_t at, utf8proc_int32_t c, size_t length, bool cased)
{
    if (c < 0) put_text(to, text + at, length);
    else if (c == CAPITAL_SIGMA) put(to, ends_word(text, n, at, cased) ? FINAL_SIGMA : SMALL_SIGMA);
    else if (c == CAPITAL_I_DOT) {
        put(to, 'i');
        put(to, COMBINING_DOT);
    } else put(to, utf8proc_tolower(c));
}

static void put_title(output *to, utf8proc_int32_t c)
{
    for (size_t i = 0; i < sizeof long_titles / sizeof *long_titles; i++)
        if (c == long_titles[i].from) {
            put_text(to, long_titles[i].to, strlen(long_titles[i].to));
            return;
        }
    put(to, utf8proc_totitle(c));
}

/* Letters, digits and spaces of ASCII need no look at Unicode's tables; whether a cased letter came before is kept up.
 */
static bool put_plain(output *to, char c, bool *cased)
{
    const char letter = (char)(c | 0x20);
    const bool is_letter = letter >= 'a' && letter <= 'z';
    if (!is_letter && c != ' ' && !(c >= '0' && c <= '9')) return false;
    to->text[to->n++] = is_letter ? letter : c;
    *cased = is_letter;
    return true;
}

static size_t convert(const char *text, size_t n, bool capitalize, char *made)
{
    output to = { .text = made };
    size_t length;
    bool cased = false;
    for (size_t at = 0; at < n; at += length) {
        length = 1;
        if (!(capitalize && at == 0) && put_plain(&to, text[at], &cased)) continue;
        const utf8proc_int32_t c = look(text, n, at, &length);
        if (capitalize && at == 0 && c >= 0) put_title(&to, c);
        else put_lower(&to, text, n, at, c, length, cased);
        if (!is_ignorable(c)) cased = is_cased(c);
    }
    to.text[to.n] = '\0';
    return to.n;
}

static char *convert_new(const char *text, bool capitalize)
{
    const size_t n = strlen(text);
    char *made = malloc(GRQ_TEXT_CASE_BYTES(n));
    if (made) convert(text, n, capitalize, made);
    return made;
}

size_t grq_text_lower_to(const char *text, size_t n, char *to)
{
    return convert(text, n, false, to);
}

char *grq_text_lower(const char *text)
{
    return convert_new(text, false);
}

char *grq_text_capitalize(const char *text)
{
    return convert_new(text, true);
}
