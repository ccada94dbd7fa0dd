/* The world of real PopQA facts: selection, vocabulary, exposure. Source: specs/miniature-popqa.md. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"
#include "world_internal.h"

typedef struct {
    const char *data;
    uint64_t vocab_size, max_subject_tokens, max_answer_tokens, n_facts;
    double exposure, floor, cap, shown_share;
} popqa_config;

/* A kept row and the answer that is trained. */
typedef struct {
    const grq_fact *fact;
    const char *answer;
} candidate;

typedef struct {
    grq_world *world;
    popqa_config config;
    world_templates templates;
    candidate *candidates; /* one per question string */
    size_t n_candidates;
} builder;

static grq_status no_memory(grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "no memory for the world of PopQA facts");
}

static grq_status read_config(builder *b, grq_json_node *config, const char *folder, grq_error *err)
{
    popqa_config *c = &b->config;
    const char *templates;
    grq_status st = grq_json_string(config, "templates", &templates, err);
    if (st == GRQ_OK) st = grq_json_string(config, "data", &c->data, err);
    if (st == GRQ_OK) st = grq_json_u64(config, "vocab_size", 258, 65536, &c->vocab_size, err);
    if (st == GRQ_OK) st = grq_json_u64(config, "max_subject_tokens", 1, 1000, &c->max_subject_tokens, err);
    if (st == GRQ_OK) st = grq_json_u64(config, "max_answer_tokens", 1, 1000, &c->max_answer_tokens, err);
    if (st == GRQ_OK) st = grq_json_u64(config, "n_facts", 0, 1000000000, &c->n_facts, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "exposure", 0, 2, &c->exposure, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "floor", 0, 1, &c->floor, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "cap", 1, 1e9, &c->cap, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "shown_share", 0, 1, &c->shown_share, err);
    if (st == GRQ_OK) st = world_read_shares(b->world, config, err);
    if (st == GRQ_OK) st = grq_json_finish(config, err);
    return st == GRQ_OK ? world_templates_open(folder, templates, "bytes", &b->templates, err) : st;
}

/* ---- the file ---- */

/* Where datasets/fetch puts files. The caller frees; NULL where neither variable is set, and when out of memory. */
static char *cache_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache) return grq_path_join(cache, "gaterq/datasets");
    return home && *home ? grq_path_join(home, ".cache/gaterq/datasets") : NULL;
}

/* Roots in order; in each the file by its name, and for the official file the reconstruction that holds what is
 * publicly known of it. */
static grq_status find_data(const char *data, const char *folder, char **out, grq_error *err)
{
    const char *stand_in = strcmp(data, "popqa/popQA.tsv") ? data : "popqa/popQA.reconstructed.tsv";
    const char *given = getenv("GATERQ_DATA");
    char *shared = grq_path_join(folder, "../shared/datasets");
    char *cache = cache_folder();
    const char *const roots[] = { given && *given ? given : NULL, shared, cache };
    *out = NULL;
    if (!shared) {
        free(cache);
        return no_memory(err);
    }
    if (data[0] == '/') *out = strdup(data);
    for (size_t i = 0; !*out && i < 6; i++) {
        const char *root = roots[i / 2];
        char *path = root ? grq_path_join(root, i % 2 ? stand_in : data) : NULL;
        if (path && grq_file_exists(path)) *out = path;
        else free(path);
    }
    free(shared);
    free(cache);
    if (*out) return GRQ_OK;
    return grq_fail(err, GRQ_E_IO,
                    "%s: not found in $GATERQ_DATA, ../shared/datasets nor the cache; datasets/fetch popqa gets "
                    "PopQA, or put "
                    "its test.tsv (dataset akariasai/PopQA) at $GATERQ_DATA/%s",
                    data, data);
}

