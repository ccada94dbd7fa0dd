/* gaterq premise: does gate or frequency ordering fit this model? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/analysis.h"
#include "gaterq/world.h"

static void put_interval(tool_context *tool, const char *key, grq_interval interval)
{
    grq_json_begin_object(tool->result, key);
    grq_json_put_f64(tool->result, "value", interval.value);
    grq_json_put_f64(tool->result, "low", interval.low);
    grq_json_put_f64(tool->result, "high", interval.high);
    grq_json_end_object(tool->result);
}

/* ---- a trace ---- */

/* The cells over all positions: one per layer and order, the headline of the analysis. */
static void put_headline(tool_context *tool, const grq_premise *p, const char *key, bool rows)
{
    grq_json_begin_array(tool->result, key);
    for (size_t i = 0; i < p->n_cells; i++) {
        const grq_premise_cell *c = &p->cells[i];
        const grq_interval *interval = rows ? &c->spearman_rows : &c->spearman_lookups;
        if (c->kind >= 0) continue;
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_u64(tool->result, "layer", c->layer);
        grq_json_put_u64(tool->result, "order", c->order);
        grq_json_put_f64(tool->result, "value", interval->value);
        grq_json_put_f64(tool->result, "low", interval->low);
        grq_json_put_f64(tool->result, "high", interval->high);
        grq_json_end_object(tool->result);
    }
    grq_json_end_array(tool->result);
}

static void put_cells(tool_context *tool, const grq_premise *p)
{
    grq_json_begin_array(tool->result, "cells");
    for (size_t i = 0; i < p->n_cells; i++) {
        const grq_premise_cell *c = &p->cells[i];
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_u64(tool->result, "layer", c->layer);
        grq_json_put_u64(tool->result, "order", c->order);
        grq_json_put_string(tool->result, "kind", c->kind < 0 ? "all" : grq_text_kind_name((grq_text_kind)c->kind));
        grq_json_put_u64(tool->result, "lookups", c->n_lookups);
        grq_json_put_u64(tool->result, "rows", c->n_rows);
        put_interval(tool, "spearman_lookups", c->spearman_lookups);
        put_interval(tool, "pearson_lookups", c->pearson_lookups);
        put_interval(tool, "spearman_rows", c->spearman_rows);
        put_interval(tool, "pearson_rows", c->pearson_rows);
        grq_json_end_object(tool->result);
    }
    grq_json_end_array(tool->result);
}

static void put_profile(tool_context *tool, const grq_layer_profile *profile, uint32_t n_layers)
{
    grq_json_begin_array(tool->result, "profile");
    for (uint32_t l = 0; l < n_layers; l++) {
        const grq_layer_profile *p = &profile[l];
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_u64(tool->result, "layer", p->layer);
        put_interval(tool, "gate_fidelity", p->gate_fidelity);
        grq_json_put_u64(tool->result, "lookups", p->n_lookups);
        grq_json_put_f64(tool->result, "top_1", p->top_1);
        grq_json_put_f64(tool->result, "top_10", p->top_10);
        grq_json_put_f64(tool->result, "top_41", p->top_41);
        grq_json_put_f64(tool->result, "top_1_energy", p->top_1_energy);
        grq_json_begin_object(tool->result, "unseen_lookups");
        for (unsigned order = 2; order <= GRQ_MAX_ORDER; order++) {
            const char key[] = { (char)('0' + order), '\0' };
            grq_json_put_u64(tool->result, key, p->unseen_lookups[order]);
        }
        grq_json_end_object(tool->result);
        grq_json_begin_object(tool->result, "unseen_share");
        for (unsigned order = 2; order <= GRQ_MAX_ORDER; order++) {
            const char key[] = { (char)('0' + order), '\0' };
            grq_json_put_f64(tool->result, key, p->unseen_share[order]);
        }
        grq_json_end_object(tool->result);
        grq_json_begin_array(tool->result, "lorenz");
        for (size_t i = 0; i <= 100; i++) grq_json_put_f64(tool->result, NULL, p->lorenz[i]);
        grq_json_end_array(tool->result);
        grq_json_end_object(tool->result);
    }
    grq_json_end_array(tool->result);
}

static void print_trace(const grq_premise *p, const grq_layer_profile *profile, uint32_t n_layers)
{
    printf("gate energy against access count, Spearman [95 %% interval]\n%5s %5s %-10s %9s  %-22s %s\n", "layer",
           "order", "kind", "look-ups", "over look-ups", "over rows");
    for (size_t i = 0; i < p->n_cells; i++) {
        const grq_premise_cell *c = &p->cells[i];
        printf("%5u %5u %-10s %9zu  %+.3f [%+.3f, %+.3f]  %+.3f [%+.3f, %+.3f]\n", c->layer, c->order,
               c->kind < 0 ? "all" : grq_text_kind_name((grq_text_kind)c->kind), c->n_lookups,
               c->spearman_lookups.value, c->spearman_lookups.low, c->spearman_lookups.high, c->spearman_rows.value,
               c->spearman_rows.low, c->spearman_rows.high);
    }
    for (uint32_t l = 0; l < n_layers; l++)
        printf(
            "layer %u: stage-1/full gate correlation %.3f; importance in the top 1, 10, 41.2 %%: %.1f, %.1f, %.1f %%\n",
            profile[l].layer, profile[l].gate_fidelity.value, 100 * profile[l].top_1, 100 * profile[l].top_10,
            100 * profile[l].top_41);
    printf("verdict: %s (%s)\n", p->verdict, grq_premise_rule());
}

