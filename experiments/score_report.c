#include "score_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/stats.h"

typedef struct {
    uint64_t n, n_correct;
} share;

static double accuracy_of(share s)
{
    return s.n ? (double)s.n_correct / (double)s.n : NAN;
}

/* n, correct, accuracy and its interval, into the open object. */
static void put_share(tool_context *tool, share s)
{
    const grq_interval wilson = grq_wilson(s.n_correct, s.n);
    grq_json_put_u64(tool->result, "n", s.n);
    grq_json_put_u64(tool->result, "correct", s.n_correct);
    grq_json_put_f64(tool->result, "accuracy", accuracy_of(s));
    grq_json_put_f64(tool->result, "low", wilson.low);
    grq_json_put_f64(tool->result, "high", wilson.high);
}

static void show_share(const tool_context *tool, const char *what, const score_results *r, share s)
{
    const grq_interval wilson = grq_wilson(s.n_correct, s.n);
    if (tool->json || !s.n) return;
    printf("  %-28s %6" PRIu64 " items, %6.2f %% [%.2f, %.2f] by %s\n", what, s.n, 100 * accuracy_of(s),
           100 * wilson.low, 100 * wilson.high, r->scores[0].rule->name);
}

/* ---- one rule ---- */

static void put_rule(tool_context *tool, const grq_rule_score *s)
{
    const grq_match_kind kind = grq_match_rule_itself(s->rule)->kind;
    grq_json_put_string(tool->result, "rule", s->rule->name);
    grq_json_put_string(tool->result, "cut", s->cut ? s->cut->name : NULL);
    put_share(tool, (share){ s->n, s->n_correct });
    if (grq_match_rule_itself(s->rule)->graded)
        grq_json_put_f64(tool->result, "mean_score", s->n ? s->sum / (double)s->n : NAN);
    if (kind == GRQ_MATCH_TEXT) {
        grq_json_put_f64(tool->result, "question_echo", accuracy_of((share){ s->n, s->n_question_echo }));
        grq_json_put_f64(tool->result, "refusal_sentence", accuracy_of((share){ s->n, s->n_refusal_sentence }));
    } else {
        grq_json_put_u64(tool->result, "no_choice", s->n_no_choice);
    }
    if (kind == GRQ_MATCH_LIKELIHOOD) {
        grq_json_put_u64(tool->result, "tied", s->n_tied);
        grq_json_put_u64(tool->result, "undefined", s->n_undefined);
    }
}

static void show_rule(const score_results *r)
{
    const grq_rule_score *const s = &r->scores[0];
    const grq_match_kind kind = grq_match_rule_itself(s->rule)->kind;
    const grq_interval wilson = grq_wilson(s->n_correct, s->n);
    printf("%s, rule %s: %" PRIu64 " of %" PRIu64 " right, %.2f %% [%.2f, %.2f]; cut %s; %" PRIu64
           " empty outputs, %" PRIu64 " refusals\n",
           r->items->suite->name, s->rule->name, s->n_correct, s->n, 100 * accuracy_of((share){ s->n, s->n_correct }),
           100 * wilson.low, 100 * wilson.high, s->cut ? s->cut->name : "none", r->n_empty, r->n_refusals);
    if (grq_match_rule_itself(s->rule)->graded)
        printf("  mean score by %s: %.2f %%\n", s->rule->name, s->n ? 100 * s->sum / (double)s->n : NAN);
    if (kind == GRQ_MATCH_TEXT)
        printf("  for nothing, by %s: %.2f %% for the question itself, %.2f %% for \"%s\"\n", s->rule->name,
               100 * accuracy_of((share){ s->n, s->n_question_echo }),
               100 * accuracy_of((share){ s->n, s->n_refusal_sentence }), grq_refusal_sentence);
    if (kind != GRQ_MATCH_TEXT) printf("  without a choice, counted wrong: %" PRIu64 "\n", s->n_no_choice);
    if (kind == GRQ_MATCH_LIKELIHOOD)
        printf("  ties, where the first choice is taken: %" PRIu64 "; with a NaN: %" PRIu64 "\n", s->n_tied,
               s->n_undefined);
}

/* ---- popularity ---- */

/* Quartiles over the scored items whose popularity is known, coldest first; and the long tail as Self-RAG selects it.
 */
static void put_popularity(tool_context *tool, const score_results *r)
{
    share quarter[GRQ_N_QUARTILES + 1] = { 0 }, tail = { 0 };
    for (size_t i = 0; i < r->items->n; i++) {
        if (!r->of_item[i]) continue;
        const bool correct = r->scores[0].scores[i] == 1;
        quarter[r->quartile[i]].n++;
        quarter[r->quartile[i]].n_correct += correct;
        if (!(r->items->items[i].popularity < 100)) continue;
        tail.n++;
        tail.n_correct += correct;
    }
    grq_json_begin_array(tool->result, "by_popularity");
    for (size_t q = 0; q < GRQ_N_QUARTILES; q++) {
        char name[64];
        snprintf(name, sizeof name, "popularity quartile %zu", q + 1);
        grq_json_begin_object(tool->result, NULL);
        put_share(tool, quarter[q]);
        grq_json_put_f64(tool->result, "up_to", q < GRQ_N_QUARTILES - 1 ? r->cuts[q] : NAN);
        grq_json_end_object(tool->result);
        show_share(tool, name, r, quarter[q]);
    }
    grq_json_end_array(tool->result);
    grq_json_put_u64(tool->result, "popularity_unknown", quarter[GRQ_N_QUARTILES].n);
    grq_json_begin_object(tool->result, "below_100");
    put_share(tool, tail);
    grq_json_end_object(tool->result);
    show_share(tool, "s_pop below 100", r, tail);
}

