/* gaterq bench score: all of PopQA scored by every rule, beside a plain search for the same answers in the same
 * outputs.
 *
 * The items are made up, with PopQA's numbers: 14,267 questions, 3.82 accepted answers on average and 190 at most. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "gaterq/rng.h"
#include "gaterq/score.h"

enum { N_ITEMS = 14267, MOST_ANSWERS = 190, ANSWER_BYTES = 48, OUTPUT_BYTES = 128 };

static const double MEAN_ANSWERS = 3.82;

typedef struct {
    grq_suite_item *items;
    char (*ids)[16], *answers; /* (all answers, ANSWER_BYTES) */
    const char **accepted;
    char *lines; /* a predictions file */
    size_t n_answers, n_bytes;
} made_up;

static void free_made_up(made_up *m)
{
    free(m->items);
    free(m->ids);
    free(m->answers);
    free(m->accepted);
    free(m->lines);
}

/* Words of 2 to 9 letters, a few of them not ASCII, each with a capital. */
static size_t put_words(grq_rng *rng, size_t n_words, char *to, size_t room)
{
    static const char *const letters[] = { "e", "t", "a", "o", "i", "n", "s", "r", "h", "l", "\u00E9", "\u0161" };
    size_t n = 0;
    for (size_t w = 0; w < n_words; w++) {
        const size_t length = 2 + grq_rng_below(rng, 8);
        if (n + 2 * length + 2 > room) break;
        if (w) to[n++] = ' ';
        to[n++] = (char)('A' + grq_rng_below(rng, 26));
        for (size_t k = 1; k < length; k++) {
            const char *const letter = letters[grq_rng_below(rng, grq_rng_below(rng, 8) ? 10 : 12)];
            memcpy(to + n, letter, strlen(letter));
            n += strlen(letter);
        }
    }
    to[n] = '\0';
    return n;
}

/* One at least; the rest is geometric, so that a few items have many. One item has the most. */
static size_t draw_n_answers(grq_rng *rng, size_t item)
{
    const double mean = MEAN_ANSWERS - 1 - (double)MOST_ANSWERS / N_ITEMS;
    const double drawn = floor(log(1 - grq_rng_uniform(rng)) / log(mean / (mean + 1)));
    return item == N_ITEMS / 2 ? MOST_ANSWERS : 1 + (size_t)fmin(drawn, MOST_ANSWERS - 1);
}

/* Half of the outputs hold an answer of their item. */
static void put_line(made_up *m, grq_rng *rng, size_t i)
{
    char output[OUTPUT_BYTES];
    const grq_suite_item *const item = &m->items[i];
    size_t n = put_words(rng, 1 + grq_rng_below(rng, 5), output, OUTPUT_BYTES - ANSWER_BYTES - 1);
    if (grq_rng_below(rng, 2))
        snprintf(output + n, sizeof output - n, " %s", item->accepted[grq_rng_below(rng, item->n_accepted)]);
    m->n_bytes += (size_t)sprintf(
        m->lines + m->n_bytes, "{\"suite\":\"popqa\",\"id\":\"%s\",\"output\":\" %s.\\nQ: next\"}\n", item->id, output);
}

static grq_status make_up(uint64_t seed, made_up *m, grq_error *err)
{
    grq_rng rng;
    size_t counts[N_ITEMS];
    grq_rng_seed_for(&rng, seed, "bench score");
    for (size_t i = 0; i < N_ITEMS; i++) m->n_answers += counts[i] = draw_n_answers(&rng, i);
    m->items = calloc(N_ITEMS, sizeof *m->items);
    m->ids = calloc(N_ITEMS, sizeof *m->ids);
    m->answers = malloc(m->n_answers * ANSWER_BYTES);
    m->accepted = calloc(m->n_answers, sizeof *m->accepted);
    m->lines = malloc((size_t)N_ITEMS * (OUTPUT_BYTES + 128));
    if (!m->items || !m->ids || !m->answers || !m->accepted || !m->lines)
        return grq_fail(err, GRQ_E_NOMEM, "bench: no memory for %d items", N_ITEMS);
    for (size_t a = 0; a < m->n_answers; a++) {
        m->accepted[a] = m->answers + a * ANSWER_BYTES;
        put_words(&rng, 1 + grq_rng_below(&rng, 3), m->answers + a * ANSWER_BYTES, ANSWER_BYTES);
    }
    for (size_t i = 0, first = 0; i < N_ITEMS; first += counts[i++]) {
        snprintf(m->ids[i], sizeof m->ids[i], "%zu", 1000000 + i);
        m->items[i] = (grq_suite_item){
            .id = m->ids[i], .popularity = NAN, .n_accepted = counts[i], .accepted = m->accepted + first
        };
        put_line(m, &rng, i);
    }
    return GRQ_OK;
}

/* ---- measuring ---- */

/* The least seconds of any try, of as many as fit into a share of the time, three at least. */
typedef struct {
    double least, started;
    size_t n;
} best;

