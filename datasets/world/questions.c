/* The questions of a world. */
#include <stdlib.h>
#include <string.h>

#include "world_internal.h"

static int by_index(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

static grq_status set_quartiles(grq_questions *q, grq_error *err)
{
    double *popularity = malloc((q->n + 1) * sizeof *popularity);
    uint32_t *quartile = malloc((q->n + 1) * sizeof *quartile);
    grq_status st = popularity && quartile ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for %zu questions", q->n);
    for (size_t i = 0; st == GRQ_OK && i < q->n; i++) popularity[i] = q->items[i].popularity;
    if (st == GRQ_OK) st = grq_popularity_quartiles(popularity, q->n, quartile, NULL, err);
    for (size_t i = 0; st == GRQ_OK && i < q->n; i++) q->items[i].quartile = quartile[i];
    free(popularity);
    free(quartile);
    return st;
}

/* Which facts are asked about, in fact order. */
static grq_status choose(const grq_world *w, size_t limit, uint64_t seed, size_t **chosen, size_t *n, grq_error *err)
{
    size_t *all = malloc((w->n_facts + 1) * sizeof *all);
    if (!all) return grq_fail(err, GRQ_E_NOMEM, "no memory for %zu questions", w->n_facts);
    for (size_t i = 0; i < w->n_facts; i++) all[i] = i;
    *n = limit == 0 || limit > w->n_facts ? w->n_facts : limit;
    if (*n < w->n_facts) {
        grq_rng rng;
        grq_rng_seed_for(&rng, seed, "questions");
        grq_rng_shuffle(&rng, all, w->n_facts, sizeof *all);
        qsort(all, *n, sizeof *all, by_index);
    }
    *chosen = all;
    return GRQ_OK;
}

grq_status grq_world_questions(const grq_world *w, size_t limit, uint64_t seed, grq_questions *out, grq_error *err)
{
    size_t *chosen = NULL, n = 0;
    *out = (grq_questions){ 0 };
    grq_status st = choose(w, limit, seed, &chosen, &n, err);
    if (st == GRQ_OK) {
        out->items = calloc(n + 1, sizeof *out->items);
        if (!out->items) st = grq_fail(err, GRQ_E_NOMEM, "no memory for %zu questions", n);
    }
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        const grq_fact *fact = &w->facts[chosen[i]];
        const compiled_fact *c = &w->compiled[chosen[i]];
        out->items[i] = (grq_question){
            .id = fact->id,
            .fact = chosen[i],
            .subject = fact->subject,
            .relation = fact->relation,
            .prompt = c->prompt.ids,
            .n_prompt = c->prompt.n,
            .answer = c->answer.ids,
            .n_answer = c->answer.n,
            .n_accepted = fact->n_accepted,
            .accepted = fact->accepted,
            .popularity = fact->popularity,
            .held = c->held,
        };
        out->n = i + 1;
    }
    if (st == GRQ_OK) st = set_quartiles(out, err);
    free(chosen);
    if (st != GRQ_OK) grq_questions_free(out);
    return st;
}

void grq_questions_free(grq_questions *questions)
{
    free(questions->items);
    *questions = (grq_questions){ 0 };
}
