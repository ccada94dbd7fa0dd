#include "accuracy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/rng.h"
#include "gaterq/stats.h"

static const accuracy_reader *find(const accuracy_table *t, const char *name)
{
    for (size_t i = 0; i < t->n_readers; i++)
        if (!strcmp(t->readers[i].name, name)) return &t->readers[i];
    return NULL;
}

/* ---- subjects as clusters ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* cluster[i]: which distinct subject question i asks about. */
static grq_status subject_clusters(const grq_questions *q, uint32_t **cluster, uint32_t *n_clusters, grq_error *err)
{
    const char **names = malloc((q->n + 1) * sizeof *names);
    *cluster = malloc((q->n + 1) * sizeof **cluster);
    if (!names || !*cluster) {
        free(names);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu questions", q->n);
    }
    for (size_t i = 0; i < q->n; i++) names[i] = q->items[i].subject;
    qsort(names, q->n, sizeof *names, by_text);
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++)
        if (i == 0 || strcmp(names[i], names[n - 1])) names[n++] = names[i];
    for (size_t i = 0; i < q->n; i++) {
        const char *key = q->items[i].subject;
        const char **at = bsearch(&key, names, n, sizeof *names, by_text);
        (*cluster)[i] = (uint32_t)(at - names);
    }
    *n_clusters = (uint32_t)n;
    free(names);
    return GRQ_OK;
}

/* ---- shares of the gap ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, size_t n, double p)
{
    const double at = p * (double)(n - 1);
    const size_t low = (size_t)at;
    return low + 1 < n ? sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low]) : sorted[n - 1];
}

/* (policy - one) / (two - one), with a percentile bootstrap over subjects. NaN when the gap is not positive. */
static grq_status recovered_share(const accuracy_table *t, const uint32_t *cluster, uint32_t n_clusters,
                                  const bool *policy, const bool *one, const bool *two, grq_interval *out,
                                  grq_error *err)
{
    int32_t *gain = calloc((size_t)n_clusters * 2 + 1, sizeof *gain); /* per subject: policy - one, two - one */
    double *draws = malloc((t->n_resamples + 1) * sizeof *draws);
    if (!gain || !draws) {
        free(gain);
        free(draws);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for a bootstrap over %u subjects", n_clusters);
    }
    int64_t gained = 0, gap = 0;
    for (size_t i = 0; i < t->questions->n; i++) {
        gain[2 * cluster[i]] += policy[i] - one[i];
        gain[2 * cluster[i] + 1] += two[i] - one[i];
        gained += policy[i] - one[i];
        gap += two[i] - one[i];
    }
    grq_rng rng;
    grq_rng_seed_for(&rng, t->seed, "recovered");
    size_t n = 0;
    for (uint32_t r = 0; r < t->n_resamples; r++) {
        int64_t a = 0, b = 0;
        for (uint32_t k = 0; k < n_clusters; k++) {
            const uint64_t c = grq_rng_below(&rng, n_clusters);
            a += gain[2 * c];
            b += gain[2 * c + 1];
        }
        if (b > 0) draws[n++] = (double)a / (double)b;
    }
    qsort(draws, n, sizeof *draws, by_value);
    out->value = gap > 0 ? (double)gained / (double)gap : NAN;
    out->low = gap > 0 && n ? quantile(draws, n, 0.025) : NAN;
    out->high = gap > 0 && n ? quantile(draws, n, 0.975) : NAN;
    free(gain);
    free(draws);
    return GRQ_OK;
}

/* ---- writing ---- */

typedef bool question_filter(const grq_question *q, uint32_t argument);

static bool in_quartile(const grq_question *q, uint32_t quartile)
{
    return q->quartile == quartile;
}

static bool is_held(const grq_question *q, uint32_t held)
{
    return q->held == (held != 0);
}

