/* The normalisations, as passes over one buffer. Every pass but the lower-casing shortens, so it works in place. */
#include "qa/text_clean.h"

#include <utf8proc.h>

#include "qa/text_case.h"
#include "qa/text_class.h"

bool grq_clean_copy(const char *text, size_t n, text_buffer *out)
{
    return text_buffer_set(out, text, n);
}

bool grq_clean_strip(const char *text, size_t n, text_buffer *out)
{
    grq_text_strip(&text, &n);
    return text_buffer_set(out, text, n);
}

bool grq_clean_lower(const char *text, size_t n, text_buffer *out)
{
    if (!text_buffer_room(out, GRQ_TEXT_CASE_BYTES(n))) return false;
    out->n = grq_text_lower_to(text, n, out->text);
    return true;
}

/* ---- passes in place ---- */

static void end_at(text_buffer *b, size_t n)
{
    b->n = n;
    b->text[n] = '\0';
}

static void drop_punctuation(text_buffer *b)
{
    size_t to = 0;
    for (size_t at = 0; at < b->n; at++)
        if (!grq_char_is_ascii_punctuation((unsigned char)b->text[at])) b->text[to++] = b->text[at];
    end_at(b, to);
}

/* TriviaQA's: the ASCII ones (so the underscore too), both curly apostrophes and the acute accent become a space. */
static void punctuation_to_space(text_buffer *b)
{
    size_t to = 0, length;
    for (size_t at = 0; at < b->n; at += length) {
        const int32_t c = grq_text_look(b->text, b->n, at, &length);
        if (grq_char_is_ascii_punctuation(c) || c == 0x2018 || c == 0x2019 || c == 0xB4) {
            b->text[to++] = ' ';
            continue;
        }
        memmove(b->text + to, b->text + at, length);
        to += length;
    }
    end_at(b, to);
}

static bool starts_word(const text_buffer *b, size_t at)
{
    size_t length;
    return at < b->n && grq_char_is_word(grq_text_look(b->text, b->n, at, &length));
}

/* The length of the article that is a whole word at `at`, where a word may start; else 0. */
static size_t article_at(const text_buffer *b, size_t at, bool any_case)
{
    static const char *const articles[] = { "the", "an", "a" };
    const char lower = (char)(any_case ? b->text[at] | 0x20 : b->text[at]);
    if (lower != 'a' && lower != 't') return 0;
    for (size_t i = 0; i < sizeof articles / sizeof *articles; i++) {
        const size_t n = strlen(articles[i]);
        if (b->n - at < n || starts_word(b, at + n)) continue;
        if (any_case ? !strncasecmp(b->text + at, articles[i], n) : !memcmp(b->text + at, articles[i], n)) return n;
    }
    return 0;
}

/* a, an and the, where they are whole words. */
static void drop_articles(text_buffer *b, bool any_case, bool leave_space)
{
    size_t to = 0, length;
    bool in_word = false; /* the character before belongs to a word */
    for (size_t at = 0; at < b->n; at += length) {
        length = in_word ? 0 : article_at(b, at, any_case);
        if (length) {
            if (leave_space) b->text[to++] = ' ';
            in_word = true;
            continue;
        }
        in_word = grq_char_is_word(grq_text_look(b->text, b->n, at, &length));
        memmove(b->text + to, b->text + at, length);
        to += length;
    }
    end_at(b, to);
}

/* The harness's articles: in two spellings, with the space behind them, and only where a word may start. */
static void drop_lm_eval_articles(text_buffer *b)
{
    static const char *const articles[] = { "The ", "the ", "An ", "an ", "A ", "a " };
    size_t to = 0, length;
    bool in_word = false;
    for (size_t at = 0; at < b->n; at += length) {
        length = 0;
        for (size_t i = 0; !in_word && !length && i < sizeof articles / sizeof *articles; i++)
            if (!strncmp(b->text + at, articles[i], strlen(articles[i]))) length = strlen(articles[i]);
        if (length) continue; /* it ends with a space: a word may start after it */
        in_word = grq_char_is_word(grq_text_look(b->text, b->n, at, &length));
        memmove(b->text + to, b->text + at, length);
        to += length;
    }
    end_at(b, to);
}

/* Runs of spaces become one, none at the ends. */
static void collapse(text_buffer *b)
{
    size_t to = 0, length;
    bool gap = false;
    for (size_t at = 0; at < b->n; at += length) {
        const int32_t c = grq_text_look(b->text, b->n, at, &length);
        if (grq_char_is_space(c)) {
            gap = to > 0;
            continue;
        }
        if (gap) b->text[to++] = ' ';
        gap = false;
        memmove(b->text + to, b->text + at, length);
        to += length;
    }
    end_at(b, to);
}