/* ---- relations, subjects ---- */

typedef struct {
    const char *name;
    share share;
} group;

static group *group_named(group *groups, size_t *n, const char *name)
{
    for (size_t g = *n; g-- > 0;) /* items of a group follow each other */
        if (!strcmp(groups[g].name, name)) return &groups[g];
    groups[*n] = (group){ .name = name };
    return &groups[(*n)++];
}

/* The groups of the scored items in order of their first item; the caller frees. */
static group *groups_of(const score_results *r, size_t *n)
{
    group *const groups = calloc(r->items->n + 1, sizeof *groups);
    *n = 0;
    for (size_t i = 0; groups && i < r->items->n; i++) {
        if (!r->of_item[i] || !r->items->items[i].group) continue;
        group *const g = group_named(groups, n, r->items->items[i].group);
        g->share.n++;
        g->share.n_correct += r->scores[0].scores[i] == 1;
    }
    return groups;
}

/* Micro: over questions. Macro: the unweighted mean over subjects. Their standard errors, as the specification has
 * them. */
static void put_means(tool_context *tool, const score_results *r, const group *groups, size_t n)
{
    const grq_rule_score *const s = &r->scores[0];
    const double micro = accuracy_of((share){ s->n, s->n_correct });
    double sum = 0, variance = 0;
    for (size_t g = 0; g < n; g++) {
        const double p = accuracy_of(groups[g].share);
        sum += p;
        variance += p * (1 - p) / (double)groups[g].share.n;
    }
    const double macro = sum / (double)n;
    grq_json_put_f64(tool->result, "micro", micro);
    grq_json_put_f64(tool->result, "micro_se", sqrt(micro * (1 - micro) / (double)s->n));
    grq_json_put_f64(tool->result, "macro", macro);
    grq_json_put_f64(tool->result, "macro_se", sqrt(variance) / (double)n);
    grq_json_put_u64(tool->result, "subjects", n);
    if (!tool->json)
        printf("  by %s: micro %.4f %% over %" PRIu64 " questions, macro %.4f %% over %zu subjects\n", s->rule->name,
               100 * micro, s->n, 100 * macro, n);
}

static grq_status put_groups(tool_context *tool, const score_results *r, grq_error *err)
{
    const score_suite *const suite = r->items->suite;
    size_t n;
    group *const groups = groups_of(r, &n);
    if (!groups) return grq_fail(err, GRQ_E_NOMEM, "no memory for the groups of %s", r->items->data);
    if (!strcmp(suite->name, "cmmlu")) put_means(tool, r, groups, n);
    grq_json_begin_array(tool->result, suite->groups_key);
    for (size_t g = 0; g < n; g++) {
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_string(tool->result, suite->group_key, groups[g].name);
        put_share(tool, groups[g].share);
        grq_json_end_object(tool->result);
        show_share(tool, groups[g].name, r, groups[g].share);
    }
    grq_json_end_array(tool->result);
    free(groups);
    return GRQ_OK;
}

/* ---- several rules ---- */

static double points(const grq_rule_score *s)
{
    return accuracy_of((share){ s->n, s->n_correct });
}

static void put_end_of_spread(tool_context *tool, const char *key, const grq_rule_score *s)
{
    grq_json_begin_object(tool->result, key);
    grq_json_put_string(tool->result, "rule", s->rule->name);
    grq_json_put_f64(tool->result, "accuracy", points(s));
    grq_json_end_object(tool->result);
}

static void put_rules(tool_context *tool, const score_results *r)
{
    const grq_rule_score *lowest = r->scores, *highest = r->scores;
    grq_json_begin_array(tool->result, "rules");
    for (size_t i = 0; i < r->n_rules; i++) {
        const grq_rule_score *const s = &r->scores[i];
        if (points(s) < points(lowest)) lowest = s;
        if (points(s) > points(highest)) highest = s;
        grq_json_begin_object(tool->result, NULL);
        put_rule(tool, s);
        grq_json_end_object(tool->result);
        if (tool->json) continue;
        printf("  %-30s %6.2f %%  cut %-20s", s->rule->name, 100 * points(s), s->cut ? s->cut->name : "none");
        if (grq_match_rule_itself(s->rule)->graded) printf("  mean score %.2f %%", 100 * s->sum / (double)s->n);
        printf("\n");
    }
    grq_json_end_array(tool->result);
    grq_json_begin_object(tool->result, "spread");
    put_end_of_spread(tool, "lowest", lowest);
    put_end_of_spread(tool, "highest", highest);
    grq_json_end_object(tool->result);
    if (!tool->json)
        printf("The same outputs score from %.2f %% by %s to %.2f %% by %s.\n", 100 * points(lowest),
               lowest->rule->name, 100 * points(highest), highest->rule->name);
}

/* ---- all of it ---- */

grq_status score_report(tool_context *tool, const score_results *r, grq_error *err)
{
    const score_suite *const suite = r->items->suite;
    grq_status st = GRQ_OK;
    grq_json_put_string(tool->result, "suite", suite->name);
    grq_json_put_string(tool->result, "data", r->items->data);
    grq_json_put_string(tool->result, "predictions", r->predictions->path);
    grq_json_put_string(tool->result, "run", r->predictions->run);
    grq_json_put_string(tool->result, "settings", r->predictions->settings);
    put_rule(tool, &r->scores[0]);
    grq_json_put_u64(tool->result, "empty", r->n_empty);
    grq_json_put_u64(tool->result, "refusals", r->n_refusals);
    if (!tool->json) show_rule(r);
    if (r->quartile) put_popularity(tool, r);
    if (suite->groups_key) st = put_groups(tool, r, err);
    if (st == GRQ_OK && r->n_rules > 1) put_rules(tool, r);
    return st;
}
