#include "gaterq/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "qa/id_list.h"
#include "qa/match_internal.h"

const char *const grq_refusal_sentence = "I do not know the answer to this question.";

/* ---- which prediction belongs to which item ---- */

static grq_status list_missing(const char *data, const grq_suite_item *items, size_t n_items,
                               const grq_predictions *predictions, const grq_prediction *const *of_item, grq_error *err)
{
    const char **const ids = calloc(n_items + 1, sizeof *ids);
    bool *const bad = calloc(n_items + 1, sizeof *bad);
    char list[ID_LIST_BYTES];
    size_t n_missing = 0;
    grq_status st = ids && bad ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory to score %s", predictions->path);
    for (size_t i = 0; st == GRQ_OK && i < n_items; i++) {
        ids[i] = items[i].id;
        bad[i] = !of_item[i];
        n_missing += bad[i];
    }
    if (n_missing) {
        id_list(ids, bad, n_items, list);
        st = grq_fail(err, GRQ_E_DATA,
                      "%s: %zu of %zu items of %s have no prediction (--partial scores those that have): %s",
                      predictions->path, n_missing, n_items, data, list);
    }
    free(ids);
    free(bad);
    return st;
}

static grq_status list_foreign(const char *data, const grq_predictions *predictions, const bool *used, size_t n_foreign,
                               grq_error *err)
{
    const char **const ids = calloc(predictions->n + 1, sizeof *ids);
    bool *const bad = calloc(predictions->n + 1, sizeof *bad);
    char list[ID_LIST_BYTES] = "";
    for (size_t i = 0; ids && bad && i < predictions->n; i++) {
        ids[i] = predictions->items[i].id;
        bad[i] = !used[i];
    }
    if (ids && bad) id_list(ids, bad, predictions->n, list);
    free(ids);
    free(bad);
    return grq_fail(err, GRQ_E_DATA, "%s: %zu predictions are of no item of %s: %s", predictions->path, n_foreign, data,
                    list);
}

grq_status grq_score_align(const char *suite, const char *data, const grq_suite_item *items, size_t n_items,
                           const grq_predictions *predictions, bool partial, const grq_prediction **of_item,
                           grq_error *err)
{
    bool *const used = calloc(predictions->n + 1, sizeof *used);
    if (!used) return grq_fail(err, GRQ_E_NOMEM, "no memory to score %s", predictions->path);
    grq_status st = GRQ_OK;
    size_t n_used = 0, n_items_used = 0;
    for (size_t i = 0; st == GRQ_OK && i < n_items; i++) {
        const grq_prediction *const p = of_item[i] = grq_predictions_find(predictions, items[i].id);
        if (!p) continue;
        n_items_used++;
        n_used += !used[p - predictions->items];
        used[p - predictions->items] = true;
        if (p->suite && strcmp(p->suite, suite) != 0)
            st = grq_fail(err, GRQ_E_DATA, "%s: line %zu, item %s is of suite %s, not %s", p->file, p->line, p->id,
                          p->suite, suite);
    }
    if (st == GRQ_OK && n_used != n_items_used) st = grq_fail(err, GRQ_E_DATA, "%s: two items have one id", data);
    if (st == GRQ_OK && n_used < predictions->n)
        st = list_foreign(data, predictions, used, predictions->n - n_used, err);
    if (st == GRQ_OK && !partial) st = list_missing(data, items, n_items, predictions, of_item, err);
    free(used);
    return st;
}

/* ---- scores ---- */

static grq_status score_likelihoods(const grq_suite_item *item, const grq_prediction *p, grq_rule_score *out,
                                    double *score, grq_error *err)
{
    if (p->n_loglikelihoods != GRQ_N_CHOICES)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, item %s has %zu \"loglikelihoods\"; rule %s wants %d", p->file,
                        p->line, p->id, p->n_loglikelihoods, out->rule->name, GRQ_N_CHOICES);
    const grq_choice choice = grq_choose(p->loglikelihoods);
    const char letter[2] = { (char)('A' + choice.choice), '\0' };
    out->n_tied += choice.tied;
    out->n_undefined += choice.undefined;
    out->n_no_choice += choice.choice == GRQ_NO_CHOICE;
    *score = 0;
    for (size_t k = 0; choice.choice != GRQ_NO_CHOICE && k < item->n_accepted; k++)
        if (!strcmp(item->accepted[k], letter)) *score = 1;
    return GRQ_OK;
}

