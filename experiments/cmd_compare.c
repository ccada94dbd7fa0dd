/* gaterq compare: paired significance of two prediction files, or of a family of pairs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/file.h"
#include "gaterq/stats.h"
#include "scored.h"

static void put_accuracy(tool_context *tool, const char *key, uint64_t correct, uint64_t n)
{
    const grq_interval wilson = grq_wilson(correct, n);
    grq_json_begin_object(tool->result, key);
    grq_json_put_f64(tool->result, "accuracy", n ? (double)correct / (double)n : NAN);
    grq_json_put_f64(tool->result, "low", wilson.low);
    grq_json_put_f64(tool->result, "high", wilson.high);
    grq_json_end_object(tool->result);
}

static void put_interval(tool_context *tool, const char *key, double low, double high)
{
    grq_json_begin_array(tool->result, key);
    grq_json_put_f64(tool->result, NULL, low);
    grq_json_put_f64(tool->result, NULL, high);
    grq_json_end_array(tool->result);
}

static void put_macro(tool_context *tool, const scored_comparison *c)
{
    grq_json_begin_object(tool->result, "macro");
    grq_json_put_u64(tool->result, "subjects", c->n_subjects);
    grq_json_put_f64(tool->result, "difference", c->macro.difference);
    grq_json_put_f64(tool->result, "low", c->macro.low);
    grq_json_put_f64(tool->result, "high", c->macro.high);
    put_interval(tool, "bca", c->macro.bca_low, c->macro.bca_high);
    grq_json_put_f64(tool->result, "p_bootstrap", c->macro.p_bootstrap);
    grq_json_end_object(tool->result);
}

static void put_paired(tool_context *tool, const scored_comparison *c)
{
    const grq_paired *const p = &c->paired;
    grq_json_put_u64(tool->result, "n", p->n);
    grq_json_put_u64(tool->result, "only_a", p->only_a);
    grq_json_put_u64(tool->result, "only_b", p->only_b);
    grq_json_put_f64(tool->result, "difference", p->difference);
    grq_json_put_f64(tool->result, "low", p->low);
    grq_json_put_f64(tool->result, "high", p->high);
    put_interval(tool, "bca", p->bca_low, p->bca_high);
    put_interval(tool, "mid_p_interval", p->mid_low, p->mid_high);
    const grq_interval bonett_price = grq_bonett_price(p->only_a, p->only_b, p->n);
    put_interval(tool, "bonett_price", bonett_price.low, bonett_price.high);
    grq_json_put_f64(tool->result, "p_exact", p->p_exact);
    grq_json_put_f64(tool->result, "p_mid", p->p_mid);
    grq_json_put_f64(tool->result, "log10_p_exact", grq_mcnemar_log_exact(p->only_a, p->only_b) / M_LN10);
    grq_json_put_f64(tool->result, "log10_p_mid", grq_mcnemar_log_mid_p(p->only_a, p->only_b) / M_LN10);
    grq_json_put_f64(tool->result, "p_bootstrap", p->p_bootstrap);
    grq_json_put_f64(tool->result, "p_sign_flip", p->p_sign_flip);
    grq_json_put_f64(tool->result, "detectable", p->detectable);
    put_accuracy(tool, "a", p->both + p->only_a, p->n);
    put_accuracy(tool, "b", p->both + p->only_b, p->n);
    if (c->has_macro) put_macro(tool, c);
}

/* "0.0123", or "10^-5402" where the number itself is below the smallest double. */
static const char *p_text(double p, double log_p, char text[32])
{
    if (p > 1e-300) snprintf(text, 32, "%.3g", p);
    else snprintf(text, 32, "10^%.0f", log_p / M_LN10);
    return text;
}

static void print_paired(const scored_comparison *c)
{
    const grq_paired *const p = &c->paired;
    char exact[32], mid[32];
    printf("%" PRIu64 " items: A right alone %" PRIu64 ", B right alone %" PRIu64 "; difference %+.2f points\n", p->n,
           p->only_a, p->only_b, 100 * p->difference);
    printf("  McNemar exact p = %s, mid-p = %s, sign flips p = %.3g\n",
           p_text(p->p_exact, grq_mcnemar_log_exact(p->only_a, p->only_b), exact),
           p_text(p->p_mid, grq_mcnemar_log_mid_p(p->only_a, p->only_b), mid), p->p_sign_flip);
    printf("  95 %% intervals, points: of mid-p [%+.2f, %+.2f], bootstrap [%+.2f, %+.2f], BCa [%+.2f, %+.2f]\n",
           100 * p->mid_low, 100 * p->mid_high, 100 * p->low, 100 * p->high, 100 * p->bca_low, 100 * p->bca_high);
    if (isfinite(p->detectable))
        printf("  so many items, discordant as often, show %.2f points with 80 %% power\n", 100 * p->detectable);
    else printf("  no difference that so few discordant items allow is shown with 80 %% power\n");
    if (c->has_macro)
        printf("  macro over %zu subjects: difference %+.2f points, BCa [%+.2f, %+.2f], bootstrap p = %.3g\n",
               c->n_subjects, 100 * c->macro.difference, 100 * c->macro.bca_low, 100 * c->macro.bca_high,
               c->macro.p_bootstrap);
}

static grq_status compare_files(scored_set *set, const char *path_a, const char *path_b, uint32_t n_resamples,
                                uint64_t seed, scored_comparison *out, grq_error *err)
{
    const scored_file *a, *b;
    grq_status st = scored_open(set, path_a, &a, err);
    if (st == GRQ_OK) st = scored_open(set, path_b, &b, err);
    return st == GRQ_OK ? scored_compare(a, b, n_resamples, seed, out, err) : st;
}

