#include "report_tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* "FILE#rest" in the variant's folder. */
typedef struct {
    char text[512];
} path;

static path at(const char *variant, const char *format, ...) __attribute__((format(printf, 2, 3)));

static path at(const char *variant, const char *format, ...)
{
    path p;
    va_list args;
    const int used = snprintf(p.text, sizeof p.text, "%s/", variant);
    va_start(args, format);
    vsnprintf(p.text + used, sizeof p.text - (size_t)used, format, args);
    va_end(args);
    return p;
}

/* A number, or NaN where the run has none: tables show what there is. */
static double number(results *run, path p)
{
    double value;
    return results_number(run, p.text, &value, NULL) == GRQ_OK ? value : NAN;
}

static void percent(table *t, size_t column, double fraction, int digits)
{
    if (!isnan(fraction)) table_cell(t, column, "%.*f", digits, 100 * fraction);
}

static void interval(table *t, size_t column, results *run, const char *variant, const char *place, int digits)
{
    const double value = number(run, at(variant, "%s.value", place));
    const double low = number(run, at(variant, "%s.low", place)), high = number(run, at(variant, "%s.high", place));
    if (isnan(value)) return;
    if (isnan(low)) table_cell(t, column, "%.*f", digits, value);
    else table_cell(t, column, "%.*f [%.*f, %.*f]", digits, value, digits, low, digits, high);
}

/* ---- accuracy ---- */

static void accuracy_row(table *t, results *run, const char *variant, const char *reader)
{
    const double accuracy = number(run, at(variant, "accuracy.json#readers.%s.accuracy", reader));
    const double low = number(run, at(variant, "accuracy.json#readers.%s.low", reader));
    const double high = number(run, at(variant, "accuracy.json#readers.%s.high", reader));
    const double recovered = number(run, at(variant, "accuracy.json#readers.%s.recovered.value", reader));
    const double recovered_low = number(run, at(variant, "accuracy.json#readers.%s.recovered.low", reader));
    const double recovered_high = number(run, at(variant, "accuracy.json#readers.%s.recovered.high", reader));
    table_row(t);
    table_cell(t, 0, "%s", reader);
    percent(t, 1, accuracy, 2);
    if (!isnan(low)) table_cell(t, 2, "%.1f to %.1f", 100 * low, 100 * high);
    percent(t, 3, recovered, 0);
    if (!isnan(recovered_low)) table_cell(t, 4, "%.0f to %.0f", 100 * recovered_low, 100 * recovered_high);
    for (size_t q = 0; q < 4; q++)
        percent(t, 5 + q, number(run, at(variant, "accuracy.json#readers.%s.by_quartile[%zu].accuracy", reader, q)), 1);
    percent(t, 9, number(run, at(variant, "accuracy.json#readers.%s.shown.accuracy", reader)), 1);
    percent(t, 10, number(run, at(variant, "accuracy.json#readers.%s.held.accuracy", reader)), 1);
    const double share = number(run, at(variant, "accuracy.json#readers.%s.share_deeper", reader));
    const double bits = number(run, at(variant, "accuracy.json#readers.%s.bits_per_value", reader));
    if (!isnan(share)) table_cell(t, 11, "%.4f", share);
    if (!isnan(bits)) table_cell(t, 12, "%.3f", bits);
}

grq_status report_accuracy(results *run, const char *variant, table *out, grq_error *err)
{
    static const char *const headings[] = {
        "reader", "accuracy %", "95 % interval",      "recovered %", "95 % interval ",       "coldest quarter", "cold",
        "hot",    "hottest",    "shown as questions", "never shown", "share beyond stage 1", "bits per value"
    };
    grq_json_node *readers;
    table_start(out, TOOL_COUNT(headings), headings);
    const grq_status st = results_node(run, at(variant, "accuracy.json#readers").text, &readers, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < grq_json_count(readers); i++) accuracy_row(out, run, variant, grq_json_key_at(readers, i));
    return table_check(out, err);
}

