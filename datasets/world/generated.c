/* The generated world: entities with names of two to four syllables, three types with five relations each, Zipf
 * popularity. Everything is a function of the config; source: specs/miniature.md, "World and corpus". */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world_internal.h"

enum { MAX_SYLLABLES = 1024, MAX_RELATIONS = 32 };

typedef struct {
    uint64_t n_entities, n_syllables, n_people, n_cities, n_topics;
    double zipf, floor, shown_share;
} generated_config;

/* A relation with its answers. */
typedef struct {
    const char *name, *label, *question;
    grq_json_node *statements;
    char **answers; /* (n_answers), owned by the pool */
    size_t n_answers;
    uint32_t type;
} relation;

typedef struct {
    const char *name;
    char **words; /* (n), owned by the world's storage */
    size_t n;
} pool;

typedef struct {
    grq_world *world;
    generated_config config;
    world_templates templates;
    char *syllables[MAX_SYLLABLES]; /* owned by the world's storage */
    pool pools[32];
    size_t n_pools;
    relation relations[MAX_RELATIONS];
    uint32_t n_relations, n_types;
    char **words; /* vocabulary in order, owned */
    size_t n_words, words_room;
    bool out_of_memory;
} builder;

/* ---- strings ---- */

/* Keeps `text` (heap) for the world's lifetime; NULL in, or no memory, gives NULL. */
static char *keep(grq_world *w, char *text)
{
    if (!text) return NULL;
    if (w->n_storage == w->storage_room) {
        const size_t room = w->storage_room ? 2 * w->storage_room : 1024;
        char **storage = realloc(w->storage, room * sizeof *storage);
        if (!storage) {
            free(text);
            return NULL;
        }
        w->storage = storage;
        w->storage_room = room;
    }
    return w->storage[w->n_storage++] = text;
}

static char *keep_text(grq_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static char *keep_text(grq_world *w, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    return keep(w, text);
}

static grq_status no_memory(grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "no memory for the generated world");
}

/* ---- config ---- */

/* A fact takes about 1 KiB with its texts; and names are drawn until enough different ones exist, so more must be
 * possible than are wanted. */
static grq_status check_size(const generated_config *c, grq_json_node *config, grq_error *err)
{
    const double n = (double)c->n_entities, bytes = n * 5 * 1200, possible = pow((double)c->n_syllables, 3);
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (bytes > memory / 2)
        return grq_fail(err, GRQ_E_USAGE,
                        "%s: n_entities %" PRIu64 " needs about %.1f GiB, more than half of this machine's %.1f",
                        grq_json_where(config), c->n_entities, bytes / 1073741824, memory / 1073741824);
    if (n > possible / 2)
        return grq_fail(err, GRQ_E_USAGE,
                        "%s: n_entities %" PRIu64 " is more than half of the %.0f three-syllable names that %" PRIu64
                        " syllables give; it needs n_syllables %.0f",
                        grq_json_where(config), c->n_entities, possible, c->n_syllables, ceil(cbrt(2 * n)));
    return GRQ_OK;
}

static grq_status read_config(builder *b, grq_json_node *config, const char *folder, grq_error *err)
{
    generated_config *c = &b->config;
    const char *templates;
    grq_status st = grq_json_string(config, "templates", &templates, err);
    if (st == GRQ_OK) st = grq_json_u64(config, "n_entities", 4, 1000000000000, &c->n_entities, err);
    if (st == GRQ_OK) st = grq_json_u64(config, "n_syllables", 8, MAX_SYLLABLES, &c->n_syllables, err);
    if (st == GRQ_OK) st = grq_json_u64(config, "n_people", 4, 100000, &c->n_people, err);
    if (st == GRQ_OK) st = grq_json_u64(config, "n_cities", 4, 100000, &c->n_cities, err);
    if (st == GRQ_OK) st = grq_json_u64(config, "n_topics", 1, 1000, &c->n_topics, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "zipf", 0, 4, &c->zipf, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "floor", 0, 1, &c->floor, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "shown_share", 0, 1, &c->shown_share, err);
    if (st == GRQ_OK) st = grq_json_f64(config, "infobox_share", 0, 1, &b->world->infobox_share, err);
    if (st == GRQ_OK) st = world_read_shares(b->world, config, err);
    if (st == GRQ_OK) st = grq_json_finish(config, err);
    if (st == GRQ_OK) st = check_size(c, config, err);
    return st == GRQ_OK ? world_templates_open(folder, templates, "words", &b->templates, err) : st;
}

