/* gaterq score: predictions against a suite's accepted answers, by a named matching rule. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/facts.h"
#include "gaterq/match.h"
#include "gaterq/stats.h"
#include "predictions.h"

typedef struct {
    const char *suite, *data, *predictions, *rule;
    bool partial;
} score_options;

typedef struct {
    grq_facts *facts;
    predictions predictions;
    const grq_match_rule *rule;
    bool *scored, *correct; /* (facts) */
    uint64_t n, n_correct, n_empty;
} score_state;

/* Ids of the file that are no facts, and facts without a prediction. */
static grq_status check_ids(const score_state *s, const score_options *o, grq_error *err)
{
    const size_t n_facts = grq_facts_count(s->facts), n = s->predictions.n > n_facts ? s->predictions.n : n_facts;
    const char **ids = calloc(n + 1, sizeof *ids);
    bool *bad = calloc(n + 1, sizeof *bad);
    char list[512];
    size_t n_missing = 0;
    grq_status st = ids && bad ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory to score %s", o->predictions);
    for (size_t i = 0; st == GRQ_OK && i < n_facts; i++) {
        ids[i] = grq_facts_at(s->facts, i)->id;
        bad[i] = !s->scored[i];
        n_missing += bad[i];
    }
    if (st == GRQ_OK && n_missing && !o->partial) {
        id_list(ids, bad, n_facts, list);
        st = grq_fail(err, GRQ_E_DATA, "%s: %zu of %zu items have no prediction (--partial scores those that have): %s",
                      o->predictions, n_missing, n_facts, list);
    }
    if (st == GRQ_OK && s->n < s->predictions.n) { /* every scored fact used one prediction: the rest are foreign */
        for (size_t i = 0; i < s->predictions.n; i++) {
            ids[i] = s->predictions.items[i].id;
            bad[i] = true;
        }
        for (size_t f = 0; f < n_facts; f++) {
            const prediction *p = predictions_find(&s->predictions, grq_facts_at(s->facts, f)->id);
            if (p) bad[p - s->predictions.items] = false;
        }
        id_list(ids, bad, s->predictions.n, list);
        st = grq_fail(err, GRQ_E_DATA, "%s: %zu predictions are of no item of %s: %s", o->predictions,
                      s->predictions.n - (size_t)s->n, o->data, list);
    }
    free(ids);
    free(bad);
    return st;
}

static grq_status score_items(score_state *s, const score_options *o, grq_error *err)
{
    const size_t n = grq_facts_count(s->facts);
    s->scored = calloc(n + 1, sizeof *s->scored);
    s->correct = calloc(n + 1, sizeof *s->correct);
    if (!s->scored || !s->correct) return grq_fail(err, GRQ_E_NOMEM, "no memory to score %s", o->predictions);
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        const grq_fact *fact = grq_facts_at(s->facts, i);
        const prediction *p = predictions_find(&s->predictions, fact->id);
        if (!p) continue;
        if (!p->output)
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu, item %s has no \"output\"", o->predictions, p->line, p->id);
        if (p->suite && strcmp(p->suite, o->suite))
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu, item %s is of suite %s, not %s", o->predictions, p->line,
                            p->id, p->suite, o->suite);
        st = grq_match(s->rule, p->output, fact->accepted, fact->n_accepted, &s->correct[i], err);
        s->scored[i] = true;
        s->n++;
        s->n_correct += s->correct[i];
        s->n_empty += !p->output[strspn(p->output, " \t\r\n")];
    }
    return st == GRQ_OK ? check_ids(s, o, err) : st;
}

/* n, correct, accuracy and its interval, into the open object. */
static void put_share(tool_context *tool, uint64_t n, uint64_t n_correct)
{
    const grq_interval wilson = grq_wilson(n_correct, n);
    grq_json_put_u64(tool->result, "n", n);
    grq_json_put_u64(tool->result, "correct", n_correct);
    grq_json_put_f64(tool->result, "accuracy", n ? (double)n_correct / (double)n : NAN);
    grq_json_put_f64(tool->result, "low", wilson.low);
    grq_json_put_f64(tool->result, "high", wilson.high);
}

/* Quartiles of popularity over the scored facts whose popularity is known, coldest first. */
static void put_quartiles(tool_context *tool, const score_state *s, const uint32_t *quartile, const double *cuts)
{
    uint64_t count[GRQ_N_QUARTILES] = { 0 }, right[GRQ_N_QUARTILES] = { 0 };
    for (size_t i = 0; i < grq_facts_count(s->facts); i++) {
        if (quartile[i] == GRQ_N_QUARTILES) continue;
        count[quartile[i]]++;
        right[quartile[i]] += s->correct[i];
    }
    grq_json_begin_array(tool->result, "by_popularity");
    for (size_t q = 0; q < GRQ_N_QUARTILES; q++) {
        grq_json_begin_object(tool->result, NULL);
        put_share(tool, count[q], right[q]);
        grq_json_put_f64(tool->result, "up_to", q < GRQ_N_QUARTILES - 1 ? cuts[q] : NAN);
        grq_json_end_object(tool->result);
        if (!tool->json && count[q])
            printf("  popularity quartile %zu: %" PRIu64 " items, %.2f %%\n", q + 1, count[q],
                   100.0 * (double)right[q] / (double)count[q]);
    }
    grq_json_end_array(tool->result);
}