static int by_question(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    const int order = strcmp(x->fact->question, y->fact->question);
    if (order) return order;
    if (x->fact->popularity != y->fact->popularity) return x->fact->popularity > y->fact->popularity ? -1 : 1;
    return x->fact->row < y->fact->row ? -1 : x->fact->row > y->fact->row;
}

static int by_row(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return x->fact->row < y->fact->row ? -1 : x->fact->row > y->fact->row;
}

enum { MAX_TEXT_BYTES = 4096 }; /* the longest question of the real file has 132 */

/* A broken file can hold a text of any length, and learning goes over it again at every merge. */
static grq_status check_lengths(const builder *b, const candidate *c, grq_error *err)
{
    const struct {
        const char *column, *text;
    } fields[] = { { "subj", c->fact->subject },
                   { "question", c->fact->question },
                   { "obj or possible_answers", c->answer } };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const size_t n = strlen(fields[i].text);
        if (n > MAX_TEXT_BYTES)
            return grq_fail(err, GRQ_E_DATA, "%s: row %" PRIu64 ", column %s: %zu bytes, more than %d",
                            grq_facts_path(b->world->file), c->fact->row, fields[i].column, n, MAX_TEXT_BYTES);
    }
    return GRQ_OK;
}

/* Popularity known, subject not empty, and of rows with the same question the most viewed subject: a reader could
 * answer at most one of them. */
static grq_status select_candidates(builder *b, grq_error *err)
{
    const grq_facts *file = b->world->file;
    const size_t n = grq_facts_count(file);
    b->candidates = malloc((n + 1) * sizeof *b->candidates);
    if (!b->candidates) return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const grq_fact *f = grq_facts_at(file, i);
        if (isnan(f->popularity)) continue;
        b->world->n_with_popularity++;
        const char *answer = *f->object ? f->object : f->n_accepted ? f->accepted[0] : NULL;
        if (!*f->subject || !answer) continue;
        b->candidates[b->n_candidates] = (candidate){ f, answer };
        const grq_status st = check_lengths(b, &b->candidates[b->n_candidates++], err);
        if (st != GRQ_OK) return st;
    }
    qsort(b->candidates, b->n_candidates, sizeof *b->candidates, by_question);
    size_t kept = 0;
    for (size_t i = 0; i < b->n_candidates; i++)
        if (!kept || strcmp(b->candidates[i].fact->question, b->candidates[kept - 1].fact->question))
            b->candidates[kept++] = b->candidates[i];
    b->n_candidates = kept;
    qsort(b->candidates, kept, sizeof *b->candidates, by_row);
    b->world->n_file_rows = n;
    b->world->n_distinct_questions = kept;
    if (!kept)
        return grq_fail(err, GRQ_E_DATA, "%s: no row has a popularity (s_pop), a subject and an answer",
                        grq_facts_path(file));
    return GRQ_OK;
}

/* ---- vocabulary ---- */

typedef struct {
    grq_weighted_text *texts;
    size_t n, room;
    bool failed;
} text_list;

enum { TEMPLATE_WEIGHT = 60 }; /* words of the text around the facts count this often */

/* Takes `text` (heap; NULL means no memory). */
static void add_text(text_list *list, char *text, uint64_t weight)
{
    if (list->n == list->room) {
        const size_t room = list->room ? 2 * list->room : 4096;
        grq_weighted_text *texts = realloc(list->texts, room * sizeof *texts);
        if (texts) {
            list->texts = texts;
            list->room = room;
        }
    }
    if (!text || list->n == list->room) {
        list->failed = true;
        free(text);
        return;
    }
    list->texts[list->n++] = (grq_weighted_text){ text, strlen(text), weight };
}

static char *joined(const char *a, const char *b)
{
    char *text = NULL;
    return asprintf(&text, "%s%s", a, b) < 0 ? NULL : text;
}

static void add_filler_word(void *context, const char *word)
{
    add_text(context, joined(" ", word), TEMPLATE_WEIGHT);
}

