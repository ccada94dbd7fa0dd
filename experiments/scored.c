#include "scored.h"

#include <stdlib.h>
#include <string.h>

#include "gaterq/predictions.h"
#include "qa/id_list.h"

static grq_status no_memory(const char *path, grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its items", path);
}

static void free_file(scored_file *f)
{
    if (!f) return;
    for (size_t i = 0; i < f->n; i++) {
        if (f->ids) free(f->ids[i]);
        if (f->prompts) free(f->prompts[i]);
    }
    free(f->ids);
    free(f->prompts);
    free(f->correct);
    free(f->suite);
    free(f->path);
    free(f);
}

/* Takes the texts that are kept out of the predictions. */
static grq_status keep(scored_file *f, grq_predictions *p, grq_error *err)
{
    f->n = p->n;
    f->ids = calloc(p->n + 1, sizeof *f->ids);
    f->prompts = calloc(p->n + 1, sizeof *f->prompts);
    f->correct = calloc(p->n + 1, sizeof *f->correct);
    if (!f->ids || !f->prompts || !f->correct) return no_memory(f->path, err);
    for (size_t i = 0; i < p->n; i++) {
        grq_prediction *item = &p->items[i];
        if (item->correct < 0)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: line %zu, item %s has no \"correct\"; score it first: gaterq score --suite %s "
                            "--data FILE --predictions %s --out scored.jsonl",
                            item->file, item->line, item->id, item->suite ? item->suite : "SUITE", f->path);
        if (item->suite && f->suite && strcmp(item->suite, f->suite))
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu, item %s is of suite %s, others of %s", item->file,
                            item->line, item->id, item->suite, f->suite);
        if (item->suite && !f->suite) {
            f->suite = item->suite;
            item->suite = NULL;
        }
        f->ids[i] = item->id;
        f->prompts[i] = item->prompt_sha256;
        item->id = item->prompt_sha256 = NULL;
        f->correct[i] = item->correct == 1;
        f->n_correct += f->correct[i];
    }
    return GRQ_OK;
}

static grq_status add(scored_set *set, scored_file *f, grq_error *err)
{
    if (set->n == set->room) {
        const size_t room = set->room ? 2 * set->room : 16;
        scored_file **larger = realloc(set->files, room * sizeof *larger);
        if (!larger) return no_memory(f->path, err);
        set->files = larger;
        set->room = room;
    }
    set->files[set->n++] = f;
    return GRQ_OK;
}

grq_status scored_open(scored_set *set, const char *path, const scored_file **out, grq_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < set->n; i++)
        if (!strcmp(set->files[i]->path, path)) return *out = set->files[i], GRQ_OK;
    grq_predictions p = { 0 };
    scored_file *f = calloc(1, sizeof *f);
    if (f) f->path = strdup(path);
    grq_status st = f && f->path ? grq_predictions_open(path, &p, err) : no_memory(path, err);
    if (st == GRQ_OK) st = keep(f, &p, err);
    grq_predictions_close(&p);
    if (st == GRQ_OK) st = add(set, f, err);
    if (st == GRQ_OK) *out = f;
    else free_file(f);
    return st;
}

void scored_close(scored_set *set)
{
    for (size_t i = 0; i < set->n; i++) free_file(set->files[i]);
    free(set->files);
    *set = (scored_set){ 0 };
}

/* ---- two files ---- */

static bool has_id(const scored_file *f, const char *id)
{
    size_t low = 0, high = f->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(f->ids[middle], id);
        if (order == 0) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return false;
}

/* Items of `x` for which `bad` is set are an error with their list. */
static grq_status refuse_listed(const scored_file *x, const scored_file *y, const bool *bad, const char *what,
                                grq_error *err)
{
    char list[ID_LIST_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) n += bad[i];
    if (!n) return GRQ_OK;
    id_list((const char *const *)x->ids, bad, x->n, list);
    return grq_fail(err, GRQ_E_DATA, "%zu items of %s %s %s: %s", n, x->path, what, y->path, list);
}

static grq_status check_covered(const scored_file *x, const scored_file *y, grq_error *err)
{
    bool *bad = calloc(x->n + 1, sizeof *bad);
    if (!bad) return no_memory(x->path, err);
    for (size_t i = 0; i < x->n; i++) bad[i] = !has_id(y, x->ids[i]);
    const grq_status st = refuse_listed(x, y, bad, "are not in", err);
    free(bad);
    return st;
}

static grq_status check_prompts(const scored_file *x, const scored_file *y, grq_error *err)
{
    bool *bad = calloc(x->n + 1, sizeof *bad);
    if (!bad) return no_memory(x->path, err);
    for (size_t i = 0; i < x->n; i++) bad[i] = x->prompts[i] && y->prompts[i] && strcmp(x->prompts[i], y->prompts[i]);
    const grq_status st = refuse_listed(x, y, bad, "were asked with other prompts (prompt_sha256) than in", err);
    free(bad);
    return st;
}

/* Subjects of "<subject>/<row>" ids, which are sorted, so that each subject is one stretch. *n is 0 where an id has no
 * '/'. */
static void number_subjects(const scored_file *f, uint32_t *stratum, uint32_t *n)
{
    const char *last = NULL;
    size_t last_length = 0;
    *n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const char *slash = strchr(f->ids[i], '/');
        if (!slash) {
            *n = 0;
            return;
        }
        const size_t length = (size_t)(slash - f->ids[i]);
        if (!last || length != last_length || memcmp(last, f->ids[i], length) != 0) ++*n;
        last = f->ids[i];
        last_length = length;
        stratum[i] = *n - 1;
    }
}

static grq_status compare_subjects(const scored_file *a, const scored_file *b, uint32_t n_resamples, uint64_t seed,
                                   scored_comparison *out, grq_error *err)
{
    uint32_t *stratum = calloc(a->n + 1, sizeof *stratum), n = 0;
    if (!stratum) return no_memory(a->path, err);
    number_subjects(a, stratum, &n);
    grq_status st = GRQ_OK;
    if (n) st = grq_macro_compare(a->correct, b->correct, stratum, a->n, n, n_resamples, seed, &out->macro, err);
    out->has_macro = n > 0;
    out->n_subjects = n;
    free(stratum);
    return st;
}

grq_status scored_compare(const scored_file *a, const scored_file *b, uint32_t n_resamples, uint64_t seed,
                          scored_comparison *out, grq_error *err)
{
    *out = (scored_comparison){ .has_macro = false };
    if (a->suite && b->suite && strcmp(a->suite, b->suite))
        return grq_fail(err, GRQ_E_DATA, "%s is of suite %s, %s of %s", a->path, a->suite, b->path, b->suite);
    grq_status st = check_covered(a, b, err);
    if (st == GRQ_OK) st = check_covered(b, a, err);
    if (st == GRQ_OK) st = check_prompts(a, b, err);
    if (st == GRQ_OK) st = grq_paired_compare(a->correct, b->correct, NULL, a->n, n_resamples, seed, &out->paired, err);
    const char *suite = a->suite ? a->suite : b->suite;
    if (st == GRQ_OK && suite && !strcmp(suite, "cmmlu")) st = compare_subjects(a, b, n_resamples, seed, out, err);
    return st;
}