static void count_subset(const accuracy_table *t, const bool *correct, question_filter *filter, uint32_t argument,
                         uint64_t *n, uint64_t *k)
{
    *n = *k = 0;
    for (size_t i = 0; i < t->questions->n; i++) {
        if (filter && !filter(&t->questions->items[i], argument)) continue;
        ++*n;
        *k += correct[i];
    }
}

static void write_subset(const accuracy_table *t, const bool *correct, question_filter *filter, uint32_t argument,
                         const char *key, grq_json_writer *w)
{
    uint64_t n, k;
    count_subset(t, correct, filter, argument, &n, &k);
    grq_json_begin_object(w, key);
    grq_json_put_u64(w, "n", n);
    grq_json_put_u64(w, "correct", k);
    grq_json_put_f64(w, "accuracy", n ? (double)k / (double)n : NAN);
    grq_json_end_object(w);
}

static void write_interval(const char *key, grq_interval interval, grq_json_writer *w)
{
    grq_json_begin_object(w, key);
    grq_json_put_f64(w, "value", interval.value);
    grq_json_put_f64(w, "low", interval.low);
    grq_json_put_f64(w, "high", interval.high);
    grq_json_end_object(w);
}

static void write_usage(const accuracy_table *t, const accuracy_reader *r, grq_json_writer *w)
{
    const double n = (double)r->usage.n_lookups;
    if (!r->config.codes || n == 0) return;
    double stages = 0;
    for (uint32_t d = 0; d < GRQ_MAX_STAGES; d++) stages += (d + 1) * (double)r->usage.n_at_depth[d] / n;
    grq_json_put_f64(w, "share_deeper", 1 - (double)r->usage.n_at_depth[0] / n);
    grq_json_put_f64(w, "bits_per_value", grq_code_bits_per_value(t->row_dim) * stages);
}

static void write_score(const accuracy_table *t, const bool *correct, grq_json_writer *w)
{
    uint64_t n, k;
    count_subset(t, correct, NULL, 0, &n, &k);
    const grq_interval wilson = grq_wilson(k, n);
    grq_json_put_u64(w, "n", n);
    grq_json_put_u64(w, "correct", k);
    grq_json_put_f64(w, "accuracy", n ? (double)k / (double)n : NAN);
    grq_json_put_f64(w, "low", wilson.low);
    grq_json_put_f64(w, "high", wilson.high);
    grq_json_begin_array(w, "by_quartile"); /* coldest first */
    for (uint32_t i = 0; i < 4; i++) write_subset(t, correct, in_quartile, i, NULL, w);
    grq_json_end_array(w);
    write_subset(t, correct, is_held, 0, "shown", w);
    write_subset(t, correct, is_held, 1, "held", w);
}

static grq_status write_reader(const accuracy_table *t, const accuracy_reader *r, const uint32_t *cluster,
                               uint32_t n_clusters, grq_json_writer *w, grq_error *err)
{
    const accuracy_reader *one = find(t, "depth1"), *two = find(t, "depth2");
    grq_json_begin_object(w, r->name);
    write_score(t, r->correct, w);
    write_usage(t, r, w);
    grq_status st = GRQ_OK;
    if (one && two && r->config.mode == GRQ_READ_POLICY) {
        grq_interval share = { 0 };
        st = recovered_share(t, cluster, n_clusters, r->correct, one->correct, two->correct, &share, err);
        if (st == GRQ_OK) write_interval("recovered", share, w);
    }
    grq_json_end_object(w);
    return st;
}

static bool is_draw(const char *name)
{
    return !strncmp(name, "random#", 7) && !strchr(name, '/');
}

