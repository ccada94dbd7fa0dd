/* Choices: the letter of a chat answer by CMMLU's patterns, and the most likely of four. */
#include <math.h>

#include "gaterq/match.h"
#include "qa/choice_text.h"
#include "qa/text_class.h"

/* ---- patterns ---- */

typedef enum { END, WORD, MAYBE, LETTER } part_kind;

/* WORD and MAYBE take one of `words`, separated by '|'; MAYBE tries without one too. LETTER is A to D. */
typedef struct {
    part_kind kind;
    const char *words;
} part;

enum { MAX_PARTS = 8 };

#define ONE(words)                                                                                                     \
    {                                                                                                                  \
        WORD, words                                                                                                    \
    }
#define OPT(words)                                                                                                     \
    {                                                                                                                  \
        MAYBE, words                                                                                                   \
    }
#define CHOICE                                                                                                         \
    {                                                                                                                  \
        LETTER, NULL                                                                                                   \
    }

static const part patterns[][MAX_PARTS] = {
    { ONE("答案"), OPT("选项"), ONE("是|为"), OPT("："), OPT(" "), CHOICE },
    { ONE("答案"), ONE("是|为"), ONE("选项"), OPT(" "), CHOICE },
    { OPT("故"), ONE("选"), OPT("择"), OPT("："), OPT(" "), CHOICE },
    { CHOICE, OPT(" "), OPT("选"), ONE("项"), OPT("是|为"), ONE("正确") },
    { ONE("正确"), OPT("的"), ONE("选项"), ONE("是|为"), OPT(" "), CHOICE },
    { ONE("答案"), OPT("应该"), ONE("是|为"), CHOICE },
    { ONE("选项"), OPT(" "), CHOICE, OPT(" "), OPT("是|为"), ONE("正确") },
    { ONE("选择答案"), OPT(" "), CHOICE },
    { ONE("答"), OPT("案"), OPT("："), CHOICE },
    { CHOICE, OPT("选项|项"), OPT("是"), ONE("符合题意") },
    { ONE("答案选项"), OPT("："), OPT(" "), CHOICE },
};

static bool is_letter(char c)
{
    return c >= 'A' && c <= 'D';
}

static bool match_here(const part *p, const char *text, const char *end, char *letter);

static bool match_word(const part *p, const char *text, const char *end, char *letter)
{
    for (const char *word = p->words; *word;) {
        const size_t n = strcspn(word, "|");
        if ((size_t)(end - text) >= n && !memcmp(text, word, n) && match_here(p + 1, text + n, end, letter))
            return true;
        word += n + (word[n] == '|');
    }
    return p->kind == MAYBE && match_here(p + 1, text, end, letter);
}

/* The parts from p on match at `text`. Each try sets *letter anew; the last one to set it is the one that matched. */
static bool match_here(const part *p, const char *text, const char *end, char *letter)
{
    switch (p->kind) {
    case END: return true;
    case WORD:
    case MAYBE: return match_word(p, text, end, letter);
    case LETTER:
        if (text == end || !is_letter(*text)) return false;
        *letter = *text;
        return match_here(p + 1, text + 1, end, letter);
    }
    return false;
}

static bool find_pattern(const part *pattern, const char *text, const char *end, char *letter)
{
    for (const char *at = text; at < end; at++)
        if (match_here(pattern, at, end, letter)) return true;
    return false;
}

/* The end of the line at `at`, which is its line break or the end of the text. */
static const char *end_of_line(const char *at, const char *end)
{
    const char *const newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline : end;
}

static const char *first_letter(const char *at, const char *end)
{
    while (at < end && !is_letter(*at)) at++;
    return at;
}

/* ---- the other rules, in their order ---- */

/* The last of the patterns: 答案, perhaps 选项, 为, and the first letter after it on its line. */
static bool letter_after(const char *text, const char *end, char *letter)
{
    static const char *const words[] = { "答案为", "答案选项为" };
    for (const char *line = text, *line_end; line < end; line = line_end + 1) {
        line_end = end_of_line(line, end);
        const char *first = NULL;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            const char *const at = memmem(line, (size_t)(line_end - line), words[i], strlen(words[i]));
            if (at && (!first || at < first)) first = at;
        }
        const char *const found = first ? first_letter(first, line_end) : line_end;
        if (found == line_end) continue;
        *letter = *found;
        return true;
    }
    return false;
}

/* The last letter before `word`, on the first line where a letter precedes it. */
static bool last_before(const char *text, const char *end, const char *word, char *letter)
{
    for (const char *line = text, *line_end; line < end; line = line_end + 1) {
        line_end = end_of_line(line, end);
        const char *const first = first_letter(line, line_end);
        const char *const at = memmem(first, (size_t)(line_end - first), word, strlen(word));
        for (const char *c = first; at && c < at; c++)
            if (is_letter(*c)) *letter = *c;
        if (at) return true;
    }
    return false;
}

/* Any character but 不, then 是 with an optional colon and space, then a letter. */
static bool weak_pattern(const char *text, const char *end, char *letter)
{
    static const part after[] = { ONE("是"), OPT("："), OPT(" "), CHOICE, { END, NULL } };
    static const char not [] = "不";
    for (const char *at = text + 1; at < end; at++) {
        const bool negated = at - text >= 3 && !memcmp(at - 3, not, 3);
        if (!negated && match_here(after, at, end, letter)) return true;
    }
    return false;
}

static bool only_letter(const char *text, const char *end, char *letter)
{
    size_t n = 0;
    for (const char *at = text; at < end; at++)
        if (is_letter(*at)) {
            *letter = *at;
            n++;
        }
    return n == 1;
}

static bool find_choice(const char *text, const char *end, char *letter)
{
    if (text < end && is_letter(*text)) {
        *letter = *text;
        return true;
    }
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (find_pattern(patterns[i], text, end, letter)) return true;
    return letter_after(text, end, letter) || last_before(text, end, "当选", letter) ||
           last_before(text, end, "正确", letter) || weak_pattern(text, end, letter) || only_letter(text, end, letter);
}

bool grq_choice_cmmlu(const char *text, size_t n, text_buffer *out)
{
    char letter = 0;
    const bool found = find_choice(text, text + n, &letter);
    return text_buffer_set(out, &letter, found ? 1 : 0);
}

bool grq_choice_first_capital(const char *text, size_t n, text_buffer *out)
{
    size_t length;
    for (size_t at = 0; at < n; at += length)
        if (grq_char_is_upper(grq_text_look(text, n, at, &length))) return text_buffer_set(out, text + at, length);
    return text_buffer_set(out, "", 0);
}

/* ---- likelihood ---- */

grq_choice grq_choose(const double loglikelihoods[GRQ_N_CHOICES])
{
    grq_choice out = { .choice = 0 };
    for (int i = 0; i < GRQ_N_CHOICES; i++) {
        if (isnan(loglikelihoods[i])) return (grq_choice){ .choice = GRQ_NO_CHOICE, .undefined = true };
        if (i == 0 || loglikelihoods[i] < loglikelihoods[out.choice]) continue;
        out.tied = loglikelihoods[i] == loglikelihoods[out.choice];
        if (!out.tied) out.choice = i;
    }
    return out;
}
