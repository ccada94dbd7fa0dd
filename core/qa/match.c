#include "gaterq/match.h"

#include <stdlib.h>
#include <string.h>

#include "qa/text_case.h"

/* ---- exact ---- */

static const char *skip_space(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

static grq_status match_exact(const char *output, const char *const *accepted, size_t n_accepted, bool *correct,
                              grq_error *err)
{
    (void)err;
    const char *start = skip_space(output);
    size_t n = strlen(start);
    while (n && strchr(" \t\r\n", start[n - 1])) n--;
    *correct = false;
    for (size_t i = 0; i < n_accepted && !*correct; i++)
        *correct = strlen(accepted[i]) == n && !memcmp(accepted[i], start, n);
    return GRQ_OK;
}

/* ---- PopQA ---- */

/* One leading blank line dropped, then the first line. The caller frees. */
static char *first_line(const char *output)
{
    const char *start = !strncmp(output, "\n\n", 2) ? output + 2 : output;
    return strndup(start, strcspn(start, "\n"));
}

/* The line holds the alias as it is, or lower-cased, or capitalised; the line itself is never changed. */
static grq_status holds_alias(const char *line, const char *alias, bool *holds, grq_error *err)
{
    *holds = strstr(line, alias) != NULL;
    /* No form is shorter than a third of the alias (the Kelvin sign, three bytes, becomes a "k"). */
    if (*holds || strlen(alias) / 3 > strlen(line)) return GRQ_OK;
    char *lower = grq_text_lower(alias), *capital = grq_text_capitalize(alias);
    const bool made = lower && capital;
    if (made) *holds = strstr(line, lower) || strstr(line, capital);
    free(lower);
    free(capital);
    return made ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory to compare an answer");
}

static grq_status match_popqa(const char *output, const char *const *accepted, size_t n_accepted, bool *correct,
                              grq_error *err)
{
    char *line = first_line(output);
    if (!line) return grq_fail(err, GRQ_E_NOMEM, "no memory to compare an answer");
    grq_status st = GRQ_OK;
    *correct = false;
    for (size_t i = 0; st == GRQ_OK && i < n_accepted && !*correct; i++)
        st = holds_alias(line, accepted[i], correct, err);
    free(line);
    return st;
}

/* ---- by name ---- */

static const grq_match_rule rules[] = {
    { "popqa_contains", "PopQA: the first line contains an accepted answer, as it is, lower-cased or capitalised",
      match_popqa },
    { "exact", "the whole output, trimmed, equals an accepted answer", match_exact },
};

grq_status grq_match_rule_find(const char *name, const grq_match_rule **out, grq_error *err)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].name, name)) {
            *out = &rules[i];
            return GRQ_OK;
        }
    return grq_fail(err, GRQ_E_USAGE, "matching rule \"%s\" is not known: popqa_contains or exact", name);
}