/* ---- syllables and pools ---- */

static grq_status string_list(grq_json_node *object, const char *key, const char *out[], size_t room, size_t *n,
                              grq_error *err)
{
    grq_json_node *list;
    grq_status st = grq_json_array(object, key, &list, err);
    if (st != GRQ_OK) return st;
    *n = grq_json_count(list);
    if (*n < 1 || *n > room) return grq_fail(err, GRQ_E_USAGE, "%s: 1 to %zu strings", grq_json_where(list), room);
    for (size_t i = 0; st == GRQ_OK && i < *n; i++) st = grq_json_as_string(grq_json_at(list, i), &out[i], err);
    return st;
}

/* All onset-nucleus(-coda) combinations, shuffled, capitalised; the first n_syllables are used. */
static grq_status make_syllables(builder *b, grq_json_node *node, grq_error *err)
{
    const char *onsets[64], *nuclei[64], *codas[64];
    size_t n_onsets, n_nuclei, n_codas, n = 0;
    static const size_t room = 64 * 64;
    char *all[64 * 64];
    grq_status st = string_list(node, "onsets", onsets, 64, &n_onsets, err);
    if (st == GRQ_OK) st = string_list(node, "nuclei", nuclei, 64, &n_nuclei, err);
    if (st == GRQ_OK) st = string_list(node, "codas", codas, 64, &n_codas, err);
    if (st != GRQ_OK) return st;
    for (size_t c = 0; c <= n_codas; c++)
        for (size_t o = 0; o < n_onsets; o++)
            for (size_t v = 0; v < n_nuclei && n < room; v++) {
                char *s = keep_text(b->world, "%s%s%s", onsets[o], nuclei[v], c ? codas[c - 1] : "");
                if (!s) return no_memory(err);
                if (s[0] >= 'a' && s[0] <= 'z') s[0] = (char)(s[0] - 'a' + 'A');
                all[n++] = s;
            }
    if (b->config.n_syllables > n)
        return grq_fail(err, GRQ_E_USAGE, "n_syllables %" PRIu64 ": the templates give only %zu", b->config.n_syllables,
                        n);
    grq_rng rng;
    grq_rng_seed_for(&rng, b->world->seed, "syllables");
    grq_rng_shuffle(&rng, all, n, sizeof *all);
    memcpy(b->syllables, all, b->config.n_syllables * sizeof *all);
    return GRQ_OK;
}

static grq_status add_pool(builder *b, const char *name, size_t n, pool **out, grq_error *err)
{
    if (b->n_pools == sizeof b->pools / sizeof *b->pools)
        return grq_fail(err, GRQ_E_USAGE, "more than %zu pools", b->n_pools);
    pool *p = &b->pools[b->n_pools++];
    *p = (pool){ .name = name, .words = calloc(n + 1, sizeof *p->words) };
    *out = p;
    return p->words ? GRQ_OK : no_memory(err);
}

static grq_status make_single_pools(builder *b, grq_json_node *pools, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < grq_json_count(pools); i++) {
        const char *name = grq_json_key_at(pools, i), *word;
        grq_json_node *node;
        uint64_t n;
        pool *p = NULL;
        st = grq_json_object(pools, name, &node, err);
        if (st == GRQ_OK) st = grq_json_string(node, "word", &word, err);
        if (st == GRQ_OK) st = grq_json_u64(node, "n", 4, 10000, &n, err);
        if (st == GRQ_OK) st = grq_json_finish(node, err);
        if (st == GRQ_OK) st = add_pool(b, name, n, &p, err);
        for (; st == GRQ_OK && p->n < n; p->n++) {
            p->words[p->n] = keep_text(b->world, "%s%zu", word, p->n);
            if (!p->words[p->n]) st = no_memory(err);
        }
    }
    return st;
}