grq_status report_comparisons(results *run, const char *variant, table *out, grq_error *err)
{
    static const char *const headings[] = {
        "comparison", "right only first / only second",  "difference, points", "95 % interval", "p (mid-p McNemar)",
        "p (exact)",  "p (Holm, gate against orderings)"
    };
    grq_json_node *list;
    table_start(out, TOOL_COUNT(headings), headings);
    const grq_status st = results_node(run, at(variant, "accuracy.json#comparisons").text, &list, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < grq_json_count(list); i++) {
        const char *name = grq_json_key_at(list, i);
        const path base = at(variant, "accuracy.json#comparisons.%s", name);
        const char *place = base.text + strlen(variant) + 1;
        table_row(out);
        table_cell(out, 0, "%s", name);
        table_cell(out, 1, "%.0f / %.0f", number(run, at(variant, "%s.only_a", place)),
                   number(run, at(variant, "%s.only_b", place)));
        table_cell(out, 2, "%+.2f", 100 * number(run, at(variant, "%s.difference", place)));
        table_cell(out, 3, "%+.2f to %+.2f", 100 * number(run, at(variant, "%s.low", place)),
                   100 * number(run, at(variant, "%s.high", place)));
        table_cell(out, 4, "%.2g", number(run, at(variant, "%s.p_mid", place)));
        table_cell(out, 5, "%.2g", number(run, at(variant, "%s.p_exact", place)));
        const double holm = number(run, at(variant, "%s.holm", place));
        if (!isnan(holm)) table_cell(out, 6, "%.2g", holm);
    }
    return table_check(out, err);
}

/* ---- captured error ---- */

static const char *const orderings[] = { "gate",    "prior",  "random", "frequency",
                                         "coldest", "energy", "oracle", "shuffled" };

grq_status report_captured(results *run, const char *variant, table *out, grq_error *err)
{
    static const char *const headings[] = {
        "ordering",         "questions: captured %", "95 % interval",         "true injected error %",
        "text: captured %", "95 % interval ",        "true injected error % "
    };
    table_start(out, TOOL_COUNT(headings), headings);
    for (size_t k = 0; k < 2; k++) { /* a broken or missing file is an error, not a row of blanks */
        grq_json_node *unused;
        const path file = at(variant, "ablate-%s.json#captured", k ? "text" : "questions");
        const grq_status st = results_node(run, file.text, &unused, err);
        if (st != GRQ_OK) return st;
    }
    for (size_t i = 0; i < TOOL_COUNT(orderings); i++) {
        static const char *const kinds[] = { "questions", "text" };
        table_row(out);
        table_cell(out, 0, "%s", orderings[i]);
        for (size_t k = 0; k < 2; k++) {
            double low, high;
            percent(out, 1 + 3 * k, number(run, at(variant, "ablate-%s.json#captured.%s", kinds[k], orderings[i])), 1);
            low = number(run, at(variant, "ablate-%s.json#captured_low.%s", kinds[k], orderings[i]));
            high = number(run, at(variant, "ablate-%s.json#captured_high.%s", kinds[k], orderings[i]));
            if (!isnan(low)) table_cell(out, 2 + 3 * k, "%.1f to %.1f", 100 * low, 100 * high);
            percent(out, 3 + 3 * k,
                    number(run, at(variant, "ablate-%s.json#captured_injected.%s", kinds[k], orderings[i])), 1);
        }
    }
    return table_check(out, err);
}

/* ---- correlation, profile ---- */

static grq_status correlation_rows(results *run, const char *variant, const char *trace, table *out, grq_error *err)
{
    grq_json_node *cells;
    const grq_status st = results_node(run, at(variant, "premise-%s.json#cells", trace).text, &cells, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < grq_json_count(cells); i++) {
        const char *kind = "";
        if (grq_json_string(grq_json_at(cells, i), "kind", &kind, NULL) != GRQ_OK) kind = "";
        table_row(out);
        table_cell(out, 0, "%s", trace);
        table_cell(out, 1, "%s", kind);
        table_cell(out, 2, "%.0f", number(run, at(variant, "premise-%s.json#cells[%zu].layer", trace, i)));
        table_cell(out, 3, "%.0f", number(run, at(variant, "premise-%s.json#cells[%zu].order", trace, i)));
        static const char *const measures[] = { "spearman_lookups", "pearson_lookups", "spearman_rows",
                                                "pearson_rows" };
        for (size_t m = 0; m < TOOL_COUNT(measures); m++) {
            char place[96];
            snprintf(place, sizeof place, "premise-%s.json#cells[%zu].%s", trace, i, measures[m]);
            interval(out, 4 + m, run, variant, place, 2);
        }
    }
    return GRQ_OK;
}