/* The mean over the draws of the random ordering: one draw alone moves by as much as the gaps between orderings. */
static void write_random_mean(const accuracy_table *t, grq_json_writer *w)
{
    const accuracy_reader *one = find(t, "depth1"), *two = find(t, "depth2");
    uint64_t n_draws = 0, n, k = 0, sum = 0, k1 = 0, k2 = 0;
    for (size_t i = 0; i < t->n_readers; i++) {
        if (!is_draw(t->readers[i].name)) continue;
        count_subset(t, t->readers[i].correct, NULL, 0, &n, &k);
        sum += k;
        n_draws++;
    }
    if (!n_draws || !t->questions->n) return;
    grq_json_begin_object(w, "random");
    grq_json_put_u64(w, "draws", n_draws);
    const double mean = (double)sum / (double)n_draws;
    grq_json_put_f64(w, "accuracy", mean / (double)t->questions->n);
    grq_json_begin_array(w, "by_quartile");
    for (uint32_t q = 0; q < 4; q++) {
        uint64_t in_q = 0, right = 0;
        for (size_t i = 0; i < t->n_readers; i++) {
            if (!is_draw(t->readers[i].name)) continue;
            count_subset(t, t->readers[i].correct, in_quartile, q, &n, &k);
            in_q += n;
            right += k;
        }
        grq_json_begin_object(w, NULL);
        grq_json_put_u64(w, "n", in_q / n_draws);
        grq_json_put_f64(w, "accuracy", in_q ? (double)right / (double)in_q : NAN);
        grq_json_end_object(w);
    }
    grq_json_end_array(w);
    if (one && two) {
        count_subset(t, one->correct, NULL, 0, &n, &k1);
        count_subset(t, two->correct, NULL, 0, &n, &k2);
        grq_json_begin_object(w, "recovered");
        grq_json_put_f64(w, "value", k2 > k1 ? (mean - (double)k1) / ((double)k2 - (double)k1) : NAN);
        grq_json_end_object(w);
    }
    grq_json_end_object(w);
}

/* ---- comparisons ---- */

typedef struct {
    const accuracy_reader *a, *b;
    bool rival; /* gate against another ordering: the family that Holm corrects */
    grq_paired result;
    double holm;
} comparison;

enum { MAX_COMPARISONS = 64 };

static size_t list_comparisons(const accuracy_table *t, comparison out[MAX_COMPARISONS])
{
    static const char *const fixed[][2] = {
        { "zero", "full" },   { "depth1", "full" },         { "depth2", "full" },
        { "depth3", "full" }, { "depth2", "depth1" },       { "gate", "depth1" },
        { "gate", "depth2" }, { "gate/refreshed", "gate" }, { "gate/refreshed", "depth2" }
    };
    const accuracy_reader *gate = find(t, "gate");
    size_t n = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const accuracy_reader *a = find(t, fixed[i][0]), *b = find(t, fixed[i][1]);
        if (a && b) out[n++] = (comparison){ .a = a, .b = b };
    }
    for (size_t i = 0; gate && i < t->n_readers && n < MAX_COMPARISONS; i++) {
        const accuracy_reader *b = &t->readers[i];
        if (b != gate && b->config.mode == GRQ_READ_POLICY && !strchr(b->name, '/'))
            out[n++] = (comparison){ .a = gate, .b = b, .rival = true };
    }
    return n;
}

static grq_status compare_all(const accuracy_table *t, const uint32_t *cluster, comparison *c, size_t n, grq_error *err)
{
    double p[MAX_COMPARISONS], adjusted[MAX_COMPARISONS];
    size_t family[MAX_COMPARISONS], n_family = 0;
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        st = grq_paired_compare(c[i].a->correct, c[i].b->correct, cluster, t->questions->n, t->n_resamples, t->seed,
                                &c[i].result, err);
        c[i].holm = NAN;
        if (c[i].rival) {
            p[n_family] = c[i].result.p_mid;
            family[n_family++] = i;
        }
    }
    if (st == GRQ_OK && n_family) st = grq_holm(p, n_family, adjusted, err);
    for (size_t i = 0; st == GRQ_OK && i < n_family; i++) c[family[i]].holm = adjusted[i];
    return st;
}