/* Answers of two words ("F12 L7"): n different pairs, in a seeded order. */
static grq_status make_pair_pool(builder *b, grq_json_node *pools, const char *name, uint64_t n, grq_error *err)
{
    grq_json_node *node;
    const char *first, *second;
    uint64_t n_first, n_second;
    pool *p = NULL;
    grq_status st = grq_json_object(pools, name, &node, err);
    if (st == GRQ_OK) st = grq_json_string(node, "first", &first, err);
    if (st == GRQ_OK) st = grq_json_u64(node, "n_first", 1, 1000, &n_first, err);
    if (st == GRQ_OK) st = grq_json_string(node, "second", &second, err);
    if (st == GRQ_OK) st = grq_json_u64(node, "n_second", 1, 1000, &n_second, err);
    if (st == GRQ_OK) st = grq_json_finish(node, err);
    if (st == GRQ_OK && n > n_first * n_second)
        st = grq_fail(err, GRQ_E_USAGE, "%s: %" PRIu64 " answers are wanted, %" PRIu64 " x %" PRIu64 " pairs exist",
                      name, n, n_first, n_second);
    if (st == GRQ_OK) st = add_pool(b, name, n, &p, err);
    uint32_t *pairs = st == GRQ_OK ? malloc(n_first * n_second * sizeof *pairs) : NULL;
    if (st == GRQ_OK && !pairs) st = no_memory(err);
    if (st == GRQ_OK) {
        grq_rng rng;
        for (uint32_t i = 0; i < n_first * n_second; i++) pairs[i] = i;
        grq_rng_seed_for(&rng, b->world->seed, name);
        grq_rng_shuffle(&rng, pairs, n_first * n_second, sizeof *pairs);
    }
    for (; st == GRQ_OK && p->n < n; p->n++) {
        p->words[p->n] = keep_text(b->world, "%s%" PRIu64 " %s%" PRIu64, first, pairs[p->n] / n_second, second,
                                   pairs[p->n] % n_second);
        if (!p->words[p->n]) st = no_memory(err);
    }
    free(pairs);
    return st;
}

static const pool *find_pool(const builder *b, const char *name)
{
    for (size_t i = 0; i < b->n_pools; i++)
        if (!strcmp(b->pools[i].name, name)) return &b->pools[i];
    return NULL;
}

/* ---- relations ---- */

static grq_status read_relation(builder *b, grq_json_node *node, uint32_t type, grq_error *err)
{
    const char *pool_name, *paraphrase;
    if (b->n_relations == MAX_RELATIONS) return grq_fail(err, GRQ_E_USAGE, "more than %d relations", MAX_RELATIONS);
    relation *r = &b->relations[b->n_relations++];
    *r = (relation){ .type = type };
    grq_status st = grq_json_string(node, "name", &r->name, err);
    if (st == GRQ_OK) r->name = keep_text(b->world, "%s", r->name); /* facts outlive the template file */
    if (st == GRQ_OK && !r->name) st = no_memory(err);
    if (st == GRQ_OK) st = grq_json_string(node, "pool", &pool_name, err);
    if (st == GRQ_OK) st = grq_json_string(node, "short", &r->label, err);
    if (st == GRQ_OK) st = grq_json_array(node, "statements", &r->statements, err);
    if (st == GRQ_OK) st = grq_json_string(node, "question", &r->question, err);
    if (st == GRQ_OK) st = world_check_marks(grq_json_find(node, "question"), r->question, "{e}", err);
    if (st == GRQ_OK) st = grq_json_string(node, "paraphrase", &paraphrase, err);
    if (st == GRQ_OK) st = grq_json_finish(node, err);
    if (st != GRQ_OK) return st;
    const pool *p = find_pool(b, pool_name);
    if (!p) return grq_fail(err, GRQ_E_USAGE, "%s: there is no pool \"%s\"", grq_json_where(node), pool_name);
    r->answers = p->words;
    r->n_answers = p->n;
    return GRQ_OK;
}

