/* The cuts of raw outputs, by name. */
#include "gaterq/match.h"
#include "qa/names.h"
#include "qa/text_class.h"

static void whole(const char **text, size_t *n)
{
    (void)text, (void)n;
}

/* What stands before the first of the stop strings, as a generator that stops there leaves it. */
static void stop_at(const char *const *stops, size_t n_stops, const char *text, size_t *n)
{
    for (size_t i = 0; i < n_stops; i++) {
        const char *const at = memmem(text, *n, stops[i], strlen(stops[i]));
        if (at) *n = (size_t)(at - text);
    }
}

static void first_line(const char **text, size_t *n)
{
    static const char *const stops[] = { "\n" };
    stop_at(stops, 1, *text, n);
    grq_text_strip(text, n);
}

static void popqa_first_line(const char **text, size_t *n)
{
    static const char *const stops[] = { "\n" };
    if (*n >= 2 && !memcmp(*text, "\n\n", 2)) {
        *text += 2;
        *n -= 2;
    }
    stop_at(stops, 1, *text, n);
}

static void first_nonempty_line(const char **text, size_t *n)
{
    grq_text_strip(text, n);
    first_line(text, n);
}

static void lm_eval_until(const char **text, size_t *n)
{
    static const char *const stops[] = { "\n", ".", "," };
    stop_at(stops, 3, *text, n);
    grq_text_strip(text, n);
}

static void blank_line(const char **text, size_t *n)
{
    static const char *const stops[] = { "\n\n" };
    stop_at(stops, 1, *text, n);
}

static void question_or_line(const char **text, size_t *n)
{
    static const char *const stops[] = { "Q:", "\n" };
    stop_at(stops, 2, *text, n);
}

static void llama(const char **text, size_t *n)
{
    static const char *const stops[] = { "\n" };
    stop_at(stops, 1, *text, n);
    grq_text_strip(text, n);
    if (*n && ((*text)[*n - 1] == '.' || (*text)[*n - 1] == ',')) --*n;
}

static const grq_match_cut cuts[] = {
    { "whole", "the whole output", whole },
    { "first_line", "what stands before the first line break, without spaces at its ends", first_line },
    { "popqa_first_line", "PopQA: one leading blank line is dropped, then what stands before the first line break",
      popqa_first_line },
    { "first_nonempty_line", "the first line that is not blank, without spaces at its ends", first_nonempty_line },
    { "lm_eval_until", "what stands before the first line break, full stop or comma, without spaces at its ends",
      lm_eval_until },
    { "blank_line", "what stands before the first blank line", blank_line },
    { "question_or_line", "what stands before the first \"Q:\" or line break", question_or_line },
    { "llama", "first_line, and without one full stop or comma at its end", llama },
};

const grq_match_cut *grq_match_cut_at(size_t index)
{
    return index < sizeof cuts / sizeof *cuts ? &cuts[index] : NULL;
}

static const char *cut_name(size_t index)
{
    const grq_match_cut *const cut = grq_match_cut_at(index);
    return cut ? cut->name : NULL;
}

grq_status grq_match_cut_find(const char *name, const grq_match_cut **out, grq_error *err)
{
    static const char *const other_names[][2] = { { "none", "whole" },
                                                  { "popqa_paper_first_line", "popqa_first_line" } };
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (!strcmp(name, other_names[i][0])) name = other_names[i][1];
    for (size_t i = 0; cut_name(i); i++)
        if (!strcmp(name, cut_name(i))) {
            *out = &cuts[i];
            return GRQ_OK;
        }
    return grq_fail_names(err, "cut", name, cut_name);
}
