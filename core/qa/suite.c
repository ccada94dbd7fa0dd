/* Suites by name, and items that own their texts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "suite_internal.h"

/* ---- items that own their texts ---- */

grq_status suite_no_memory(const char *path, grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its items", path);
}

grq_suite_item *suite_add_item(grq_suite *d, const char *id, const char *question, const char *group)
{
    if (d->n == d->room) {
        const size_t room = d->room ? 2 * d->room : 1024;
        grq_suite_item *const larger = realloc(d->items, room * sizeof *larger);
        if (!larger) return NULL;
        d->items = larger;
        d->room = room;
    }
    grq_suite_item *const item = &d->items[d->n++];
    *item = (grq_suite_item){ .id = strdup(id),
                              .question = question ? strdup(question) : NULL,
                              .group = group ? strdup(group) : NULL,
                              .popularity = NAN };
    return item->id && (item->question || !question) && (item->group || !group) ? item : NULL;
}

bool suite_is_blank(const char *text, size_t n)
{
    while (n > 0 && strchr(" \t\r\n", text[n - 1])) n--;
    return n == 0;
}

bool suite_add_answer(grq_suite_item *item, const char *answer)
{
    if (!*answer) return true; /* no answer at all */
    const char **const more = realloc((void *)item->accepted, (item->n_accepted + 1) * sizeof *more);
    if (!more) return false;
    item->accepted = more;
    more[item->n_accepted] = strdup(answer);
    return more[item->n_accepted++] != NULL;
}

/* ---- suites ---- */

static void free_item(grq_suite_item *item)
{
    for (size_t k = 0; k < item->n_accepted; k++) free((char *)item->accepted[k]);
    for (size_t k = 0; item->choices && k < GRQ_N_CHOICES; k++) free((char *)item->choices[k]);
    free((void *)item->accepted);
    free((void *)item->choices);
    free((char *)item->id);
    free((char *)item->question);
    free((char *)item->group);
    free((char *)item->shown);
}

void grq_suite_close(grq_suite *suite)
{
    if (!suite) return;
    for (size_t i = 0; !suite->facts && i < suite->n; i++) free_item(&suite->items[i]);
    free(suite->items);
    free(suite->groups);
    grq_facts_close(suite->facts);
    free(suite);
}

size_t grq_suite_count(const grq_suite *suite)
{
    return suite->n;
}

const grq_suite_item *grq_suite_items(const grq_suite *suite)
{
    return suite->items;
}

const grq_suite_group *grq_suite_groups(const grq_suite *suite, size_t *n_groups)
{
    *n_groups = suite->n_groups;
    return suite->groups;
}

/* The object; reconstructed files lack some, and an accepted answer stands in. */
static const char *shown_of(const grq_fact *fact)
{
    if (fact->object && *fact->object) return fact->object;
    return fact->n_accepted ? fact->accepted[0] : NULL;
}

static grq_status read_facts(grq_suite *suite, const char *path, grq_error *err)
{
    const grq_status st = grq_facts_open(path, &suite->facts, err);
    if (st != GRQ_OK) return st;
    suite->n = grq_facts_count(suite->facts);
    suite->items = calloc(suite->n + 1, sizeof *suite->items);
    if (!suite->items) return suite_no_memory(path, err);
    for (size_t i = 0; i < suite->n; i++) {
        const grq_fact *const fact = grq_facts_at(suite->facts, i);
        suite->items[i] = (grq_suite_item){ .id = fact->id,
                                            .question = fact->question,
                                            .group = fact->relation,
                                            .popularity = fact->popularity,
                                            .n_accepted = fact->n_accepted,
                                            .accepted = fact->accepted,
                                            .shown = shown_of(fact) };
    }
    return GRQ_OK;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static grq_status check_ids(const grq_suite *suite, const char *path, grq_error *err)
{
    const char **const ids = malloc((suite->n + 1) * sizeof *ids);
    grq_status st = ids ? GRQ_OK : suite_no_memory(path, err);
    for (size_t i = 0; ids && i < suite->n; i++) ids[i] = suite->items[i].id;
    if (ids) qsort(ids, suite->n, sizeof *ids, compare_ids);
    for (size_t i = 1; st == GRQ_OK && i < suite->n; i++)
        if (!strcmp(ids[i - 1], ids[i]))
            st = grq_fail(err, GRQ_E_DATA,
                          "%s: item %.80s is there twice (TriviaQA's rc sets hold questions with two kinds of evidence "
                          "twice: take the unfiltered set, or keep one of each)",
                          path, ids[i]);
    free(ids);
    return st;
}

static int compare_groups(const void *a, const void *b)
{
    return strcmp(((const grq_suite_group *)a)->name, ((const grq_suite_group *)b)->name);
}

static grq_status count_groups(grq_suite *suite, const char *path, grq_error *err)
{
    size_t n = 0;
    suite->groups = calloc(suite->n + 1, sizeof *suite->groups);
    if (!suite->groups) return suite_no_memory(path, err);
    for (size_t i = 0; i < suite->n; i++)
        if (suite->items[i].group) suite->groups[n++] = (grq_suite_group){ suite->items[i].group, 1 };
    qsort(suite->groups, n, sizeof *suite->groups, compare_groups);
    for (size_t i = 0; i < n; i++) {
        grq_suite_group *const last = suite->n_groups ? &suite->groups[suite->n_groups - 1] : NULL;
        if (last && !strcmp(last->name, suite->groups[i].name)) last->n++;
        else suite->groups[suite->n_groups++] = suite->groups[i];
    }
    return GRQ_OK;
}

static grq_status complete_items(grq_suite *suite, const char *path, grq_error *err)
{
    for (size_t i = 0; i < suite->n; i++) {
        grq_suite_item *const item = &suite->items[i];
        if (!item->shown && item->n_accepted && !(item->shown = strdup(item->accepted[0])))
            return suite_no_memory(path, err);
    }
    return suite->n ? GRQ_OK : grq_fail(err, GRQ_E_DATA, "%s: there is no question", path);
}

static grq_status read_suite(grq_suite *suite, const char *name, const char *path, const char *part, grq_error *err)
{
    if (!strcmp(name, "popqa")) return read_facts(suite, path, err);
    if (!strcmp(name, "triviaqa")) return suite_read_questions(suite, path, true, err);
    if (!strcmp(name, "nq_open")) return suite_read_questions(suite, path, false, err);
    if (!strcmp(name, "cmmlu")) return suite_read_cmmlu(suite, path, part, err);
    return grq_fail(err, GRQ_E_USAGE, "suite %.60s is not known; there are: popqa, triviaqa, nq_open, cmmlu", name);
}

static grq_status open_part(const char *name, const char *path, const char *part, grq_suite **out, grq_error *err)
{
    grq_suite *const suite = calloc(1, sizeof *suite);
    *out = NULL;
    if (!suite) return suite_no_memory(path, err);
    grq_status st = read_suite(suite, name, path, part, err);
    if (st == GRQ_OK && !suite->facts) st = complete_items(suite, path, err);
    if (st == GRQ_OK) st = check_ids(suite, path, err);
    if (st == GRQ_OK) st = count_groups(suite, path, err);
    if (st == GRQ_OK) *out = suite;
    else grq_suite_close(suite);
    return st;
}

grq_status grq_suite_open(const char *name, const char *path, grq_suite **out, grq_error *err)
{
    return open_part(name, path, "test", out, err);
}

grq_status grq_suite_open_dev(const char *folder, grq_suite **out, grq_error *err)
{
    return open_part("cmmlu", folder, "dev", out, err);
}