static grq_status read_templates(builder *b, grq_error *err)
{
    grq_json_node *types, *pools, *pair_pools, *syllables;
    grq_json_node *root = b->templates.root;
    grq_status st = grq_json_object(root, "syllables", &syllables, err);
    if (st == GRQ_OK) st = make_syllables(b, syllables, err);
    if (st == GRQ_OK) st = grq_json_object(root, "pools", &pools, err);
    if (st == GRQ_OK) st = make_single_pools(b, pools, err);
    if (st == GRQ_OK) st = grq_json_object(root, "pair_pools", &pair_pools, err);
    if (st == GRQ_OK) st = make_pair_pool(b, pair_pools, "people", b->config.n_people, err);
    if (st == GRQ_OK) st = make_pair_pool(b, pair_pools, "cities", b->config.n_cities, err);
    if (st == GRQ_OK) st = grq_json_array(root, "types", &types, err);
    for (size_t t = 0; st == GRQ_OK && t < grq_json_count(types); t++) {
        grq_json_node *type = grq_json_at(types, t), *relations;
        const char *name;
        st = grq_json_string(type, "name", &name, err);
        if (st == GRQ_OK) st = grq_json_array(type, "relations", &relations, err);
        if (st == GRQ_OK) st = grq_json_finish(type, err);
        if (st == GRQ_OK && !grq_json_count(relations))
            st = grq_fail(err, GRQ_E_USAGE, "%s: there is no relation", grq_json_where(relations));
        for (size_t i = 0; st == GRQ_OK && i < grq_json_count(relations); i++)
            st = read_relation(b, grq_json_at(relations, i), (uint32_t)t, err);
        b->n_types++;
    }
    if (st == GRQ_OK && !b->n_types) st = grq_fail(err, GRQ_E_USAGE, "%s: there is no type", grq_json_where(types));
    return st;
}

/* ---- vocabulary ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_word(builder *b, const char *word, size_t length)
{
    if (b->out_of_memory) return;
    if (b->n_words == b->words_room) {
        const size_t room = b->words_room ? 2 * b->words_room : 4096;
        char **words = realloc(b->words, room * sizeof *words);
        if (!words) {
            b->out_of_memory = true;
            return;
        }
        b->words = words;
        b->words_room = room;
    }
    b->words[b->n_words] = strndup(word, length);
    if (b->words[b->n_words]) b->n_words++;
    else b->out_of_memory = true;
}

/* Every space-separated word of a text that is not a mark. */
static void add_words(void *context, const char *text)
{
    for (const char *p = text; *p;) {
        p += strspn(p, " ");
        const size_t length = strcspn(p, " ");
        if (length && *p != '{') add_word(context, p, length);
        p += length;
    }
}

static grq_status collect_words(builder *b, grq_json_node *filler, grq_json_node *infobox, grq_error *err)
{
    static const char *const marks[] = { "after_name", "between", "end" };
    const char *text;
    grq_status st = GRQ_OK;
    add_words(b, b->templates.stop);
    add_words(b, b->templates.statement_end);
    for (size_t i = 0; st == GRQ_OK && i < 3; i++) {
        st = grq_json_string(infobox, marks[i], &text, err);
        if (st == GRQ_OK) add_words(b, text);
    }
    for (uint64_t i = 0; i < b->config.n_syllables; i++) add_words(b, b->syllables[i]);
    for (size_t p = 0; p < b->n_pools; p++)
        for (size_t i = 0; i < b->pools[p].n; i++) add_words(b, b->pools[p].words[i]);
    for (uint32_t r = 0; st == GRQ_OK && r < b->n_relations; r++) {
        add_words(b, b->relations[r].label);
        add_words(b, b->relations[r].question);
        for (size_t i = 0; st == GRQ_OK && i < grq_json_count(b->relations[r].statements); i++) {
            st = grq_json_as_string(grq_json_at(b->relations[r].statements, i), &text, err);
            if (st == GRQ_OK) add_words(b, text);
        }
    }
    return st == GRQ_OK ? world_filler_words(filler, b->config.n_topics, true, add_words, b, err) : st;
}

static grq_status make_vocabulary(builder *b, grq_json_node *filler, grq_json_node *infobox, grq_error *err)
{
    grq_status st = collect_words(b, filler, infobox, err);
    if (st == GRQ_OK && b->out_of_memory) st = no_memory(err);
    if (st != GRQ_OK) return st;
    qsort(b->words, b->n_words, sizeof *b->words, by_text);
    size_t n = 0;
    for (size_t i = 0; i < b->n_words; i++) {
        if (n && !strcmp(b->words[i], b->words[n - 1])) free(b->words[i]);
        else b->words[n++] = b->words[i];
    }
    b->n_words = n;
    return grq_vocab_new_words((const char *const *)b->words, n, &b->world->vocab, err);
}

/* ---- entities and facts ---- */