static grq_status count_no_choice(const grq_prediction *p, grq_rule_score *out, grq_error *err)
{
    char *letter;
    const grq_status st = grq_match_compared(out->rule, out->cut, p->output, &letter, err);
    if (st == GRQ_OK) out->n_no_choice += !*letter;
    free(letter);
    return st;
}

/* What a rule compares with. TriviaQA's own script takes every answer; all other rules were published for its aliases,
 * and would accept more if they were given the normalised ones, whose punctuation has become spaces. */
static grq_answer_list answers_for(const grq_match_rule *rule, const grq_suite_item *item)
{
    const struct grq_match_how *const how = grq_match_rule_itself(rule)->how;
    if (item->aliases.n && !(how && how->takes_every_kind)) return item->aliases;
    return (grq_answer_list){ item->n_accepted, item->accepted };
}

/* What can be had for nothing. */
static grq_status score_floors(const grq_suite_item *item, grq_rule_score *out, grq_error *err)
{
    const grq_answer_list gold = answers_for(out->rule, item);
    double echo = 0, refusal = 0;
    grq_status st = GRQ_OK;
    if (item->question) st = grq_match_score(out->rule, out->cut, item->question, gold.texts, gold.n, &echo, err);
    if (st == GRQ_OK)
        st = grq_match_score(out->rule, out->cut, grq_refusal_sentence, gold.texts, gold.n, &refusal, err);
    out->n_question_echo += echo == 1;
    out->n_refusal_sentence += refusal == 1;
    return st;
}

static grq_status score_output(const grq_suite_item *item, const grq_prediction *p, grq_rule_score *out, double *score,
                               grq_error *err)
{
    if (!p->output)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, item %s has no \"output\", which rule %s wants", p->file,
                        p->line, p->id, out->rule->name);
    const grq_answer_list gold = answers_for(out->rule, item);
    grq_status st = grq_match_score(out->rule, out->cut, p->output, gold.texts, gold.n, score, err);
    const bool choice = grq_match_rule_itself(out->rule)->kind == GRQ_MATCH_CHOICE;
    if (st == GRQ_OK) st = choice ? count_no_choice(p, out, err) : score_floors(item, out, err);
    return st == GRQ_OK ? st : grq_fail_prefix(err, st, "%s: line %zu, item %s", p->file, p->line, p->id);
}

static grq_status choose_cut(grq_rule_score *out, const grq_match_cut *cut, const grq_match_cut *suite_cut,
                             grq_error *err)
{
    const grq_match_rule *const rule = grq_match_rule_itself(out->rule);
    if (rule->kind == GRQ_MATCH_LIKELIHOOD) return GRQ_OK;
    out->cut = cut ? cut : suite_cut;
    return !cut && rule->cut ? grq_match_cut_find(rule->cut, &out->cut, err) : GRQ_OK;
}

grq_status grq_score_by_rule(const grq_match_rule *rule, const grq_match_cut *cut, const grq_match_cut *suite_cut,
                             const grq_suite_item *items, size_t n_items, const grq_prediction *const *of_item,
                             grq_rule_score *out, grq_error *err)
{
    *out = (grq_rule_score){ .rule = rule, .scores = malloc((n_items + 1) * sizeof *out->scores) };
    grq_status st = out->scores ? choose_cut(out, cut, suite_cut, err)
                                : grq_fail(err, GRQ_E_NOMEM, "no memory for %zu scores", n_items);
    const bool likelihood = grq_match_rule_itself(rule)->kind == GRQ_MATCH_LIKELIHOOD;
    for (size_t i = 0; st == GRQ_OK && i < n_items; i++) {
        out->scores[i] = NAN;
        if (!of_item[i]) continue;
        double score = 0;
        st = likelihood ? score_likelihoods(&items[i], of_item[i], out, &score, err)
                        : score_output(&items[i], of_item[i], out, &score, err);
        out->scores[i] = score;
        out->n++;
        out->n_correct += score == 1;
        out->sum += score;
    }
    return st;
}

void grq_rule_score_free(grq_rule_score *score)
{
    free(score->scores);
    *score = (grq_rule_score){ 0 };
}
