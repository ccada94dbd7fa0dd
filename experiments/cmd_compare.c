/* gaterq compare: paired significance of two prediction files, or of a family of pairs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/file.h"
#include "gaterq/predictions.h"
#include "gaterq/stats.h"
#include "qa/id_list.h"

/* Correctness of the items of both files, in id order. */
typedef struct {
    size_t n;
    bool *a, *b;
} pairing;

static void free_pairing(pairing *p)
{
    free(p->a);
    free(p->b);
    *p = (pairing){ 0 };
}

/* Items of `x` that `y` lacks are an error with their list. */
static grq_status check_covered(const grq_predictions *x, const grq_predictions *y, grq_error *err)
{
    const char **ids = calloc(x->n + 1, sizeof *ids);
    bool *missing = calloc(x->n + 1, sizeof *missing);
    char list[512];
    size_t n = 0;
    grq_status st = ids && missing ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory to compare %s", x->path);
    for (size_t i = 0; st == GRQ_OK && i < x->n; i++) {
        ids[i] = x->items[i].id;
        missing[i] = !grq_predictions_find(y, ids[i]);
        n += missing[i];
    }
    if (st == GRQ_OK && n) {
        id_list(ids, missing, x->n, list);
        st = grq_fail(err, GRQ_E_DATA, "%zu items of %s are not in %s: %s", n, x->path, y->path, list);
    }
    free(ids);
    free(missing);
    return st;
}

static grq_status check_item(const grq_predictions *file, const grq_prediction *p, const char *suite, grq_error *err)
{
    if (p->correct < 0)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, item %s has no \"correct\"; score it first", file->path,
                        p->line, p->id);
    if (suite && p->suite && strcmp(suite, p->suite))
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, item %s is of suite %s, the other of %s", file->path, p->line,
                        p->id, p->suite, suite);
    return GRQ_OK;
}

static grq_status pair_up(const grq_predictions *a, const grq_predictions *b, pairing *out, grq_error *err)
{
    *out = (pairing){ .n = a->n, .a = calloc(a->n + 1, sizeof(bool)), .b = calloc(a->n + 1, sizeof(bool)) };
    if (!out->a || !out->b) return grq_fail(err, GRQ_E_NOMEM, "no memory to compare %s", a->path);
    for (size_t i = 0; i < a->n; i++) {
        const grq_prediction *x = &a->items[i], *y = &b->items[i]; /* both sorted by id, and of the same ids */
        grq_status st = check_item(a, x, NULL, err);
        if (st == GRQ_OK) st = check_item(b, y, x->suite, err);
        if (st != GRQ_OK) return st;
        out->a[i] = x->correct == 1;
        out->b[i] = y->correct == 1;
    }
    return GRQ_OK;
}

static grq_status compare_files(const char *path_a, const char *path_b, uint32_t n_resamples, uint64_t seed,
                                grq_paired *out, grq_error *err)
{
    grq_predictions a = { 0 }, b = { 0 };
    pairing p = { 0 };
    grq_status st = grq_predictions_open(path_a, &a, err);
    if (st == GRQ_OK) st = grq_predictions_open(path_b, &b, err);
    if (st == GRQ_OK) st = check_covered(&a, &b, err);
    if (st == GRQ_OK) st = check_covered(&b, &a, err);
    if (st == GRQ_OK) st = pair_up(&a, &b, &p, err);
    if (st == GRQ_OK) st = grq_paired_compare(p.a, p.b, NULL, p.n, n_resamples, seed, out, err);
    free_pairing(&p);
    grq_predictions_close(&a);
    grq_predictions_close(&b);
    return st;
}

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

static void put_paired(tool_context *tool, const grq_paired *p)
{
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
    grq_json_put_f64(tool->result, "p_sign_flip", p->p_sign_flip);
    grq_json_put_f64(tool->result, "detectable", p->detectable);
    put_accuracy(tool, "a", p->both + p->only_a, p->n);
    put_accuracy(tool, "b", p->both + p->only_b, p->n);
}

static void print_paired(const grq_paired *p)
{
    printf("%" PRIu64 " items: A right alone %" PRIu64 ", B right alone %" PRIu64 "; difference %+.2f points\n", p->n,
           p->only_a, p->only_b, 100 * p->difference);
    printf("  McNemar exact p = %.3g, mid-p = %.3g, sign flips p = %.3g\n", p->p_exact, p->p_mid, p->p_sign_flip);
    printf("  95 %% intervals, points: of mid-p [%+.2f, %+.2f], bootstrap [%+.2f, %+.2f], BCa [%+.2f, %+.2f]\n",
           100 * p->mid_low, 100 * p->mid_high, 100 * p->low, 100 * p->high, 100 * p->bca_low, 100 * p->bca_high);
    if (isfinite(p->detectable))
        printf("  so many items, discordant as often, show %.2f points with 80 %% power\n", 100 * p->detectable);
    else printf("  no difference that so few discordant items allow is shown with 80 %% power\n");
}

static grq_status compare_one(tool_context *tool, const char *const paths[2], uint32_t n_resamples, grq_error *err)
{
    grq_paired p;
    const grq_status st = compare_files(paths[0], paths[1], n_resamples, tool->seed, &p, err);
    if (st != GRQ_OK) return st;
    put_paired(tool, &p);
    if (!tool->json) print_paired(&p);
    return GRQ_OK;
}

/* ---- a family ---- */

enum { MAX_FAMILY = 10000 };

typedef struct {
    char *a, *b; /* into the family file's text */
    size_t line;
    grq_paired result;
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
    for (size_t i = 0; i < n; i++) p[i] = pairs[i].result.p_mid;
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
        if (!tool->json)
            printf("%+7.2f points [%+.2f, %+.2f]  mid-p %.3g  Holm %.3g  BH %.3g  %s - %s\n",
                   100 * pairs[i].result.difference, 100 * pairs[i].result.low, 100 * pairs[i].result.high, p[i],
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
    family_pair *pairs = calloc(MAX_FAMILY, sizeof *pairs);
    if (memchr(text, '\0', n_bytes)) st = grq_fail(err, GRQ_E_DATA, "%s: not a text file: it holds a NUL byte", path);
    else if (!pairs) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a family of comparisons");
    if (st == GRQ_OK) st = read_family(path, text, pairs, &n, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        st = compare_files(pairs[i].a, pairs[i].b, n_resamples, tool->seed, &pairs[i].result, err);
        if (st != GRQ_OK) grq_fail_prefix(err, st, "%s: line %zu", path, pairs[i].line);
        if (st == GRQ_OK) st = grq_progress_step(&tool->progress, "compare", i + 1, n, "pairs", NULL, err);
    }
    if (st == GRQ_OK) st = put_family(tool, pairs, n, err);
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