grq_status report_correlation(results *run, const char *variant, table *out, grq_error *err)
{
    static const char *const headings[] = { "trace",
                                            "kind of text",
                                            "layer",
                                            "order",
                                            "Spearman, look-ups",
                                            "Pearson with log count, look-ups",
                                            "Spearman, rows",
                                            "Pearson with log count, rows" };
    table_start(out, TOOL_COUNT(headings), headings);
    grq_status st = correlation_rows(run, variant, "text", out, err);
    if (st == GRQ_OK) st = correlation_rows(run, variant, "questions", out, err);
    return st == GRQ_OK ? table_check(out, err) : st;
}

grq_status report_profile(results *run, const char *variant, table *out, grq_error *err)
{
    static const char *const headings[] = { "trace",
                                            "layer",
                                            "stage-1 / full gate correlation",
                                            "importance in the top 1 %",
                                            "top 10 %",
                                            "top 41.2 %",
                                            "gate energy in the top 1 %",
                                            "unseen 2-grams' importance %",
                                            "unseen 3-grams' %",
                                            "unseen 4-grams' %" };
    static const char *const traces[] = { "text", "questions" };
    table_start(out, TOOL_COUNT(headings), headings);
    for (size_t k = 0; k < 2; k++) {
        grq_json_node *layers;
        const grq_status st = results_node(run, at(variant, "premise-%s.json#profile", traces[k]).text, &layers, err);
        if (st != GRQ_OK) return st;
        for (size_t i = 0; i < grq_json_count(layers); i++) {
            char place[96];
            table_row(out);
            table_cell(out, 0, "%s", traces[k]);
            table_cell(out, 1, "%.0f", number(run, at(variant, "premise-%s.json#profile[%zu].layer", traces[k], i)));
            snprintf(place, sizeof place, "premise-%s.json#profile[%zu].gate_fidelity", traces[k], i);
            interval(out, 2, run, variant, place, 3);
            static const char *const shares[] = { "top_1", "top_10", "top_41", "top_1_energy" };
            for (size_t s = 0; s < 4; s++)
                percent(out, 3 + s,
                        number(run, at(variant, "premise-%s.json#profile[%zu].%s", traces[k], i, shares[s])), 1);
            for (unsigned order = 2; order <= 4; order++)
                percent(out, 5 + order,
                        number(run, at(variant, "premise-%s.json#profile[%zu].unseen_share.%u", traces[k], i, order)),
                        2);
        }
    }
    return table_check(out, err);
}

grq_status report_distortion(results *run, const char *variant, table *out, grq_error *err)
{
    static const char *const headings[] = { "layer", "bits per value and stage", "depth 1", "depth 2", "depth 3" };
    grq_json_node *layers;
    table_start(out, TOOL_COUNT(headings), headings);
    const grq_status st = results_node(run, "config.json#model.memory.layer_ids", &layers, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < grq_json_count(layers); i++) {
        uint64_t layer = 0;
        if (grq_json_as_u64(grq_json_at(layers, i), 0, UINT32_MAX, &layer, NULL) != GRQ_OK) continue;
        table_row(out);
        table_cell(out, 0, "%" PRIu64, layer);
        table_cell(out, 1, "%.4f", number(run, at(variant, "distort-%" PRIu64 ".json#bits_per_value", layer)));
        for (size_t d = 0; d < 3; d++) {
            const double mse = number(run, at(variant, "distort-%" PRIu64 ".json#relative_mse[%zu]", layer, d));
            if (!isnan(mse)) table_cell(out, 2 + d, "%.4f", mse);
        }
    }
    return table_check(out, err);
}
