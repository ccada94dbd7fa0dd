/* gaterq score: predictions against a suite's accepted answers, by named matching rules. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "qa/id_list.h"
#include "score_report.h"

typedef struct {
    const char *suite, *data, *predictions, *prompts, *rule, *rules, *cut, *out;
    bool partial, list;
} score_options;

typedef struct {
    score_items items;
    grq_predictions predictions;
    const grq_prediction **of_item;
    const grq_match_rule **rules;
    score_results results;
} score_state;

static grq_status score_rules(score_state *s, const score_options *o, grq_error *err)
{
    score_results *const r = &s->results;
    const grq_match_cut *cut = NULL, *suite_cut;
    size_t n_rules = 0;
    grq_status st = grq_match_cut_find(s->items.suite->cut, &suite_cut, err);
    if (st == GRQ_OK && o->cut) st = grq_match_cut_find(o->cut, &cut, err);
    if (st == GRQ_OK)
        st = score_rules_choose(s->items.suite, o->rules ? o->rules : o->rule, &s->predictions, &s->rules, &n_rules,
                                err);
    r->scores = calloc(n_rules + 1, sizeof *r->scores);
    if (!r->scores) return grq_fail(err, GRQ_E_NOMEM, "no memory for the scores of %zu rules", n_rules);
    for (; st == GRQ_OK && r->n_rules < n_rules; r->n_rules++) {
        const grq_match_rule *const rule = s->rules[r->n_rules];
        st = grq_score_by_rule(rule, cut, suite_cut, s->items.items, s->items.n, s->of_item, &r->scores[r->n_rules],
                               err);
    }
    return st;
}

static grq_status count_outputs(score_state *s, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < s->items.n; i++) {
        const char *const output = s->of_item[i] ? s->of_item[i]->output : NULL;
        bool refusal = false;
        if (!output) continue;
        st = grq_match_is_refusal(output, &refusal, err);
        s->results.n_refusals += refusal;
        s->results.n_empty += !output[strspn(output, " \t\r\n")];
    }
    return st;
}

/* Over the scored items alone. */
static grq_status find_quartiles(score_state *s, grq_error *err)
{
    const size_t n = s->items.n;
    double *const popularity = malloc((n + 1) * sizeof *popularity);
    s->results.quartile = malloc((n + 1) * sizeof *s->results.quartile);
    grq_status st =
        popularity && s->results.quartile ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for popularity quartiles");
    for (size_t i = 0; st == GRQ_OK && i < n; i++) popularity[i] = s->of_item[i] ? s->items.items[i].popularity : NAN;
    if (st == GRQ_OK) st = grq_popularity_quartiles(popularity, n, s->results.quartile, s->results.cuts, err);
    free(popularity);
    return st;
}

/* Predictions whose prompt_sha256 is not that of the item's prompt were asked something else. */
static grq_status check_prompts(const score_state *s, const score_options *o, grq_error *err)
{
    grq_predictions prompts = { 0 };
    const size_t n = s->predictions.n;
    const char **const ids = calloc(n + 1, sizeof *ids);
    bool *const bad = calloc(n + 1, sizeof *bad);
    size_t n_bad = 0, n_without = 0;
    grq_status st = ids && bad ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for prompts");
    if (st == GRQ_OK) st = grq_predictions_open(o->prompts, &prompts, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        const grq_prediction *const asked = &s->predictions.items[i], *const prompt =
                                                                          grq_predictions_find(&prompts, asked->id);
        ids[i] = asked->id;
        n_without += !asked->prompt_sha256;
        bad[i] = !prompt || !prompt->prompt_sha256 ||
                 (asked->prompt_sha256 && strcmp(asked->prompt_sha256, prompt->prompt_sha256));
        n_bad += bad[i];
    }
    if (st == GRQ_OK && n_bad) {
        char list[512];
        id_list(ids, bad, n, list);
        st = grq_fail(err, GRQ_E_DATA, "%s: %zu predictions were made from other prompts than those of %s: %s",
                      o->predictions, n_bad, o->prompts, list);
    }
    if (st == GRQ_OK && n_without)
        st = grq_fail(err, GRQ_E_DATA, "%s: %zu predictions have no prompt_sha256, so --prompts cannot check them",
                      o->predictions, n_without);
    grq_predictions_close(&prompts);
    free(ids);
    free(bad);
    return st;
}

