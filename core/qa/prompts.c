/* Drawing demonstrations and writing prompts. */
#include "gaterq/prompts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/rng.h"
#include "prompt_layout.h"

enum { MAX_GROUPS = 256 };

struct grq_prompter {
    const grq_prompt_protocol *protocol;
    uint32_t n_shots;
    uint64_t seed;
    const grq_suite_item *pool;
    size_t n_pool;
    /* Items of each group (relation, subject), in the pool's order: group g has by_group[first[g]] to
     * by_group[first[g + 1] - 1]. */
    size_t n_groups, *by_group, first[MAX_GROUPS + 1];
    const char *group[MAX_GROUPS];
};

/* ---- the pool ---- */

static size_t group_of(const grq_prompter *p, const char *name)
{
    size_t g = 0;
    while (g < p->n_groups && strcmp(p->group[g], name)) g++;
    return g;
}

static grq_status list_groups(grq_prompter *p, grq_error *err)
{
    size_t count[MAX_GROUPS] = { 0 };
    p->by_group = malloc((p->n_pool + 1) * sizeof *p->by_group);
    if (!p->by_group) return grq_fail(err, GRQ_E_NOMEM, "no memory for demonstrations");
    for (size_t i = 0; i < p->n_pool; i++) {
        const char *const name = p->pool[i].group ? p->pool[i].group : "";
        if (!p->pool[i].shown) continue; /* nothing to demonstrate */
        const size_t g = group_of(p, name);
        if (g == MAX_GROUPS)
            return grq_fail(err, GRQ_E_DATA, "demonstrations: item %.80s: more than %d relations or subjects",
                            p->pool[i].id, MAX_GROUPS);
        if (g == p->n_groups) p->group[p->n_groups++] = name;
        count[g]++;
    }
    for (size_t g = 0; g < p->n_groups; g++) p->first[g + 1] = p->first[g] + count[g];
    memset(count, 0, sizeof count);
    for (size_t i = 0; i < p->n_pool; i++) {
        if (!p->pool[i].shown) continue;
        const size_t g = group_of(p, p->pool[i].group ? p->pool[i].group : "");
        p->by_group[p->first[g] + count[g]++] = i;
    }
    return GRQ_OK;
}

grq_status grq_prompter_new(const grq_prompt_protocol *protocol, const grq_suite *pool, uint32_t n_shots, uint64_t seed,
                            grq_prompter **out, grq_error *err)
{
    *out = NULL;
    if (n_shots > protocol->most_shots)
        return grq_fail(err, GRQ_E_USAGE, "%u shots: %s has at most %u", n_shots, protocol->name, protocol->most_shots);
    if (n_shots && !pool) return grq_fail(err, GRQ_E_USAGE, "%u shots, but nothing to draw them from", n_shots);
    grq_prompter *const p = calloc(1, sizeof *p);
    if (!p) return grq_fail(err, GRQ_E_NOMEM, "no memory for prompts");
    *p = (grq_prompter){ .protocol = protocol, .n_shots = n_shots, .seed = seed };
    if (n_shots) {
        p->pool = grq_suite_items(pool);
        p->n_pool = grq_suite_count(pool);
    }
    const grq_status st = list_groups(p, err);
    if (st == GRQ_OK) *out = p;
    else grq_prompter_free(p);
    return st;
}

void grq_prompter_free(grq_prompter *p)
{
    if (!p) return;
    free(p->by_group);
    free(p);
}

/* ---- demonstrations ---- */

static grq_status too_few(const grq_prompter *p, const grq_suite_item *item, size_t there, const char *what,
                          grq_error *err)
{
    return grq_fail(err, GRQ_E_DATA, "item %.80s: %u shots are asked for, but there are %zu %s", item->id, p->n_shots,
                    there, what);
}

static grq_status from_other_relations(const grq_prompter *p, const grq_suite_item *item, grq_rng *rng,
                                       grq_prompt_text *out, grq_error *err)
{
    size_t others[MAX_GROUPS], n = 0;
    for (size_t g = 0; g < p->n_groups; g++)
        if (strcmp(p->group[g], item->group ? item->group : "")) others[n++] = g;
    if (n < p->n_shots) return too_few(p, item, n, "other relations", err);
    grq_rng_shuffle(rng, others, n, sizeof *others);
    for (uint32_t k = 0; k < p->n_shots; k++) {
        const size_t g = others[k];
        out->shots[k] = &p->pool[p->by_group[p->first[g] + grq_rng_below(rng, p->first[g + 1] - p->first[g])]];
    }
    return GRQ_OK;
}

/* Not the item's own question, none twice. The pool is one group: those that have an answer to show. */
static grq_status at_random(const grq_prompter *p, const grq_suite_item *item, grq_rng *rng, grq_prompt_text *out,
                            grq_error *err)
{
    const size_t n = p->first[p->n_groups];
    size_t n_tries = 0;
    for (uint32_t k = 0; k < p->n_shots;) {
        if (n == 0 || n_tries++ > 100 * (size_t)GRQ_MAX_SHOTS + n)
            return too_few(p, item, k, "different demonstrations", err);
        const grq_suite_item *const shot = &p->pool[p->by_group[grq_rng_below(rng, n)]];
        bool used = !strcmp(shot->question, item->question);
        for (uint32_t i = 0; i < k; i++) used = used || out->shots[i] == shot;
        if (!used) out->shots[k++] = shot;
    }
    return GRQ_OK;
}