static void write_comparisons(const comparison *c, size_t n, grq_json_writer *w)
{
    grq_json_begin_object(w, "comparisons");
    for (size_t i = 0; i < n; i++) {
        char key[112];
        snprintf(key, sizeof key, "%s - %s", c[i].a->name, c[i].b->name);
        grq_json_begin_object(w, key);
        grq_json_put_u64(w, "n", c[i].result.n);
        grq_json_put_u64(w, "only_a", c[i].result.only_a);
        grq_json_put_u64(w, "only_b", c[i].result.only_b);
        grq_json_put_f64(w, "difference", c[i].result.difference);
        grq_json_put_f64(w, "low", c[i].result.low);
        grq_json_put_f64(w, "high", c[i].result.high);
        grq_json_put_f64(w, "p_exact", c[i].result.p_exact);
        grq_json_put_f64(w, "p_mid", c[i].result.p_mid);
        if (c[i].rival) grq_json_put_f64(w, "holm", c[i].holm);
        grq_json_end_object(w);
    }
    grq_json_end_object(w);
}

/* What the first readings cost, in fractions: accuracy of `a` minus that of `b`, over all and by quartile. */
static void write_change(const accuracy_table *t, const char *key, const char *a, const char *b, grq_json_writer *w)
{
    const accuracy_reader *ra = find(t, a), *rb = find(t, b);
    if (!ra || !rb || !t->questions->n) return;
    uint64_t n, k_a, k_b;
    grq_json_begin_object(w, key);
    count_subset(t, ra->correct, NULL, 0, &n, &k_a);
    count_subset(t, rb->correct, NULL, 0, &n, &k_b);
    grq_json_put_f64(w, "all", ((double)k_a - (double)k_b) / (double)n);
    grq_json_put_f64(w, "of_accuracy", k_b ? ((double)k_a - (double)k_b) / (double)k_b : NAN);
    static const char *const names[4] = { "coldest", "cold", "hot", "hottest" };
    for (uint32_t q = 0; q < 4; q++) {
        count_subset(t, ra->correct, in_quartile, q, &n, &k_a);
        count_subset(t, rb->correct, in_quartile, q, &n, &k_b);
        grq_json_put_f64(w, names[q], n ? ((double)k_a - (double)k_b) / (double)n : NAN);
    }
    grq_json_end_object(w);
}

/* Logical bits per value for the paper's rows of 256, by the same functions that count this table's. */
static void write_paper_bits(grq_json_writer *w)
{
    const grq_budget none = { 0 }, paper = { .n_fractions = 1, .fraction = { 0.412 } },
                     all = { .n_fractions = 2, .fraction = { 1, 1 } };
    grq_json_begin_object(w, "bits_at_256");
    grq_json_put_f64(w, "one_stage", grq_budget_bits(&none, 256));
    grq_json_put_f64(w, "budget_412", grq_budget_bits(&paper, 256));
    grq_json_put_f64(w, "three_stages", grq_budget_bits(&all, 256));
    grq_json_end_object(w);
}

grq_status accuracy_write(const accuracy_table *t, grq_json_writer *w, grq_error *err)
{
    uint32_t *cluster = NULL, n_clusters = 0;
    comparison comparisons[MAX_COMPARISONS];
    const size_t n_comparisons = list_comparisons(t, comparisons);
    grq_status st = subject_clusters(t->questions, &cluster, &n_clusters, err);
    if (st == GRQ_OK) st = compare_all(t, cluster, comparisons, n_comparisons, err);
    if (st == GRQ_OK) {
        grq_json_put_u64(w, "n", t->questions->n);
        grq_json_put_u64(w, "n_subjects", n_clusters);
        grq_json_begin_object(w, "readers");
        for (size_t i = 0; st == GRQ_OK && i < t->n_readers; i++)
            st = write_reader(t, &t->readers[i], cluster, n_clusters, w, err);
        write_random_mean(t, w);
        grq_json_end_object(w);
        write_comparisons(comparisons, n_comparisons, w);
        write_paper_bits(w);
        grq_json_begin_object(w, "changes");
        write_change(t, "zeroed", "zero", "full", w);
        write_change(t, "one_bit", "depth1", "full", w);
        grq_json_end_object(w);
    }
    free(cluster);
    return st;
}
