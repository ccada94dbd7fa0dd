#include <math.h>
#include <stdlib.h>

#include "analysis/analysis_internal.h"
#include "stats/stats_internal.h"

enum { ROW_GROUPS = 512 };

grq_status grq_sequence_clusters(const grq_trace *trace, uint32_t **cluster, uint32_t *n_clusters, grq_error *err)
{
    *n_clusters = 0;
    *cluster = grq_stats_array(trace->n_positions, sizeof **cluster, "positions", err);
    if (!*cluster) return GRQ_E_NOMEM;
    for (size_t t = 0; t < trace->n_positions; t++) {
        if (t == 0 || trace->sequence[t] != trace->sequence[t - 1]) ++*n_clusters;
        (*cluster)[t] = *n_clusters - 1;
    }
    return GRQ_OK;
}

grq_status grq_dense_rows(const uint64_t *rows, size_t n, uint32_t *dense, uint32_t *n_rows, grq_error *err)
{
    *n_rows = 0;
    uint32_t *order = grq_stats_array(n, sizeof *order, "rows", err);
    if (!order) return GRQ_E_NOMEM;
    const grq_status st = grq_stable_order_u64(rows, n, order, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        if (i == 0 || rows[order[i]] != rows[order[i - 1]]) ++*n_rows;
        dense[order[i]] = *n_rows - 1;
    }
    free(order);
    return st;
}

/* A group that has nothing to do with a row's place in the table, where neighbours may be related. */
static uint32_t group_of(uint64_t row)
{
    uint64_t x = row + UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((x ^ (x >> 31)) % ROW_GROUPS);
}

grq_status grq_row_correlations(const uint64_t *rows, const double *energy, const double *count, size_t n,
                                uint32_t n_resamples, uint64_t seed, uint64_t *n_rows, grq_interval *spearman,
                                grq_interval *pearson, grq_error *err)
{
    uint32_t n_distinct = 0;
    uint32_t *dense = grq_stats_array(n, sizeof *dense, "rows", err);
    grq_status st = dense ? grq_dense_rows(rows, n, dense, &n_distinct, err) : GRQ_E_NOMEM;
    double *mean = NULL, *row_count = NULL, *n_reads = NULL;
    uint32_t *group = NULL;
    if (st == GRQ_OK) {
        mean = grq_stats_array(n_distinct, sizeof *mean, "rows", err);
        row_count = grq_stats_array(n_distinct, sizeof *row_count, "rows", err);
        n_reads = grq_stats_array(n_distinct, sizeof *n_reads, "rows", err);
        group = grq_stats_array(n_distinct, sizeof *group, "rows", err);
        if (!mean || !row_count || !n_reads || !group) st = GRQ_E_NOMEM;
    }
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        mean[dense[i]] += energy[i];
        n_reads[dense[i]] += 1;
        row_count[dense[i]] = count[i];
        group[dense[i]] = group_of(rows[i]);
    }
    for (uint32_t r = 0; st == GRQ_OK && r < n_distinct; r++) mean[r] /= n_reads[r];
    if (st == GRQ_OK) {
        *n_rows = n_distinct;
        st = grq_spearman(mean, row_count, group, n_distinct, ROW_GROUPS, n_resamples, seed, spearman, err);
    }
    if (st == GRQ_OK && pearson) {
        for (uint32_t r = 0; r < n_distinct; r++) row_count[r] = log1p(row_count[r]);
        st = grq_pearson(mean, row_count, group, n_distinct, ROW_GROUPS, n_resamples, seed, pearson, err);
    }
    free(dense);
    free(mean);
    free(row_count);
    free(n_reads);
    free(group);
    return st;
}