static grq_status first_of_subject(const grq_prompter *p, const grq_suite_item *item, grq_prompt_text *out,
                                   grq_error *err)
{
    const size_t g = group_of(p, item->group ? item->group : "");
    const size_t n = g < p->n_groups ? p->first[g + 1] - p->first[g] : 0;
    if (n < p->n_shots) return too_few(p, item, n, "dev questions of its subject", err);
    for (uint32_t k = 0; k < p->n_shots; k++) out->shots[k] = &p->pool[p->by_group[p->first[g] + k]];
    return GRQ_OK;
}

static grq_status draw(const grq_prompter *p, const grq_suite_item *item, grq_prompt_text *out, grq_error *err)
{
    char purpose[512];
    grq_rng rng;
    snprintf(purpose, sizeof purpose, "shots of %s/%.400s", p->protocol->suite, item->id);
    grq_rng_seed_for(&rng, p->seed, purpose);
    switch (p->n_shots ? p->protocol->shot_rule : GRQ_SHOTS_NONE) {
    case GRQ_SHOTS_NONE: return GRQ_OK;
    case GRQ_SHOTS_OTHER_RELATIONS: return from_other_relations(p, item, &rng, out, err);
    case GRQ_SHOTS_RANDOM: return at_random(p, item, &rng, out, err);
    case GRQ_SHOTS_FIRST: return first_of_subject(p, item, out, err);
    }
    return GRQ_OK;
}

/* ---- writing ---- */

static const char *const SPACE = " \t\r\n";

/* DPR's copies of Natural Questions have a space before commas and full stops, which are words of their own there;
 * ".05" is none. */
static bool is_split_off(const char *text, size_t n, size_t space)
{
    return text[space] == ' ' && space + 1 < n && strchr(",.", text[space + 1]) &&
           (space + 2 == n || text[space + 2] == ' ');
}

static void write_text(FILE *to, const char *text, size_t n, bool detokenise)
{
    for (size_t i = 0; i < n; i++)
        if (!detokenise || !is_split_off(text, n, i)) fputc(text[i], to);
}

static void write_question(FILE *to, const grq_prompt_layout *l, const grq_suite_item *item, bool detokenise)
{
    const char *question = item->question;
    size_t n = strlen(question);
    if (l->trim) {
        question += strspn(question, SPACE);
        for (n = strlen(question); n > 0 && strchr(SPACE, question[n - 1]);) n--;
    }
    fputs(l->question, to);
    write_text(to, question, n, detokenise);
    if (l->mark == ALWAYS_MARK) fputc('?', to);
    for (size_t k = 0; l->choices && k < GRQ_N_CHOICES; k++) fprintf(to, "\n%c. %s", (char)('A' + k), item->choices[k]);
    fputs(l->answer, to);
}

static void write_heading(FILE *to, const grq_prompt_layout *l, const char *subject)
{
    const char *const place = l->heading ? strstr(l->heading, "%s") : NULL;
    if (!l->heading) return;
    if (!place) {
        fputs(l->heading, to);
        return;
    }
    fwrite(l->heading, 1, (size_t)(place - l->heading), to);
    fputs(subject, to);
    fputs(place + 2, to);
}

static const char *shown_answer(const grq_prompt_layout *l, const grq_suite_item *shot)
{
    return l->first_alias && shot->aliases.n ? shot->aliases.texts[0] : shot->shown;
}

static void write_prompt(FILE *to, const grq_prompt_layout *l, const char *subject, const grq_suite_item *item,
                         const grq_prompt_text *prompt)
{
    if (!l->heading_each) write_heading(to, l, subject);
    for (uint32_t k = 0; k < prompt->n_shots; k++) {
        if (l->heading_each) write_heading(to, l, subject);
        const char *const answer = shown_answer(l, prompt->shots[k]);
        write_question(to, l, prompt->shots[k], l->detokenise_shots);
        fputs(l->shot_gap, to);
        write_text(to, answer, strlen(answer), l->detokenise_shots);
        fputs(l->between, to);
    }
    if (l->heading_each) write_heading(to, l, subject);
    write_question(to, l, item, false);
}

grq_status grq_prompt_text_make(const grq_prompter *p, const grq_suite_item *item, grq_prompt_text *out, grq_error *err)
{
    *out = (grq_prompt_text){ .n_shots = p->n_shots };
    const grq_prompt_layout *const l = p->protocol->layout;
    const char *const subject = l->choices && item->group ? grq_cmmlu_subject_name(item->group) : "";
    size_t n = 0;
    if (l->choices && (!item->choices || !subject))
        return grq_fail(err, GRQ_E_DATA, "item %.80s: %s", item->id,
                        item->choices ? "its subject is none of CMMLU's 67" : "has no choices");
    const grq_status st = draw(p, item, out, err);
    if (st != GRQ_OK) return st;
    FILE *const to = open_memstream(&out->text, &n);
    if (!to) return grq_fail(err, GRQ_E_NOMEM, "no memory for a prompt");
    write_prompt(to, l, subject, item, out);
    if (fclose(to) == 0 && out->text) return GRQ_OK;
    grq_prompt_text_free(out);
    return grq_fail(err, GRQ_E_NOMEM, "no memory for a prompt");
}

void grq_prompt_text_free(grq_prompt_text *prompt)
{
    free(prompt->text);
    *prompt = (grq_prompt_text){ 0 };
}