static grq_status compare_one(tool_context *tool, const char *const paths[2], uint32_t n_resamples, grq_error *err)
{
    scored_comparison c;
    scored_set set = { 0 };
    const grq_status st = compare_files(&set, paths[0], paths[1], n_resamples, tool->seed, &c, err);
    if (st == GRQ_OK) put_paired(tool, &c);
    if (st == GRQ_OK && !tool->json) print_paired(&c);
    scored_close(&set);
    return st;
}

/* ---- a family ---- */

enum { MAX_FAMILY = 10000 };

typedef struct {
    char *a, *b; /* into the family file's text */
    size_t line;
    scored_comparison result;
} family_pair;

/* Two paths a line, tab-separated. The text is cut up in place. */
static grq_status read_family(const char *path, char *text, family_pair *pairs, size_t *n, grq_error *err)
{
    size_t line = 0;
    *n = 0;
    for (char *rest = text, *at; (at = strsep(&rest, "\n"));) {
        line++;
        at[strcspn(at, "\r")] = '\0';
        if (!*at) continue;
        char *tab = strchr(at, '\t');
        if (!tab || tab == at || !tab[1] || strchr(tab + 1, '\t'))
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu: two paths separated by one tab are wanted", path, line);
        if (*n == MAX_FAMILY) return grq_fail(err, GRQ_E_DATA, "%s: more than %d comparisons", path, MAX_FAMILY);
        *tab = '\0';
        pairs[(*n)++] = (family_pair){ .a = at, .b = tab + 1, .line = line };
    }
    return *n ? GRQ_OK : grq_fail(err, GRQ_E_DATA, "%s: there is no comparison", path);
}

static grq_status put_family(tool_context *tool, const family_pair *pairs, size_t n, grq_error *err)
{
    double *p = malloc(4 * (n + 1) * sizeof *p);
    if (!p) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu comparisons", n);
    double *holm = p + n, *hochberg = holm + n, *bh = hochberg + n;
    for (size_t i = 0; i < n; i++) p[i] = pairs[i].result.paired.p_mid;
    grq_status st = grq_holm(p, n, holm, err);
    if (st == GRQ_OK) st = grq_hochberg(p, n, hochberg, err);
    if (st == GRQ_OK) st = grq_benjamini_hochberg(p, n, bh, err);
    grq_json_begin_array(tool->result, "comparisons");
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_string(tool->result, "path_a", pairs[i].a);
        grq_json_put_string(tool->result, "path_b", pairs[i].b);
        put_paired(tool, &pairs[i].result);
        grq_json_put_f64(tool->result, "holm", holm[i]);
        grq_json_put_f64(tool->result, "hochberg", hochberg[i]);
        grq_json_put_f64(tool->result, "bh", bh[i]);
        grq_json_end_object(tool->result);
        const grq_paired *const one = &pairs[i].result.paired;
        char mid[32];
        if (!tool->json)
            printf("%+7.2f points [%+.2f, %+.2f]  mid-p %s  Holm %.3g  BH %.3g  %s - %s\n", 100 * one->difference,
                   100 * one->low, 100 * one->high, p_text(p[i], grq_mcnemar_log_mid_p(one->only_a, one->only_b), mid),
                   holm[i], bh[i], pairs[i].a, pairs[i].b);
    }
    grq_json_end_array(tool->result);
    free(p);
    return st;
}

static grq_status compare_family(tool_context *tool, const char *path, uint32_t n_resamples, grq_error *err)
{
    char *text;
    size_t n_bytes, n = 0;
    grq_status st = grq_file_read(path, 1 << 26, &text, &n_bytes, err);
    if (st != GRQ_OK) return st;
    scored_set set = { 0 }; /* each file is read once, however many comparisons it is in */
    family_pair *pairs = calloc(MAX_FAMILY, sizeof *pairs);
    if (memchr(text, '\0', n_bytes)) st = grq_fail(err, GRQ_E_DATA, "%s: not a text file: it holds a NUL byte", path);
    else if (!pairs) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a family of comparisons");
    if (st == GRQ_OK) st = read_family(path, text, pairs, &n, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        st = compare_files(&set, pairs[i].a, pairs[i].b, n_resamples, tool->seed, &pairs[i].result, err);
        if (st != GRQ_OK) grq_fail_prefix(err, st, "%s: line %zu", path, pairs[i].line);
        if (st == GRQ_OK) st = grq_progress_step(&tool->progress, "compare", i + 1, n, "pairs", NULL, err);
    }
    if (st == GRQ_OK) st = put_family(tool, pairs, n, err);
    scored_close(&set);
    free(pairs);
    free(text);
    return st;
}

grq_status cmd_compare(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *paths[2] = { NULL, NULL }, *family = NULL;
    uint64_t n_resamples = 10000;
    const tool_option options[] = {
        { "family", "FILE", "two prediction files a line, tab-separated; adds Holm, Hochberg and Benjamini-Hochberg",
          TOOL_TEXT, &family, false, 0, 0 },
        { "bootstrap", "N", "resamples of the interval [10000]", TOOL_U64, &n_resamples, false, 0, 1e6 },
    };
    const tool_command command = {
        .name = "compare",
        .usage = "A.jsonl B.jsonl | --family FILE",
        .summary = "Paired significance: McNemar exact and mid-p, sign flips, intervals of the difference A - B.",
        .details = "Every line needs id and correct; both files must have the same ids.\n"
                   "Example: gaterq compare predictions/gate.jsonl predictions/prior.jsonl",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = paths,
        .max_positionals = 2,
    };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if (family ? paths[0] != NULL : paths[1] == NULL)
        return grq_fail(err, GRQ_E_USAGE, "give two prediction files, or --family");
    return family ? compare_family(tool, family, (uint32_t)n_resamples, err)
                  : compare_one(tool, paths, (uint32_t)n_resamples, err);
}
