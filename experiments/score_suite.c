#include "score_suite.h"

#include <stdlib.h>
#include <string.h>

static const score_suite suites[] = {
    { "popqa", "popqa_contains", "popqa_first_line", "relation", "by_relation" },
    { "triviaqa", "triviaqa_official_em", "first_line", NULL, NULL },
    { "nq_open", "nq_open_official_em", "first_line", NULL, NULL },
    { "cmmlu", NULL, "whole", "subject", "by_subject" },
};

grq_status score_suite_find(const char *name, const score_suite **out, grq_error *err)
{
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (!strcmp(suites[i].name, name)) {
            *out = &suites[i];
            return GRQ_OK;
        }
    return grq_fail(err, GRQ_E_USAGE, "--suite %.60s is not known; there are: popqa, triviaqa, nq_open, cmmlu", name);
}

/* ---- items ---- */

grq_status score_items_open(const score_suite *suite, const char *data, score_items *out, grq_error *err)
{
    *out = (score_items){ .suite = suite, .data = data };
    const grq_status st = grq_suite_open(suite->name, data, &out->opened, err);
    if (st != GRQ_OK) return st;
    out->n = grq_suite_count(out->opened);
    out->items = grq_suite_items(out->opened);
    return GRQ_OK;
}

void score_items_close(score_items *items)
{
    grq_suite_close(items->opened);
    *items = (score_items){ 0 };
}

/* ---- rules ---- */

static bool all_have(const grq_predictions *p, bool likelihoods)
{
    for (size_t i = 0; i < p->n; i++)
        if (likelihoods ? !p->items[i].loglikelihoods : !p->items[i].output) return false;
    return true;
}

static grq_status primary_rule(const score_suite *suite, const grq_predictions *predictions, const grq_match_rule **out,
                               grq_error *err)
{
    const char *name = suite->rule;
    if (!name) name = all_have(predictions, true) ? "cmmlu_loglikelihood" : "cmmlu_extract_choice";
    return grq_match_rule_find(name, out, err);
}

/* Whether "all" means this rule: every rule of the suite's kind for which the predictions have what it needs. */
static bool belongs(const grq_match_rule *rule, const score_suite *suite, const grq_predictions *predictions)
{
    if (rule->same_as) return false;
    if (suite->rule) return rule->kind == GRQ_MATCH_TEXT;
    if (rule->kind == GRQ_MATCH_TEXT) return false;
    return all_have(predictions, rule->kind == GRQ_MATCH_LIKELIHOOD);
}

typedef struct {
    const grq_match_rule **rules;
    size_t n;
} rule_list;

/* Once each; there is room for all rules. */
static void add(rule_list *list, const grq_match_rule *rule)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->rules[i] == rule) return;
    list->rules[list->n++] = rule;
}

static grq_status add_named(rule_list *list, const char *names, grq_error *err)
{
    char *const text = strdup(names), *rest = text;
    grq_status st = text ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for the names of rules");
    while (st == GRQ_OK && rest) {
        const char *const name = strsep(&rest, ",");
        const grq_match_rule *rule;
        st = grq_match_rule_find(name, &rule, err);
        if (st == GRQ_OK) add(list, rule);
    }
    free(text);
    return st;
}

grq_status score_rules_choose(const score_suite *suite, const char *names, const grq_predictions *predictions,
                              const grq_match_rule ***out, size_t *n_out, grq_error *err)
{
    size_t n = 0;
    while (grq_match_rule_at(n)) n++;
    rule_list list = { .rules = calloc(n + 1, sizeof *list.rules) };
    *out = list.rules;
    if (!list.rules) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu rules", n);
    grq_status st = GRQ_OK;
    if (!names || !strcmp(names, "all")) {
        const grq_match_rule *rule = NULL;
        st = primary_rule(suite, predictions, &rule, err);
        if (st == GRQ_OK) add(&list, rule);
        for (size_t i = 0; st == GRQ_OK && names && i < n; i++)
            if (belongs(grq_match_rule_at(i), suite, predictions)) add(&list, grq_match_rule_at(i));
    } else {
        st = add_named(&list, names, err);
    }
    for (size_t i = 0; st == GRQ_OK && i < list.n; i++)
        if (suite->rule && grq_match_rule_itself(list.rules[i])->kind != GRQ_MATCH_TEXT)
            st = grq_fail(err, GRQ_E_USAGE, "--rule %s is for choices; suite %s has none", list.rules[i]->name,
                          suite->name);
    *n_out = list.n;
    return st;
}
