/* Comparing one output with the accepted answers. */
#include "gaterq/match.h"

#include "base/utf8.h"
#include "qa/match_internal.h"
#include "qa/names.h"
#include "qa/text_case.h"
#include "qa/token_f1.h"

/* ---- comparing ---- */

/* The output holds the answer as it is, or lower-cased, or capitalised; the output itself is never changed. */
static bool holds_a_case(const char *text, const char *answer, bool *holds)
{
    *holds = strstr(text, answer) != NULL;
    /* No form is shorter than a third of the answer (the Kelvin sign, three bytes, becomes a "k"). */
    if (*holds || strlen(answer) / 3 > strlen(text)) return true;
    char *const lower = grq_text_lower(answer), *const capital = grq_text_capitalize(answer);
    const bool made = lower && capital;
    if (made) *holds = strstr(text, lower) || strstr(text, capital);
    free(lower);
    free(capital);
    return made;
}

/* One answer, both sides cleaned; false when out of memory. */
static bool compare(const struct grq_match_how *h, const text_buffer *output, const text_buffer *gold, double *score)
{
    bool right = false, made = true;
    switch (h->compare) {
    case EQUAL: right = output->n == gold->n && !memcmp(output->text, gold->text, gold->n); break;
    case CONTAINS: right = strstr(output->text, gold->text) != NULL; break;
    case CONTAINS_CASES: made = holds_a_case(output->text, gold->text, &right); break;
    case STARTS: right = output->n >= gold->n && !memcmp(output->text, gold->text, gold->n); break;
    case F1: return grq_token_f1(output, gold, false, score);
    case F1_SET: return grq_token_f1(output, gold, true, score);
    case F1_STRICT_WORDS: return grq_token_f1_strict(output, gold, score);
    }
    *score = right;
    return made;
}

static bool begins_with_another(const char *const *accepted, size_t n_accepted, size_t i)
{
    for (size_t k = 0; k < n_accepted; k++) {
        const size_t n = strlen(accepted[k]);
        if (n < strlen(accepted[i]) && !strncmp(accepted[i], accepted[k], n)) return true;
    }
    return false;
}

/* An accepted answer of no character at all is in every text; it is no answer. */
static bool is_no_answer(const struct grq_match_how *h, const char *answer, const text_buffer *gold)
{
    const bool verbatim = h->gold == grq_clean_copy && (h->compare == CONTAINS || h->compare == CONTAINS_CASES);
    return verbatim ? !*answer : h->empty_gold_is_nothing && gold->n == 0;
}

static grq_status refuse_text(const struct grq_match_how *h, const char *what, const char *text, grq_error *err)
{
    const bool as_it_is = h->gold == grq_clean_copy; /* bytes are compared as they are */
    return as_it_is || grq_utf8_valid(text) ? GRQ_OK : grq_fail(err, GRQ_E_DATA, "%s is not valid UTF-8", what);
}

static grq_status prepare(const grq_match_rule *rule, const grq_match_cut **cut, const char *output, grq_error *err)
{
    if (rule->kind == GRQ_MATCH_LIKELIHOOD)
        return grq_fail(err, GRQ_E_USAGE, "rule %s compares log-likelihoods, not outputs", rule->name);
    const grq_status st = refuse_text(rule->how, "the output", output, err);
    return st == GRQ_OK && !*cut ? grq_match_cut_find(rule->cut ? rule->cut : "whole", cut, err) : st;
}

grq_status grq_match_score(const grq_match_rule *rule, const grq_match_cut *cut, const char *output,
                           const char *const *accepted, size_t n_accepted, double *score, grq_error *err)
{
    rule = grq_match_rule_itself(rule);
    *score = 0;
    grq_status st = prepare(rule, &cut, output, err);
    if (st != GRQ_OK) return st;
    const struct grq_match_how *const h = rule->how;
    size_t n = strlen(output);
    cut->cut(&output, &n);
    if (n == 0 && h->empty_output_is_wrong) return GRQ_OK;
    text_buffer cleaned = { 0 }, gold = { 0 };
    bool made = h->output(output, n, &cleaned);
    for (size_t i = 0; made && st == GRQ_OK && i < n_accepted && *score < 1; i++) {
        double one = 0;
        if (h->drops_extensions && begins_with_another(accepted, n_accepted, i)) continue;
        st = refuse_text(h, "an accepted answer", accepted[i], err);
        made = st == GRQ_OK && h->gold(accepted[i], strlen(accepted[i]), &gold);
        if (made && !is_no_answer(h, accepted[i], &gold)) made = compare(h, &cleaned, &gold, &one);
        if (one > *score) *score = one;
    }
    text_buffer_free(&cleaned);
    text_buffer_free(&gold);
    if (st != GRQ_OK || made) return st;
    return grq_fail(err, GRQ_E_NOMEM, "no memory to compare an answer");
}

grq_status grq_match(const grq_match_rule *rule, const char *output, const char *const *accepted, size_t n_accepted,
                     bool *correct, grq_error *err)
{
    double score;
    const grq_status st = grq_match_score(rule, NULL, output, accepted, n_accepted, &score, err);
    *correct = st == GRQ_OK && score == 1;
    return st;
}

grq_status grq_match_compared(const grq_match_rule *rule, const grq_match_cut *cut, const char *output, char **compared,
                              grq_error *err)
{
    rule = grq_match_rule_itself(rule);
    *compared = NULL;
    const grq_status st = prepare(rule, &cut, output, err);
    if (st != GRQ_OK) return st;
    size_t n = strlen(output);
    cut->cut(&output, &n);
    text_buffer cleaned = { 0 };
    if (!rule->how->output(output, n, &cleaned)) {
        text_buffer_free(&cleaned);
        return grq_fail(err, GRQ_E_NOMEM, "no memory to compare an answer");
    }
    *compared = cleaned.text;
    return GRQ_OK;
}

/* ---- normalisations by name ---- */

static const struct {
    const char *name;
    text_step *clean;
} normalizations[] = {
    { "squad_v1", grq_clean_squad },
    { "triviaqa_official", grq_clean_triviaqa },
    { "nq_open_official", grq_clean_nq_open },
    { "lm_eval_triviaqa", grq_clean_lm_eval_triviaqa },
    { "lm_eval_nq_open", grq_clean_lm_eval_nq_open },
    { "opencompass_general", grq_clean_opencompass },
};

static const char *normalization_name(size_t index)
{
    return index < sizeof normalizations / sizeof *normalizations ? normalizations[index].name : NULL;
}

grq_status grq_normalize(const char *name, const char *text, char **out, grq_error *err)
{
    text_buffer made = { 0 };
    *out = NULL;
    if (!grq_utf8_valid(text)) return grq_fail(err, GRQ_E_DATA, "the text is not valid UTF-8");
    for (size_t i = 0; normalization_name(i); i++) {
        if (strcmp(name, normalization_name(i))) continue;
        if (!normalizations[i].clean(text, strlen(text), &made)) {
            text_buffer_free(&made);
            return grq_fail(err, GRQ_E_NOMEM, "no memory to normalise a text");
        }
        *out = made.text;
        return GRQ_OK;
    }
    return grq_fail_names(err, "normalisation", name, normalization_name);
}