static bool try_again(const best *b, double seconds)
{
    return b->n < 3 || bench_now() - b->started < seconds;
}

static void note(best *b, double seconds)
{
    if (b->n++ == 0 || seconds < b->least) b->least = seconds;
}

static best time_search(const made_up *m, const grq_prediction *const *of_item, double seconds)
{
    best b = { .started = bench_now() };
    static volatile size_t found;
    while (try_again(&b, seconds)) {
        const double from = bench_now();
        for (size_t i = 0; i < N_ITEMS; i++)
            for (size_t a = 0; a < m->items[i].n_accepted; a++)
                found += strstr(of_item[i]->output, m->items[i].accepted[a]) != NULL;
        note(&b, bench_now() - from);
    }
    return b;
}

static grq_status time_rule(const grq_match_rule *rule, const made_up *m, const grq_prediction *const *of_item,
                            double seconds, best *b, double *accuracy, grq_error *err)
{
    grq_status st = GRQ_OK;
    *b = (best){ .started = bench_now() };
    while (st == GRQ_OK && try_again(b, seconds)) {
        uint64_t n_correct = 0;
        const double from = bench_now();
        for (size_t i = 0; st == GRQ_OK && i < N_ITEMS; i++) {
            bool correct;
            st = grq_match(rule, of_item[i]->output, m->items[i].accepted, m->items[i].n_accepted, &correct, err);
            n_correct += correct;
        }
        note(b, bench_now() - from);
        *accuracy = (double)n_correct / N_ITEMS;
    }
    return st;
}

static grq_status time_reading(const made_up *m, double seconds, best *b, grq_predictions *p, grq_error *err)
{
    *b = (best){ .started = bench_now() };
    grq_status st = GRQ_OK;
    while (st == GRQ_OK && try_again(b, seconds)) {
        const double from = bench_now();
        grq_predictions_close(p);
        st = grq_predictions_parse("bench", m->lines, m->n_bytes, p, err);
        note(b, bench_now() - from);
    }
    return st;
}

static grq_status measure_rules(tool_context *tool, const made_up *m, const grq_prediction *const *of_item,
                                double seconds, grq_error *err)
{
    grq_status st = GRQ_OK;
    const best search = time_search(m, of_item, seconds);
    if (!tool->json)
        printf("%-30s %9s  %10s  %s\n%-30s %9.2f  %10.0f  %.1f\n", "rule", "ms", "answers/s", "times a plain search",
               "(plain search)", 1e3 * search.least, (double)m->n_answers / search.least, 1.0);
    grq_json_put_f64(tool->result, "search_seconds", search.least);
    grq_json_begin_array(tool->result, "rules");
    for (size_t i = 0; st == GRQ_OK && grq_match_rule_at(i); i++) {
        const grq_match_rule *const rule = grq_match_rule_at(i);
        best b;
        double accuracy;
        if (rule->same_as || rule->kind != GRQ_MATCH_TEXT) continue;
        st = time_rule(rule, m, of_item, seconds, &b, &accuracy, err);
        if (st != GRQ_OK) break;
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_string(tool->result, "rule", rule->name);
        grq_json_put_f64(tool->result, "seconds", b.least);
        grq_json_put_f64(tool->result, "accuracy", accuracy);
        grq_json_put_f64(tool->result, "ratio", b.least / search.least);
        grq_json_end_object(tool->result);
        if (!tool->json)
            printf("%-30s %9.2f  %10.0f  %.1f\n", rule->name, 1e3 * b.least, (double)m->n_answers / b.least,
                   b.least / search.least);
    }
    grq_json_end_array(tool->result);
    return st;
}

grq_status bench_score(tool_context *tool, double seconds, grq_error *err)
{
    made_up m = { 0 };
    grq_predictions p = { 0 };
    const grq_prediction **const of_item = calloc(N_ITEMS, sizeof *of_item);
    best reading = { 0 };
    const double share = seconds / 32; /* of one figure */
    grq_status st = of_item ? make_up(tool->seed, &m, err) : grq_fail(err, GRQ_E_NOMEM, "bench: no memory");
    if (st == GRQ_OK) st = time_reading(&m, share, &reading, &p, err);
    if (st == GRQ_OK) st = grq_score_align("popqa", "bench", m.items, N_ITEMS, &p, false, of_item, err);
    if (st == GRQ_OK) {
        grq_json_put_u64(tool->result, "items", N_ITEMS);
        grq_json_put_u64(tool->result, "answers", m.n_answers);
        grq_json_put_f64(tool->result, "read_seconds", reading.least);
        if (!tool->json)
            printf("%d items, %zu accepted answers; reading %zu KiB of predictions takes %.1f ms\n", N_ITEMS,
                   m.n_answers, m.n_bytes >> 10, 1e3 * reading.least);
        st = measure_rules(tool, &m, of_item, share, err);
    }
    grq_predictions_close(&p);
    free_made_up(&m);
    free(of_item);
    return st;
}