/* The long tail, as Self-RAG and its successors select it. */
static void put_tail(tool_context *tool, const score_state *s)
{
    uint64_t n = 0, right = 0;
    for (size_t i = 0; i < grq_facts_count(s->facts); i++) {
        if (!s->scored[i] || !(grq_facts_at(s->facts, i)->popularity < 100)) continue;
        n++;
        right += s->correct[i];
    }
    grq_json_begin_object(tool->result, "below_100");
    put_share(tool, n, right);
    grq_json_end_object(tool->result);
    if (!tool->json && n)
        printf("  s_pop below 100: %" PRIu64 " items, %.2f %%\n", n, 100.0 * (double)right / (double)n);
}

static grq_status put_popularity(tool_context *tool, const score_state *s, grq_error *err)
{
    const size_t n = grq_facts_count(s->facts);
    double *popularity = malloc((n + 1) * sizeof *popularity), cuts[GRQ_N_QUARTILES - 1];
    uint32_t *quartile = malloc((n + 1) * sizeof *quartile);
    grq_status st = popularity && quartile ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for popularity quartiles");
    for (size_t i = 0; st == GRQ_OK && i < n; i++)
        popularity[i] = s->scored[i] ? grq_facts_at(s->facts, i)->popularity : NAN;
    if (st == GRQ_OK) st = grq_popularity_quartiles(popularity, n, quartile, cuts, err);
    if (st == GRQ_OK) {
        put_quartiles(tool, s, quartile, cuts);
        put_tail(tool, s);
    }
    free(popularity);
    free(quartile);
    return st;
}

static grq_status put_score(tool_context *tool, const score_state *s, const score_options *o, grq_error *err)
{
    const grq_interval wilson = grq_wilson(s->n_correct, s->n);
    grq_json_put_string(tool->result, "suite", o->suite);
    grq_json_put_string(tool->result, "rule", s->rule->name);
    put_share(tool, s->n, s->n_correct);
    grq_json_put_u64(tool->result, "empty", s->n_empty);
    if (!tool->json)
        printf("%s, rule %s: %" PRIu64 " of %" PRIu64 " right, %.2f %% [%.2f, %.2f]; %" PRIu64 " empty outputs\n",
               o->suite, s->rule->name, s->n_correct, s->n, 100 * (double)s->n_correct / (double)s->n, 100 * wilson.low,
               100 * wilson.high, s->n_empty);
    return put_popularity(tool, s, err);
}

grq_status cmd_score(tool_context *tool, int argc, char **argv, grq_error *err)
{
    score_options o = { .rule = "popqa_contains" };
    const tool_option options[] = {
        { "suite", "NAME", "popqa", TOOL_TEXT, &o.suite, true, 0, 0 },
        { "data", "FILE", "fact file in PopQA's layout", TOOL_TEXT, &o.data, true, 0, 0 },
        { "predictions", "FILE", "JSON lines with id and output", TOOL_TEXT, &o.predictions, true, 0, 0 },
        { "rule", "NAME", "popqa_contains or exact [popqa_contains]", TOOL_TEXT, &o.rule, false, 0, 0 },
        { "partial", NULL, "score the items that have a prediction", TOOL_FLAG, &o.partial, false, 0, 0 },
    };
    const tool_command command = {
        .name = "score",
        .usage = "--suite S --data FILE --predictions P.jsonl [--rule R]",
        .summary = "Score predictions by a named matching rule.",
        .details =
            "Example: gaterq score --suite popqa --data facts.tsv --predictions predictions/gate.jsonl --rule exact",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if (strcmp(o.suite, "popqa")) return grq_fail(err, GRQ_E_USAGE, "--suite %s: only popqa can be scored", o.suite);
    score_state s = { 0 };
    st = grq_match_rule_find(o.rule, &s.rule, err);
    if (st == GRQ_OK) st = grq_facts_open(o.data, &s.facts, err);
    if (st == GRQ_OK) st = predictions_open(o.predictions, &s.predictions, err);
    if (st == GRQ_OK) st = score_items(&s, &o, err);
    if (st == GRQ_OK) st = put_score(tool, &s, &o, err);
    predictions_close(&s.predictions);
    grq_facts_close(s.facts);
    free(s.scored);
    free(s.correct);
    return st;
}