static void keep_words_and_spaces(text_buffer *b)
{
    size_t to = 0, length;
    for (size_t at = 0; at < b->n; at += length) {
        const int32_t c = grq_text_look(b->text, b->n, at, &length);
        if (!grq_char_is_word(c) && !grq_char_is_space(c)) continue;
        memmove(b->text + to, b->text + at, length);
        to += length;
    }
    end_at(b, to);
}

/* ---- the six ---- */

bool grq_clean_squad(const char *text, size_t n, text_buffer *out)
{
    if (!grq_clean_lower(text, n, out)) return false;
    drop_punctuation(out);
    drop_articles(out, false, true);
    collapse(out);
    return true;
}

bool grq_clean_triviaqa(const char *text, size_t n, text_buffer *out)
{
    if (!grq_clean_lower(text, n, out)) return false;
    punctuation_to_space(out);
    drop_articles(out, false, true);
    collapse(out);
    return true;
}

static bool is_ascii(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= 0x80) return false;
    return true;
}

bool grq_clean_nq_open(const char *text, size_t n, text_buffer *out)
{
    if (is_ascii(text, n)) return grq_clean_squad(text, n, out);
    utf8proc_uint8_t *decomposed = NULL;
    const utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &decomposed,
                                                 UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    const bool made = length >= 0 && grq_clean_squad((const char *)decomposed, (size_t)length, out);
    free(decomposed);
    return made;
}

bool grq_clean_lm_eval_triviaqa(const char *text, size_t n, text_buffer *out)
{
    if (!grq_clean_lower(text, n, out)) return false;
    drop_punctuation(out);
    return true;
}

bool grq_clean_lm_eval_triviaqa_output(const char *text, size_t n, text_buffer *out)
{
    grq_text_strip(&text, &n);
    return grq_clean_lm_eval_triviaqa(text, n, out);
}

bool grq_clean_lm_eval_nq_open(const char *text, size_t n, text_buffer *out)
{
    text_buffer without = { 0 };
    bool made = text_buffer_set(&without, text, n);
    if (made) drop_lm_eval_articles(&without);
    made = made && grq_clean_lm_eval_triviaqa(without.text, without.n, out);
    text_buffer_free(&without);
    return made;
}

bool grq_clean_lm_eval_nq_open_output(const char *text, size_t n, text_buffer *out)
{
    grq_text_strip(&text, &n);
    return grq_clean_lm_eval_nq_open(text, n, out);
}

/* ---- OpenCompass ---- */

static void opencompass_in_place(text_buffer *b)
{
    end_at(b, strcspn(b->text, "\n.,"));
    keep_words_and_spaces(b);
    drop_articles(b, true, false);
    collapse(b);
}

bool grq_clean_opencompass(const char *text, size_t n, text_buffer *out)
{
    if (!text_buffer_set(out, text, n)) return false;
    opencompass_in_place(out);
    return true;
}

bool grq_clean_opencompass_gold(const char *text, size_t n, text_buffer *out)
{
    text_buffer cased = { 0 };
    const bool made = grq_clean_opencompass(text, n, &cased) && grq_clean_lower(cased.text, cased.n, out);
    text_buffer_free(&cased);
    return made;
}

bool grq_clean_opencompass_general_output(const char *text, size_t n, text_buffer *out)
{
    if (!grq_clean_lower(text, n, out)) return false;
    opencompass_in_place(out);
    return true;
}

static void keep_after_last(text_buffer *b, const char *mark)
{
    const size_t n_mark = strlen(mark);
    size_t from = 0;
    for (const char *at; (at = strstr(b->text + from, mark));) from = (size_t)(at - b->text) + n_mark;
    text_buffer_keep(b, from, b->n - from);
}

static bool first_line_lower(const char *text, size_t n, text_buffer *out)
{
    grq_text_strip(&text, &n);
    const char *const newline = n ? memchr(text, '\n', n) : NULL;
    return grq_clean_lower(text, newline ? (size_t)(newline - text) : n, out);
}

bool grq_clean_opencompass_triviaqa_output(const char *text, size_t n, text_buffer *out)
{
    if (!first_line_lower(text, n, out)) return false;
    keep_after_last(out, "answer is");
    keep_after_last(out, "a:");
    keep_after_last(out, "answer:");
    opencompass_in_place(out);
    return true;
}

bool grq_clean_opencompass_nq_output(const char *text, size_t n, text_buffer *out)
{
    if (!first_line_lower(text, n, out)) return false;
    keep_after_last(out, "answer is");
    opencompass_in_place(out);
    return true;
}
