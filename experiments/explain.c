#include "explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NGRAM_BYTES = 160 };

/* One layer's look-ups with the depth that each ordering gives them. */
typedef struct {
    const explain_view *view;
    const grq_trace_layer *layer;
    uint8_t *depth[GRQ_N_ORDERINGS]; /* (n_lookups) */
    size_t *shown;                   /* indices of the look-ups to show */
    size_t n_shown;
} explained;

static size_t n_lookups(const explained *e)
{
    return e->view->trace->n_positions * e->layer->n_columns;
}

/* ---- depths ---- */

static grq_status allocate_depths(explained *e, const grq_budget *budget, grq_error *err)
{
    const grq_trace_layer *const l = e->layer;
    const size_t n_positions = e->view->trace->n_positions, n = n_lookups(e);
    uint64_t *ids = malloc(n_positions * sizeof *ids);
    float *energy = malloc(n_positions * sizeof *energy);
    double *tau = malloc(l->n_columns * sizeof *tau), *score = malloc(n * sizeof *score);
    grq_status st =
        ids && energy && tau && score ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for %zu look-ups", n);
    for (size_t t = 0; st == GRQ_OK && t < n_positions; t++) {
        ids[t] = t;
        energy[t] = l->gate_energy[t * l->n_columns];
    }
    for (uint32_t j = 0; st == GRQ_OK && j < l->n_columns; j++) tau[j] = l->tau[j];
    const grq_lookup_batch batch = { .n_positions = n_positions,
                                     .n_columns = l->n_columns,
                                     .position_ids = ids,
                                     .gate_energy = energy,
                                     .tau = tau,
                                     .row_energy = l->row_energy,
                                     .prior = l->prior,
                                     .frequency = l->frequency,
                                     .true_reduction = l->injected_reduction };
    for (int o = 0; st == GRQ_OK && o < GRQ_N_ORDERINGS; o++) {
        e->depth[o] = malloc(n);
        if (!e->depth[o]) st = grq_fail(err, GRQ_E_NOMEM, "no memory for %zu depths", n);
        if (st == GRQ_OK) st = grq_policy_score((grq_ordering)o, &batch, e->view->seed, score, err);
        if (st == GRQ_OK) st = grq_budget_allocate(budget, score, n, e->depth[o], err);
    }
    free(ids);
    free(energy);
    free(tau);
    free(score);
    return st;
}

/* ---- which look-ups ---- */

typedef struct {
    float importance;
    size_t index;
} ranked;