/* n different names, in drawing order; rank 0 is the most popular. Ends with an error when the templates' lengths leave
 * too few names: check_size counts those of three syllables, which need not be drawn at all. */
static grq_status draw_names(builder *b, char **names, grq_error *err)
{
    grq_json_node *syllables;
    double two, three;
    grq_status st = grq_json_object(b->templates.root, "syllables", &syllables, err);
    if (st == GRQ_OK) st = grq_json_f64(syllables, "two", 0, 1, &two, err);
    if (st == GRQ_OK) st = grq_json_f64(syllables, "three", 0, 1, &three, err);
    if (st == GRQ_OK) st = grq_json_finish(syllables, err);
    if (st == GRQ_OK && two + three > 1)
        st = grq_fail(err, GRQ_E_USAGE, "%s: the shares two and three sum to %g, more than 1",
                      grq_json_where(syllables), two + three);
    if (st != GRQ_OK) return st;
    const size_t n = b->config.n_entities, table_size = 4 * n + 1, most_draws = 100 * n;
    char **seen = calloc(table_size, sizeof *seen); /* open addressing */
    if (!seen) return no_memory(err);
    grq_rng rng;
    grq_rng_seed_for(&rng, b->world->seed, "names");
    for (size_t made = 0, draws = 0; st == GRQ_OK && made < n; draws++) {
        if (draws == most_draws) {
            st = grq_fail(err, GRQ_E_USAGE,
                          "%s: %zu draws gave %zu different names of %zu; raise n_syllables, or the share of longer "
                          "names",
                          grq_json_where(syllables), draws, made, n);
            break;
        }
        const double u = grq_rng_uniform(&rng);
        const uint32_t length = u < two ? 2 : u < two + three ? 3 : 4;
        char text[128] = "";
        uint64_t hash = 0xcbf29ce484222325;
        for (uint32_t i = 0; i < length; i++) {
            const uint64_t s = grq_rng_below(&rng, b->config.n_syllables);
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", b->syllables[s]);
            hash = (hash ^ (s + 1)) * 0x100000001b3;
        }
        size_t slot = (size_t)(hash % table_size);
        while (seen[slot] && strcmp(seen[slot], text)) slot = (slot + 1) % table_size;
        if (seen[slot]) continue;
        names[made] = seen[slot] = keep_text(b->world, "%s", text);
        if (!names[made]) st = no_memory(err);
        made++;
    }
    free(seen);
    return st;
}

/* 1 / rank^zipf with mean 1, not below the floor: what an entity's share of mentions is proportional to. */
static void popularities(const generated_config *c, double *weights)
{
    double mean = 0;
    for (uint64_t i = 0; i < c->n_entities; i++) mean += weights[i] = pow((double)(i + 1), -c->zipf);
    mean /= (double)c->n_entities;
    for (uint64_t i = 0; i < c->n_entities; i++) weights[i] = fmax(weights[i] / mean, c->floor);
}

static grq_status make_fact(builder *b, size_t index, const char *name, double popularity, const relation *r,
                            grq_rng *rng, bool held, grq_error *err)
{
    grq_world *w = b->world;
    char *answer = r->answers[grq_rng_below(rng, r->n_answers)];
    char **accepted = malloc(sizeof *accepted);
    if (!accepted || !keep(w, (char *)accepted)) return no_memory(err);
    accepted[0] = answer;
    w->facts[index] = (grq_fact){
        .id = keep_text(w, "%zu", index),
        .row = index,
        .subject = name,
        .relation = r->name,
        .object = answer,
        .question = keep(w, world_fill(r->question, name, NULL, NULL)),
        .popularity = rint(1000 * popularity),
        .n_accepted = 1,
        .accepted = (const char *const *)accepted,
    };
    if (!w->facts[index].id || !w->facts[index].question) return no_memory(err);
    compiled_fact *c = &w->compiled[index];
    c->held = held;
    grq_status st = world_compile_fact(w, &b->templates, &w->facts[index], r->statements, answer, c, err);
    return st == GRQ_OK ? world_encode(w, r->label, &c->label, err) : st;
}

