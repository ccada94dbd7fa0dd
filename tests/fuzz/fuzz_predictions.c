/* Predictions lines, and every rule and cut over the outputs that come out of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "gaterq/match.h"
#include "gaterq/predictions.h"
#include "gaterq/score.h"

enum { MAX_ITEMS = 8 }; /* that rules are tried on: the reader is the other half of this target */

static void match_all(const char *output, const char *const *accepted, size_t n_accepted)
{
    grq_error err;
    for (size_t i = 0; grq_match_rule_at(i); i++) {
        const grq_match_rule *const rule = grq_match_rule_at(i);
        if (rule->same_as || rule->kind == GRQ_MATCH_LIKELIHOOD) continue;
        for (size_t c = 0; grq_match_cut_at(c); c++) {
            double score;
            char *compared;
            fuzz_require(grq_match_score(rule, grq_match_cut_at(c), output, accepted, n_accepted, &score, &err) ==
                             GRQ_OK,
                         "valid texts are refused");
            fuzz_require(score >= 0 && score <= 1 && (rule->graded || score == 0 || score == 1), "no score");
            fuzz_require(grq_match_compared(rule, grq_match_cut_at(c), output, &compared, &err) == GRQ_OK, "compared");
            fuzz_require(grq_utf8_valid(compared), "a rule breaks a character");
            free(compared);
        }
    }
}

/* A text always equals itself once both are normalised; normalising twice is normalising once, where a rule says so. */
static void normalise(const char *text)
{
    static const char *const names[] = { "squad_v1", "triviaqa_official", "nq_open_official", "lm_eval_triviaqa" };
    grq_error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *once;
        fuzz_require(grq_normalize(names[i], text, &once, &err) == GRQ_OK, "a valid text is refused");
        fuzz_require(grq_utf8_valid(once), "a normalisation breaks a character");
        for (const char *c = once; *c; c++)
            fuzz_require((unsigned char)*c >= 0x80 || !strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", *c),
                         "punctuation is left");
        free(once);
    }
}

static void check_item(const grq_prediction *p)
{
    bool refusal;
    grq_error err;
    fuzz_touch(p->id, strlen(p->id) + 1);
    for (size_t i = 0; i < p->n_loglikelihoods; i++) fuzz_touch(&p->loglikelihoods[i], sizeof p->loglikelihoods[i]);
    if (p->n_loglikelihoods == GRQ_N_CHOICES) {
        const grq_choice choice = grq_choose(p->loglikelihoods);
        fuzz_require(choice.choice >= GRQ_NO_CHOICE && choice.choice < GRQ_N_CHOICES, "no choice");
    }
    if (!p->output) return;
    const char *const accepted[] = { p->id, p->output, "The \u0130 answer: A", "" };
    match_all(p->output, accepted, 1);
    match_all(p->id, accepted + 1, 3);
    normalise(p->output);
    fuzz_require(grq_match_is_refusal(p->output, &refusal, &err) == GRQ_OK, "a valid output is refused");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    grq_predictions p;
    grq_error err;
    const grq_status st = grq_predictions_parse("samples_cmmlu_anatomy_2024.jsonl", (const char *)data, size, &p, &err);
    if (st != GRQ_OK) {
        fuzz_refused(st, &err);
        fuzz_require(!p.items && !p.path, "a refused file is handed out");
        return 0;
    }
    fuzz_accepted = 1;
    for (size_t i = 0; i < p.n; i++) {
        if (i) fuzz_require(strcmp(p.items[i - 1].id, p.items[i].id) < 0, "ids do not ascend");
        fuzz_require(grq_predictions_find(&p, p.items[i].id) == &p.items[i], "an id is not found");
        if (i < MAX_ITEMS) check_item(&p.items[i]);
    }
    grq_predictions_close(&p);
    return 0;
}