static grq_status score_all(tool_context *tool, score_state *s, const score_options *o, grq_error *err)
{
    const score_suite *suite;
    grq_status st = score_suite_find(o->suite, &suite, err);
    if (st == GRQ_OK) st = score_items_open(suite, o->data, &s->items, err);
    if (st == GRQ_OK) st = grq_predictions_open(o->predictions, &s->predictions, err);
    if (st == GRQ_OK && o->prompts) st = check_prompts(s, o, err);
    if (st != GRQ_OK) return st;
    s->of_item = calloc(s->items.n + 1, sizeof *s->of_item);
    if (!s->of_item) return grq_fail(err, GRQ_E_NOMEM, "no memory to score %s", o->predictions);
    st = grq_score_align(o->suite, o->data, s->items.items, s->items.n, &s->predictions, o->partial, s->of_item, err);
    if (st == GRQ_OK) st = score_rules(s, o, err);
    if (st == GRQ_OK) st = count_outputs(s, err);
    if (st == GRQ_OK && !strcmp(o->suite, "popqa")) st = find_quartiles(s, err);
    s->results.items = &s->items;
    s->results.predictions = &s->predictions;
    s->results.of_item = s->of_item;
    if (st == GRQ_OK && o->out) st = score_write_lines(&s->results, o->out, err);
    return st == GRQ_OK ? score_report(tool, &s->results, err) : st;
}

static void free_state(score_state *s)
{
    for (size_t i = 0; s->results.scores && s->results.scores[i].rule; i++) grq_rule_score_free(&s->results.scores[i]);
    free(s->results.scores);
    free(s->results.quartile);
    free(s->of_item);
    free(s->rules);
    grq_predictions_close(&s->predictions);
    score_items_close(&s->items);
}

static void list_names(tool_context *tool)
{
    grq_json_begin_array(tool->result, "rules");
    if (!tool->json) printf("Rules (--rule), each with the cut it makes:\n");
    for (size_t i = 0; grq_match_rule_at(i); i++) {
        const grq_match_rule *const rule = grq_match_rule_at(i);
        grq_json_put_string(tool->result, NULL, rule->name);
        if (tool->json) continue;
        if (rule->same_as) printf("  %-30s the same as %s\n", rule->name, rule->same_as);
        else
            printf("  %-30s %s%s%s\n", rule->name, rule->description, rule->cut ? "; cut " : "",
                   rule->cut ? rule->cut : "");
    }
    grq_json_end_array(tool->result);
    grq_json_begin_array(tool->result, "cuts");
    if (!tool->json) printf("Cuts (--cut):\n");
    for (size_t i = 0; grq_match_cut_at(i); i++) {
        grq_json_put_string(tool->result, NULL, grq_match_cut_at(i)->name);
        if (!tool->json) printf("  %-30s %s\n", grq_match_cut_at(i)->name, grq_match_cut_at(i)->description);
    }
    grq_json_end_array(tool->result);
}

grq_status cmd_score(tool_context *tool, int argc, char **argv, grq_error *err)
{
    score_options o = { 0 };
    const tool_option options[] = {
        { "suite", "NAME", "popqa, triviaqa, nq_open or cmmlu", TOOL_TEXT, &o.suite, false, 0, 0 },
        { "data", "PATH", "the suite's file; CMMLU: the folder with test/ and dev/", TOOL_TEXT, &o.data, false, 0, 0 },
        { "predictions", "PATH", "JSON lines, or samples_*.jsonl of lm-evaluation-harness; or a folder of them",
          TOOL_TEXT, &o.predictions, false, 0, 0 },
        { "prompts", "P.jsonl", "the prompts that were asked (gaterq prompts): their digests must be the predictions'",
          TOOL_TEXT, &o.prompts, false, 0, 0 },
        { "rule", "NAME", "matching rule, several with commas, or all [the suite's own]", TOOL_TEXT, &o.rule, false, 0,
          0 },
        { "rules", "NAMES", "the same", TOOL_TEXT, &o.rules, false, 0, 0 },
        { "cut", "NAME", "what of an output counts [the rule's own, else the suite's]", TOOL_TEXT, &o.cut, false, 0,
          0 },
        { "out", "FILE", "write the scored lines", TOOL_TEXT, &o.out, false, 0, 0 },
        { "partial", NULL, "score the items that have a prediction", TOOL_FLAG, &o.partial, false, 0, 0 },
        { "list", NULL, "list the rules and cuts", TOOL_FLAG, &o.list, false, 0, 0 },
    };
    const tool_command command = {
        .name = "score",
        .usage = "--suite S --data PATH --predictions P.jsonl [--rule R] [--cut C] [--out SCORED.jsonl] | --list",
        .summary = "Score predictions by named matching rules.",
        .details = "With several rules the first is the one of \"correct\" and of all groups; with all it is the "
                   "suite's own.\n"
                   "Example: gaterq score --suite popqa --data popQA.tsv --predictions gate.jsonl --rule all",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if (o.list) return list_names(tool), GRQ_OK;
    if (!o.suite || !o.data || !o.predictions)
        return grq_fail(err, GRQ_E_USAGE, "score: --%s is missing",
                        !o.suite  ? "suite"
                        : !o.data ? "data"
                                  : "predictions");
    if (o.rule && o.rules) return grq_fail(err, GRQ_E_USAGE, "give --rule or --rules, not both");
    score_state *const s = calloc(1, sizeof *s);
    if (!s) return grq_fail(err, GRQ_E_NOMEM, "no memory");
    st = score_all(tool, s, &o, err);
    free_state(s);
    free(s);
    return st;
}