static grq_status make_entities(builder *b, char **names, const double *weights, grq_error *err)
{
    grq_world *w = b->world;
    grq_rng types, answers, shown;
    grq_rng_seed_for(&types, w->seed, "types");
    grq_rng_seed_for(&answers, w->seed, "answers");
    grq_rng_seed_for(&shown, w->seed, "shown");
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < b->config.n_entities; i++) {
        const uint32_t type = (uint32_t)grq_rng_below(&types, b->n_types);
        const bool held = grq_rng_uniform(&shown) >= b->config.shown_share;
        world_unit *unit = &w->units[i];
        unit->first_fact = w->n_facts;
        w->n_units = i + 1;
        st = world_encode(w, names[i], &unit->name, err);
        for (uint32_t r = 0; st == GRQ_OK && r < b->n_relations; r++) {
            if (b->relations[r].type != type) continue;
            w->n_facts++;
            unit->n_facts++;
            st = make_fact(b, w->n_facts - 1, names[i], weights[i], &b->relations[r], &answers, held, err);
        }
    }
    return st;
}

static uint32_t most_relations(const builder *b)
{
    uint32_t most = 0;
    for (uint32_t t = 0; t < b->n_types; t++) {
        uint32_t n = 0;
        for (uint32_t r = 0; r < b->n_relations; r++) n += b->relations[r].type == t;
        if (n > most) most = n;
    }
    return most;
}

static grq_status make_facts(builder *b, grq_error *err)
{
    grq_world *w = b->world;
    const size_t n = b->config.n_entities, room = n * most_relations(b);
    char **names = calloc(n + 1, sizeof *names);
    double *weights = calloc(n + 1, sizeof *weights);
    w->facts = calloc(room + 1, sizeof *w->facts);
    w->compiled = calloc(room + 1, sizeof *w->compiled);
    w->units = calloc(n + 1, sizeof *w->units);
    grq_status st = names && weights && w->facts && w->compiled && w->units ? GRQ_OK : no_memory(err);
    if (st == GRQ_OK) st = draw_names(b, names, err);
    if (st == GRQ_OK) {
        popularities(&b->config, weights);
        st = make_entities(b, names, weights, err);
    }
    if (st == GRQ_OK) st = world_set_weights(w, weights, err);
    free(names);
    free(weights);
    return st;
}

static grq_status compile_infobox(builder *b, grq_json_node *infobox, grq_error *err)
{
    const char *text;
    grq_world *w = b->world;
    grq_status st = grq_json_string(infobox, "after_name", &text, err);
    if (st == GRQ_OK) st = world_encode(w, text, &w->infobox_after_name, err);
    if (st == GRQ_OK) st = grq_json_string(infobox, "between", &text, err);
    if (st == GRQ_OK) st = world_encode(w, text, &w->infobox_between, err);
    if (st == GRQ_OK) st = grq_json_string(infobox, "end", &text, err);
    if (st == GRQ_OK) st = world_encode(w, text, &w->infobox_end, err);
    return st == GRQ_OK ? grq_json_finish(infobox, err) : st;
}

grq_status world_build_generated(grq_world *w, grq_json_node *config, const char *folder, grq_error *err)
{
    builder *b = calloc(1, sizeof *b);
    grq_json_node *filler, *infobox;
    if (!b) return no_memory(err);
    b->world = w;
    w->name = "generated";
    grq_status st = read_config(b, config, folder, err);
    if (st == GRQ_OK) st = read_templates(b, err);
    if (st == GRQ_OK) st = grq_json_object(b->templates.root, "filler", &filler, err);
    if (st == GRQ_OK) st = grq_json_object(b->templates.root, "infobox", &infobox, err);
    if (st == GRQ_OK) st = make_vocabulary(b, filler, infobox, err);
    if (st == GRQ_OK) st = world_read_rule(w, &b->templates, err);
    if (st == GRQ_OK) st = compile_infobox(b, infobox, err);
    if (st == GRQ_OK) st = world_compile_filler(w, filler, b->config.n_topics, err);
    if (st == GRQ_OK) st = make_facts(b, err);
    if (st == GRQ_OK) st = grq_json_finish(b->templates.root, err);
    for (size_t i = 0; i < b->n_words; i++) free(b->words[i]);
    for (size_t i = 0; i < b->n_pools; i++) free(b->pools[i].words);
    free(b->words);
    world_templates_close(&b->templates);
    free(b);
    return grq_config_status(st, err); /* nothing but config and templates was read */
}