/* The question without its subject: "Q: What is 's occupation? A:". Only the first place that reads like the subject is
 * taken out; what is left of others changes a pair's weight by one. */
static char *question_frame(const world_templates *t, const grq_fact *fact)
{
    char *question = world_fill(t->prompt, NULL, NULL, fact->question);
    char *at = question ? strstr(question, fact->subject) : NULL;
    if (at) memmove(at, at + strlen(fact->subject), strlen(at + strlen(fact->subject)) + 1);
    return question;
}

static grq_status add_templates(builder *b, text_list *list, grq_error *err)
{
    grq_json_node *statements;
    grq_status st = grq_json_object(b->templates.root, "statements", &statements, err);
    for (size_t i = 0; st == GRQ_OK && i < grq_json_count(statements); i++) {
        grq_json_node *of_relation = grq_json_at(statements, i);
        for (size_t k = 0; st == GRQ_OK && k < grq_json_count(of_relation); k++) {
            const char *format;
            st = grq_json_as_string(grq_json_at(of_relation, k), &format, err);
            if (st != GRQ_OK) break;
            char *body = world_fill(format, "", "", "");
            for (size_t n = body ? strlen(body) : 0; n && body[n - 1] == ' '; n--)
                body[n - 1] = '\0'; /* before the answer */
            add_text(list, body ? joined(body, b->templates.statement_end) : NULL, TEMPLATE_WEIGHT);
            free(body);
        }
    }
    return st;
}

/* Subjects, answers (twice: they must be spelt), question frames, templates, filler words. */
static grq_status learn_vocabulary(builder *b, grq_json_node *filler, grq_error *err)
{
    static const char *const extras[] = { "The", "s", ".\n", "\n", "? A:", "Q:", " the" };
    text_list list = { 0 };
    for (size_t i = 0; i < b->n_candidates; i++) {
        const candidate *c = &b->candidates[i];
        add_text(&list, joined(" ", c->fact->subject), 1);
        add_text(&list, strdup(c->fact->subject), 1);
        add_text(&list, joined(" ", c->answer), 2);
        add_text(&list, question_frame(&b->templates, c->fact), 1);
    }
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) add_text(&list, strdup(extras[i]), TEMPLATE_WEIGHT);
    grq_status st = add_templates(b, &list, err);
    if (st == GRQ_OK) st = world_filler_words(filler, 0, false, add_filler_word, &list, err);
    if (st == GRQ_OK && list.failed) st = no_memory(err);
    if (st == GRQ_OK)
        st = grq_vocab_learn_bytes(list.texts, list.n, (uint32_t)b->config.vocab_size, &b->world->vocab, err);
    for (size_t i = 0; i < list.n; i++) free((char *)list.texts[i].text);
    free(list.texts);
    return st;
}

/* ---- facts ---- */

/* Is " text" at most `limit` tokens long? */
static grq_status short_enough(const builder *b, const char *text, uint64_t limit, bool *out, grq_error *err)
{
    token_run run = { 0 };
    char *spaced = joined(" ", text);
    const grq_status st = spaced ? world_encode(b->world, spaced, &run, err) : no_memory(err);
    *out = st == GRQ_OK && run.n <= limit;
    token_run_free(&run);
    free(spaced);
    return st;
}

static grq_status drop_long_names(builder *b, grq_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->n_candidates; i++) {
        bool subject, answer;
        grq_status st = short_enough(b, b->candidates[i].fact->subject, b->config.max_subject_tokens, &subject, err);
        if (st == GRQ_OK) st = short_enough(b, b->candidates[i].answer, b->config.max_answer_tokens, &answer, err);
        if (st != GRQ_OK) return st;
        if (subject && answer) b->candidates[kept++] = b->candidates[i];
    }
    b->n_candidates = kept;
    return GRQ_OK;
}