static int by_importance(const void *a, const void *b)
{
    const ranked *const x = a, *const y = b;
    if (x->importance != y->importance) return x->importance > y->importance ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int by_index(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

static grq_status choose_shown(explained *e, grq_error *err)
{
    const size_t n = n_lookups(e);
    ranked *const list = malloc(n * sizeof *list);
    e->shown = malloc(n * sizeof *e->shown);
    if (!list || !e->shown) {
        free(list);
        return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu look-ups", n);
    }
    size_t n_listed = 0;
    for (size_t i = 0; i < n; i++)
        if (!e->view->only_sequence || e->view->trace->sequence[i / e->layer->n_columns] == e->view->sequence)
            list[n_listed++] = (ranked){ e->layer->importance[i], i };
    qsort(list, n_listed, sizeof *list, by_importance);
    e->n_shown = e->view->top && e->view->top < n_listed ? (size_t)e->view->top : n_listed;
    for (size_t i = 0; i < e->n_shown; i++) e->shown[i] = list[i].index;
    qsort(e->shown, e->n_shown, sizeof *e->shown, by_index);
    free(list);
    return GRQ_OK;
}

/* ---- words ---- */

static void put_token(const explain_view *v, size_t position, char *text, size_t room)
{
    const int32_t id = v->trace->token[position];
    const size_t used = strlen(text);
    if (!v->vocab) {
        snprintf(text + used, room - used, "%" PRId32, id);
        return;
    }
    size_t n;
    const char *const token = grq_vocab_token(v->vocab, id, &n);
    for (size_t i = 0; i < n && used + i + 1 < room; i++) { /* a token of bytes may hold line ends */
        text[used + i] = (unsigned char)token[i] < ' ' ? ' ' : token[i];
        text[used + i + 1] = '\0';
    }
}

/* Whether the trace holds the token `back` places before `position` in its sequence: a captured one may begin anywhere,
 * and what a file says of positions need not be so. */
static bool is_traced(const grq_trace *trace, size_t position, uint32_t back)
{
    return back <= position && trace->sequence[position - back] == trace->sequence[position] &&
           trace->position[position - back] == trace->position[position] - back;
}

/* The n-gram that ends at `position`, oldest first; "." stands for padding before the start, "?" for a token that is
 * not in the trace. */
static void put_ngram(const explain_view *v, size_t position, uint32_t order, char text[NGRAM_BYTES])
{
    text[0] = '\0';
    const bool words = !v->vocab || !strcmp(grq_vocab_kind(v->vocab), "words");
    for (uint32_t back = order; back-- > 0;) {
        if (back > v->trace->position[position]) strncat(text, ".", NGRAM_BYTES - strlen(text) - 1);
        else if (!is_traced(v->trace, position, back)) strncat(text, "?", NGRAM_BYTES - strlen(text) - 1);
        else put_token(v, position - back, text, NGRAM_BYTES);
        if (words && back > 0) strncat(text, " ", NGRAM_BYTES - strlen(text) - 1);
    }
}

/* ---- one look-up ---- */

static void json_lookup(tool_context *tool, const explained *e, size_t i)
{
    const grq_trace_layer *const l = e->layer;
    const grq_trace *const trace = e->view->trace;
    const size_t t = i / l->n_columns;
    char ngram[NGRAM_BYTES];
    put_ngram(e->view, t, l->order[i], ngram);
    grq_json_begin_object(tool->result, NULL);
    grq_json_put_u64(tool->result, "layer", l->layer);
    grq_json_put_u64(tool->result, "sequence", trace->sequence[t]);
    grq_json_put_u64(tool->result, "position", trace->position[t]);
    grq_json_put_i64(tool->result, "token", trace->token[t]);
    grq_json_put_u64(tool->result, "order", l->order[i]);
    grq_json_put_u64(tool->result, "head", l->head[i]);
    grq_json_put_string(tool->result, "ngram", ngram);
    grq_json_put_i64(tool->result, "row", l->row[i]);
    grq_json_put_u64(tool->result, "count", l->frequency[i]);
    grq_json_begin_array(tool->result, "gates");
    for (uint32_t m = 0; m < l->n_branches; m++)
        grq_json_put_f64(tool->result, NULL, l->gates_stage1[t * l->n_branches + m]);
    grq_json_end_array(tool->result);
    grq_json_put_f64(tool->result, "gate_energy", l->gate_energy[i]);
    grq_json_put_f64(tool->result, "tau", l->tau[i]);
    grq_json_put_f64(tool->result, "row_energy", l->row_energy[i]);
    grq_json_put_f64(tool->result, "importance", l->importance[i]);
    grq_json_begin_object(tool->result, "depth");
    for (int o = 0; o < GRQ_N_ORDERINGS; o++)
        grq_json_put_u64(tool->result, grq_ordering_name((grq_ordering)o), e->depth[o][i]);
    grq_json_end_object(tool->result);
    grq_json_end_object(tool->result);
}

static void print_gates(const explained *e, size_t position)
{
    for (uint32_t m = 0; m < e->layer->n_branches; m++)
        printf(" %.3f", (double)e->layer->gates_stage1[position * e->layer->n_branches + m]);
}

static void print_lookup(const explained *e, size_t i)
{
    const grq_trace_layer *const l = e->layer;
    char ngram[NGRAM_BYTES];
    put_ngram(e->view, i / l->n_columns, l->order[i], ngram);
    printf("  %u-gram head %u  %-36s row %8" PRId64 "  count %7" PRIu64 "  tau %7.3f  |e|^2 %8.4f  I %10.3e  ",
           l->order[i], l->head[i], ngram, l->row[i], l->frequency[i], (double)l->tau[i], (double)l->row_energy[i],
           (double)l->importance[i]);
    for (int o = 0; o < GRQ_N_ORDERINGS; o++) printf(" %u", e->depth[o][i]);
    printf("\n");
}

static void print_lookups(const explained *e)
{
    size_t last = SIZE_MAX;
    const grq_trace *const trace = e->view->trace;
    printf("Layer %u. Depth under:", e->layer->layer);
    for (int o = 0; o < GRQ_N_ORDERINGS; o++) printf(" %s", grq_ordering_name((grq_ordering)o));
    printf("\n");
    for (size_t k = 0; k < e->n_shown; k++) {
        const size_t t = e->shown[k] / e->layer->n_columns;
        if (t != last) {
            char token[NGRAM_BYTES] = "";
            put_token(e->view, t, token, sizeof token);
            if (last == SIZE_MAX || trace->sequence[t] != trace->sequence[last]) {
                printf("Sequence %u", trace->sequence[t]);
                if (trace->sequence[t] < e->view->n_texts) printf(": %s", e->view->texts[trace->sequence[t]]);
                printf("\n");
            }
            printf(" position %u, \"%s\": gates", trace->position[t], token);
            print_gates(e, t);
            printf(", gate energy %.4f\n", (double)e->layer->gate_energy[t * e->layer->n_columns]);
        }
        print_lookup(e, e->shown[k]);
        last = t;
    }
}

/* ---- rows in several contexts ---- */

typedef struct {
    int64_t row;
    size_t index;
} reader;

static int by_row(const void *a, const void *b)
{
    const reader *const x = a, *const y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void json_shared(tool_context *tool, const explained *e, const reader *group, size_t n)
{
    const grq_trace_layer *const l = e->layer;
    grq_json_begin_object(tool->result, NULL);
    grq_json_put_u64(tool->result, "layer", l->layer);
    grq_json_put_i64(tool->result, "row", group->row);
    grq_json_begin_array(tool->result, "contexts");
    for (size_t i = 0; i < n; i++) {
        const size_t t = group[i].index / l->n_columns;
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_u64(tool->result, "sequence", e->view->trace->sequence[t]);
        grq_json_put_u64(tool->result, "position", e->view->trace->position[t]);
        grq_json_put_f64(tool->result, "gate_energy", l->gate_energy[group[i].index]);
        grq_json_put_f64(tool->result, "importance", l->importance[group[i].index]);
        grq_json_put_u64(tool->result, "depth", e->depth[GRQ_ORDER_GATE][group[i].index]);
        grq_json_end_object(tool->result);
    }
    grq_json_end_array(tool->result);
    grq_json_end_object(tool->result);
}

static void print_shared(const explained *e, const reader *group, size_t n)
{
    const grq_trace_layer *const l = e->layer;
    char ngram[NGRAM_BYTES];
    put_ngram(e->view, group->index / l->n_columns, l->order[group->index], ngram);
    printf(" row %" PRId64 ", %u-gram head %u, %s, count %" PRIu64 "\n", group->row, l->order[group->index],
           l->head[group->index], ngram, l->frequency[group->index]);
    for (size_t i = 0; i < n; i++) {
        const size_t t = group[i].index / l->n_columns;
        printf("   sequence %u, position %2u: gates", e->view->trace->sequence[t], e->view->trace->position[t]);
        print_gates(e, t);
        printf(", gate energy %.4f, I %10.3e, depth %u\n", (double)l->gate_energy[group[i].index],
               (double)l->importance[group[i].index], e->depth[GRQ_ORDER_GATE][group[i].index]);
    }
}

/* The same row has one frequency and one prior wherever it is read; its gates, and so its depth, differ. */
static grq_status show_shared(tool_context *tool, const explained *e, grq_error *err)
{
    reader *const list = malloc(e->n_shown * sizeof *list);
    if (!list && e->n_shown) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu look-ups", e->n_shown);
    for (size_t i = 0; i < e->n_shown; i++) list[i] = (reader){ e->layer->row[e->shown[i]], e->shown[i] };
    if (e->n_shown) qsort(list, e->n_shown, sizeof *list, by_row);
    bool any = false;
    for (size_t i = 0, n; i < e->n_shown; i += n) {
        n = 1;
        while (i + n < e->n_shown && list[i + n].row == list[i].row) n++;
        if (n == 1) continue;
        if (tool->json) {
            json_shared(tool, e, list + i, n);
        } else {
            if (!any) printf("Layer %u, rows that several positions read:\n", e->layer->layer);
            print_shared(e, list + i, n);
        }
        any = true;
    }
    free(list);
    return GRQ_OK;
}

/* ---- all layers ---- */

static grq_status show_layer(tool_context *tool, const explain_view *view, const grq_trace_layer *layer,
                             const grq_budget *budget, bool shared, grq_error *err)
{
    explained e = { .view = view, .layer = layer };
    grq_status st = allocate_depths(&e, budget, err);
    if (st == GRQ_OK) st = choose_shown(&e, err);
    if (st == GRQ_OK && shared) st = show_shared(tool, &e, err);
    else if (st == GRQ_OK && !tool->json) print_lookups(&e);
    for (size_t k = 0; st == GRQ_OK && !shared && tool->json && k < e.n_shown; k++) json_lookup(tool, &e, e.shown[k]);
    for (int o = 0; o < GRQ_N_ORDERINGS; o++) free(e.depth[o]);
    free(e.shown);
    return st;
}

static grq_status check_view(const explain_view *v, grq_error *err)
{
    bool sequence = !v->only_sequence, layer = v->layer < 0;
    for (size_t t = 0; t < v->trace->n_positions; t++) sequence |= v->trace->sequence[t] == v->sequence;
    for (uint32_t l = 0; l < v->trace->n_layers; l++) layer |= v->trace->layers[l].layer == v->layer;
    if (!sequence) return grq_fail(err, GRQ_E_USAGE, "--sequence: there is no sequence %u", v->sequence);
    if (!layer) return grq_fail(err, GRQ_E_USAGE, "--layer: layer %" PRId64 " has no memory", v->layer);
    return GRQ_OK;
}

grq_status explain_print(tool_context *tool, const explain_view *view, const grq_budget *budget, grq_error *err)
{
    static const char *const keys[] = { "lookups", "shared" };
    grq_status st = check_view(view, err);
    for (int pass = 0; st == GRQ_OK && pass < 2; pass++) {
        if (tool->json) grq_json_begin_array(tool->result, keys[pass]);
        for (uint32_t l = 0; st == GRQ_OK && l < view->trace->n_layers; l++)
            if (view->layer < 0 || view->trace->layers[l].layer == view->layer)
                st = show_layer(tool, view, &view->trace->layers[l], budget, pass == 1, err);
        if (tool->json) grq_json_end_array(tool->result);
    }
    return st;
}
