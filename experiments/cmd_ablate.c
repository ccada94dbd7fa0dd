/* gaterq ablate: what share of the weighted-error reduction each ordering captures, at a budget and over all budgets.
 */
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "gaterq/analysis.h"

static void put_orderings(tool_context *tool, const char *key, const double *values)
{
    grq_json_begin_object(tool->result, key);
    for (int o = 0; o < GRQ_N_ORDERINGS; o++)
        grq_json_put_f64(tool->result, grq_ordering_name((grq_ordering)o), values[o]);
    grq_json_end_object(tool->result);
}

static void put_ablation(tool_context *tool, const grq_trace *trace, const grq_budget *budget, const grq_ablation *a)
{
    grq_json_put_f64(tool->result, "budget", a->budget);
    grq_json_put_f64(tool->result, "bits_per_value", grq_budget_bits(budget, trace->row_dim));
    grq_json_put_f64(tool->result, "bits_per_value_at_256", grq_budget_bits(budget, 256));
    put_orderings(tool, "captured", a->captured);
    put_orderings(tool, "captured_low", a->captured_low);
    put_orderings(tool, "captured_high", a->captured_high);
    put_orderings(tool, "captured_injected", a->captured_injected);
    grq_json_put_f64(tool->result, "bound", a->bound);
    grq_json_put_f64(tool->result, "bound_injected", a->bound_injected);
    grq_json_begin_array(tool->result, "layers");
    for (uint32_t l = 0; l < trace->n_layers; l++) {
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_u64(tool->result, "layer", trace->layers[l].layer);
        put_orderings(tool, "captured", a->captured_layer[l]);
        grq_json_end_object(tool->result);
    }
    grq_json_end_array(tool->result);
    grq_json_begin_array(tool->result, "curve");
    for (int i = 0; i < GRQ_CURVE_POINTS; i++) {
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_f64(tool->result, "budget", (double)i / (GRQ_CURVE_POINTS - 1));
        for (int o = 0; o < GRQ_N_ORDERINGS; o++)
            grq_json_put_f64(tool->result, grq_ordering_name((grq_ordering)o), a->curve[i][o]);
        grq_json_end_object(tool->result);
    }
    grq_json_end_array(tool->result);
}

static void print_ablation(const grq_trace *trace, const grq_budget *budget, const grq_ablation *a)
{
    printf("%.1f %% of %zu positions' look-ups read stage 2: %.3f bits per value here, %.3f at rows of 256\n",
           100 * a->budget, trace->n_positions, grq_budget_bits(budget, trace->row_dim), grq_budget_bits(budget, 256));
    printf("%-10s %-26s %s\n", "ordering", "captured, weighted error", "captured, true injected error");
    for (int o = 0; o < GRQ_N_ORDERINGS; o++)
        printf("%-10s %5.1f %% [%5.1f, %5.1f]      %5.1f %%\n", grq_ordering_name((grq_ordering)o),
               100 * a->captured[o], 100 * a->captured_low[o], 100 * a->captured_high[o],
               100 * a->captured_injected[o]);
    printf("%-10s %5.1f %%                      %5.1f %%\n", "(bound)", 100 * a->bound, 100 * a->bound_injected);
}

grq_status cmd_ablate(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *path[1] = { NULL }, *text = "0.412";
    uint64_t n_resamples = 2000;
    const tool_option options[] = {
        { "budget", "F", "fraction of look-ups that read stage 2 [0.412]", TOOL_TEXT, &text, false, 0, 0 },
        { "bootstrap", "N", "resamples of the intervals [2000]", TOOL_U64, &n_resamples, false, 0, 1e6 },
    };
    const tool_command command = {
        .name = "ablate",
        .usage = "T.h5 [--budget F]",
        .summary =
            "Captured share of the weighted-error reduction for all orderings, at a budget and over the whole curve.",
        .details = "Example: gaterq ablate questions.h5",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = path,
        .min_positionals = 1,
        .max_positionals = 1,
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    grq_budget budget;
    grq_trace trace;
    grq_ablation ablation;
    st = grq_budget_parse(text, &budget, err);
    if (st == GRQ_OK && budget.n_fractions != 1)
        st = grq_fail(err, GRQ_E_USAGE, "--budget %s: ablate compares one fraction, of stage 2", text);
    if (st == GRQ_OK) st = grq_trace_open(path[0], &trace, err);
    if (st != GRQ_OK) return st;
    st = grq_ablate_run(&trace, budget.fraction[0], (uint32_t)n_resamples, tool->seed, &ablation, err);
    if (st == GRQ_OK) {
        put_ablation(tool, &trace, &budget, &ablation);
        if (!tool->json) print_ablation(&trace, &budget, &ablation);
    }
    grq_trace_free(&trace);
    return st;
}