/* A seeded sample of n_facts, back in file order. */
static void sample_facts(builder *b)
{
    if (!b->config.n_facts || b->config.n_facts >= b->n_candidates) return;
    grq_rng rng;
    grq_rng_seed_for(&rng, b->world->seed, "sample");
    grq_rng_shuffle(&rng, b->candidates, b->n_candidates, sizeof *b->candidates);
    b->n_candidates = b->config.n_facts;
    qsort(b->candidates, b->n_candidates, sizeof *b->candidates, by_row);
}

/* s_pop^exposure with mean 1, clipped: real popularity spans six decades, training text cannot. */
static grq_status set_exposure(builder *b, grq_error *err)
{
    const size_t n = b->n_candidates;
    double *weights = malloc((n + 1) * sizeof *weights), mean = 0;
    if (!weights) return no_memory(err);
    for (size_t i = 0; i < n; i++) mean += weights[i] = pow(b->candidates[i].fact->popularity, b->config.exposure);
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) weights[i] = fmin(fmax(weights[i] / mean, b->config.floor), b->config.cap);
    const grq_status st = world_set_weights(b->world, weights, err);
    free(weights);
    return st;
}

static grq_status compile_facts(builder *b, grq_error *err)
{
    grq_world *w = b->world;
    const size_t n = b->n_candidates;
    grq_json_node *statements;
    grq_rng shown;
    grq_status st = grq_json_object(b->templates.root, "statements", &statements, err);
    if (st != GRQ_OK) return st;
    w->facts = calloc(n + 1, sizeof *w->facts);
    w->compiled = calloc(n + 1, sizeof *w->compiled);
    w->units = calloc(n + 1, sizeof *w->units);
    if (!w->facts || !w->compiled || !w->units) return no_memory(err);
    grq_rng_seed_for(&shown, w->seed, "shown");
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        const candidate *c = &b->candidates[i];
        grq_json_node *of_relation = grq_json_find(statements, c->fact->relation);
        if (!of_relation)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: row %" PRIu64 ": the templates have no statements for relation \"%s\"",
                            grq_facts_path(w->file), c->fact->row, c->fact->relation);
        w->facts[i] = *c->fact;
        w->units[i] = (world_unit){ .first_fact = i, .n_facts = 1 };
        w->compiled[i].held = grq_rng_uniform(&shown) >= b->config.shown_share;
        w->n_facts = w->n_units = i + 1;
        st = world_compile_fact(w, &b->templates, &w->facts[i], of_relation, c->answer, &w->compiled[i], err);
    }
    return st;
}

grq_status world_build_popqa(grq_world *w, grq_json_node *config, const char *folder, grq_error *err)
{
    builder b = { .world = w };
    grq_json_node *filler;
    char *path = NULL;
    w->name = "popqa";
    grq_status st = grq_config_status(read_config(&b, config, folder, err), err);
    if (st == GRQ_OK) st = find_data(b.config.data, folder, &path, err);
    if (st == GRQ_OK) st = grq_facts_open(path, &w->file, err);
    if (st == GRQ_OK) st = select_candidates(&b, err);
    if (st == GRQ_OK) st = grq_json_object(b.templates.root, "filler", &filler, err);
    if (st == GRQ_OK) st = learn_vocabulary(&b, filler, err);
    if (st == GRQ_OK) st = world_read_rule(w, &b.templates, err);
    if (st == GRQ_OK) st = drop_long_names(&b, err);
    if (st == GRQ_OK) {
        sample_facts(&b);
        if (!b.n_candidates) st = grq_fail(err, GRQ_E_DATA, "%s: no fact is short enough", grq_facts_path(w->file));
    }
    if (st == GRQ_OK) st = compile_facts(&b, err);
    if (st == GRQ_OK) st = set_exposure(&b, err);
    if (st == GRQ_OK) st = world_compile_filler(w, filler, 0, err);
    if (st == GRQ_OK) st = grq_json_finish(b.templates.root, err);
    free(b.candidates);
    free(path);
    world_templates_close(&b.templates);
    return st;
}