static grq_status premise_of_trace(tool_context *tool, const char *path, uint32_t n_resamples, grq_error *err)
{
    grq_trace trace;
    grq_premise premise = { 0 };
    grq_layer_profile profile[GRQ_MAX_MEMORY_LAYERS];
    grq_status st = grq_trace_open(path, &trace, err);
    if (st != GRQ_OK) return st;
    st = grq_premise_run(&trace, n_resamples, tool->seed, &premise, err);
    if (st == GRQ_OK) st = grq_profile_run(&trace, n_resamples, tool->seed, profile, err);
    if (st == GRQ_OK) {
        put_headline(tool, &premise, "spearman", false);
        put_headline(tool, &premise, "spearman_rows", true);
        grq_json_put_string(tool->result, "verdict", premise.verdict);
        grq_json_put_string(tool->result, "rule", grq_premise_rule());
        put_cells(tool, &premise);
        put_profile(tool, profile, trace.n_layers);
        if (!tool->json) print_trace(&premise, profile, trace.n_layers);
    }
    grq_premise_free(&premise);
    grq_trace_free(&trace);
    return st;
}

/* ---- an access log ---- */

static void put_log_cell(tool_context *tool, const char *key, const grq_log_cell *c, bool has_table)
{
    grq_json_begin_object(tool->result, key);
    if (has_table) grq_json_put_u64(tool->result, "table_id", c->table_id);
    grq_json_put_u64(tool->result, "lookups", c->n_lookups);
    grq_json_put_u64(tool->result, "rows", c->n_rows);
    put_interval(tool, "spearman", c->spearman);
    put_interval(tool, "pearson", c->pearson);
    put_interval(tool, "spearman_rows", c->spearman_rows);
    put_interval(tool, "spearman_importance", c->spearman_importance);
    grq_json_end_object(tool->result);
}

static grq_status premise_of_log(tool_context *tool, const char *path, uint32_t n_resamples, grq_error *err)
{
    grq_log_premise p;
    const grq_status st = grq_log_premise_run(path, n_resamples, tool->seed, &p, err);
    if (st != GRQ_OK) return st;
    grq_json_put_f64(tool->result, "spearman", p.all.spearman.value);
    grq_json_put_string(tool->result, "verdict", p.verdict);
    grq_json_put_string(tool->result, "rule", grq_premise_rule());
    put_log_cell(tool, "all", &p.all, false);
    grq_json_begin_array(tool->result, "tables");
    for (size_t i = 0; i < p.n_tables; i++) put_log_cell(tool, NULL, &p.tables[i], true);
    grq_json_end_array(tool->result);
    if (!tool->json) {
        printf("%" PRIu64 " look-ups of %" PRIu64
               " rows: Spearman of scale^2 with the access count %+.3f [%+.3f, %+.3f]\n",
               p.all.n_lookups, p.all.n_rows, p.all.spearman.value, p.all.spearman.low, p.all.spearman.high);
        for (size_t i = 0; p.has_table && i < p.n_tables; i++)
            printf("table %" PRIu64 ": %+.3f [%+.3f, %+.3f]\n", p.tables[i].table_id, p.tables[i].spearman.value,
                   p.tables[i].spearman.low, p.tables[i].spearman.high);
        printf("verdict: %s (%s)\n", p.verdict, grq_premise_rule());
    }
    grq_log_premise_free(&p);
    return GRQ_OK;
}

grq_status cmd_premise(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *trace[1] = { NULL }, *log = NULL;
    uint64_t n_resamples = 2000;
    const tool_option options[] = {
        { "log", "FILE", "an access log in place of a trace: CSV, header row_id,scale[,norm][,table_id]", TOOL_TEXT,
          &log, false, 0, 0 },
        { "bootstrap", "N", "resamples of the intervals [2000]", TOOL_U64, &n_resamples, false, 0, 1e6 },
    };
    const tool_command command = {
        .name = "premise",
        .usage = "(T.h5 | --log FILE)",
        .summary = "Does gate or frequency ordering fit this model? Correlations with intervals, and a verdict by a "
                   "fixed rule.",
        .details = "Example: gaterq premise text.h5",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = trace,
        .max_positionals = 1,
    };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if ((trace[0] != NULL) == (log != NULL)) return grq_fail(err, GRQ_E_USAGE, "give either a trace or --log");
    return log ? premise_of_log(tool, log, (uint32_t)n_resamples, err)
               : premise_of_trace(tool, trace[0], (uint32_t)n_resamples, err);
}
