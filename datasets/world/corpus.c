/* The text of a world: facts by popularity, and filler between them. */
#include <string.h>

#include "world_internal.h"

typedef struct {
    const grq_world *world;
    grq_rng rng;
    int32_t *tokens;
    uint8_t *kinds;     /* may be NULL */
    uint64_t *mentions; /* may be NULL */
    size_t n, room;     /* written so far; what does not fit any more is dropped */
    uint8_t kind;       /* of what is being written */
} writer;

static void put(writer *o, const token_run *run)
{
    const size_t n = run->n < o->room - o->n ? run->n : o->room - o->n;
    memcpy(o->tokens + o->n, run->ids, n * sizeof *run->ids);
    if (o->kinds) memset(o->kinds + o->n, o->kind, n);
    o->n += n;
}

static void put_token(writer *o, int32_t token)
{
    put(o, &(token_run){ .ids = &token, .n = 1 });
}

static bool chance(writer *o, double share)
{
    return grq_rng_uniform(&o->rng) < share;
}

static uint32_t below(writer *o, uint32_t n)
{
    return (uint32_t)grq_rng_below(&o->rng, n);
}

/* ---- facts ---- */

static size_t draw_unit(writer *o)
{
    const double u = grq_rng_uniform(&o->rng);
    size_t low = 0, high = o->world->n_units - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (o->world->cumulative[middle] > u) high = middle;
        else low = middle + 1;
    }
    return low;
}

static void mention(writer *o, size_t fact)
{
    if (o->mentions) o->mentions[fact]++;
}

enum { INFOBOX_MAX_FACTS = 64 };

/* "name : label answer , label answer ." with the entity's facts in random order. */
static void write_infobox(writer *o, const world_unit *unit)
{
    const grq_world *w = o->world;
    uint8_t order[INFOBOX_MAX_FACTS];
    const size_t n = unit->n_facts < INFOBOX_MAX_FACTS ? unit->n_facts : INFOBOX_MAX_FACTS;
    for (size_t i = 0; i < n; i++) order[i] = (uint8_t)i;
    grq_rng_shuffle(&o->rng, order, n, 1);
    o->kind = GRQ_TEXT_INFOBOX;
    put(o, &unit->name);
    put(o, &w->infobox_after_name);
    for (size_t i = 0; i < n; i++) {
        const compiled_fact *f = &w->compiled[unit->first_fact + order[i]];
        if (i) put(o, &w->infobox_between);
        put(o, &f->label);
        put(o, &f->answer);
        mention(o, unit->first_fact + order[i]);
    }
    put(o, &w->infobox_end);
}

static void write_fact(writer *o)
{
    const grq_world *w = o->world;
    const world_unit *unit = &w->units[draw_unit(o)];
    const double u = grq_rng_uniform(&o->rng);
    if (u < w->infobox_share) {
        write_infobox(o, unit);
        return;
    }
    const size_t fact = unit->first_fact + below(o, (uint32_t)unit->n_facts);
    const compiled_fact *f = &w->compiled[fact];
    mention(o, fact);
    if (u < w->infobox_share + w->qa_share && !f->held) {
        o->kind = GRQ_TEXT_QA;
        put(o, &(token_run){ .ids = f->prompt.ids + 1, .n = f->prompt.n - 1 });
        put(o, &f->answer);
        put_token(o, w->stop_token);
    } else {
        o->kind = GRQ_TEXT_STATEMENT;
        put(o, &f->statements[below(o, f->n_statements)]);
    }
}

/* ---- filler ---- */

static const token_run *form(const inflected *word, bool plural)
{
    return plural ? &word->plural : &word->singular;
}

/* Two different ones of n >= 2. */
static void draw_two(writer *o, uint32_t n, uint32_t out[2])
{
    out[0] = below(o, n);
    out[1] = below(o, n - 1);
    out[1] += out[1] >= out[0];
}

typedef struct {
    const filler_topic *topic;
    uint32_t nouns[2], verbs[2], adjectives[2];
} cast;

static void write_noun(writer *o, const cast *c, uint32_t noun, bool plural, bool first)
{
    const filler_grammar *g = &o->world->filler;
    put(o, first ? &g->first_article : &g->article);
    if (chance(o, 0.5)) put(o, &c->topic->adjectives[c->adjectives[below(o, 2)]]);
    put(o, form(&c->topic->nouns[noun], plural));
}

/* A verb has its ending with a singular noun: "the farmer feeds", "the farmers feed". */
static void write_verb(writer *o, const cast *c, bool plural_noun)
{
    put(o, form(&c->topic->verbs[c->verbs[below(o, 2)]], !plural_noun));
}

static void write_sentence(writer *o, const cast *c)
{
    const filler_grammar *g = &o->world->filler;
    const bool plural = chance(o, 0.5);
    const uint32_t which = below(o, 2), x = c->nouns[which], y = c->nouns[1 - which];
    write_noun(o, c, x, plural, true);
    if (chance(o, 0.4)) {
        put(o, &g->of);
        write_noun(o, c, y, chance(o, 0.5), false);
    }
    write_verb(o, c, plural);
    if (chance(o, g->preposition_share)) put(o, &g->prepositions[below(o, g->n_prepositions)]);
    write_noun(o, c, y, chance(o, 0.5), false);
    if (chance(o, 0.4)) {
        put(o, &g->conjunctions[below(o, g->n_conjunctions)]);
        write_noun(o, c, x, plural, false);
        write_verb(o, c, plural);
    }
    put(o, &g->end);
}

static void write_filler(writer *o)
{
    static const uint32_t lengths[4] = { 1, 2, 2, 3 };
    const filler_grammar *g = &o->world->filler;
    cast c = { .topic = &g->topics[below(o, (uint32_t)g->n_topics)] };
    draw_two(o, c.topic->n_nouns, c.nouns);
    draw_two(o, c.topic->n_verbs, c.verbs);
    draw_two(o, c.topic->n_adjectives, c.adjectives);
    o->kind = GRQ_TEXT_FILLER;
    for (uint32_t n = lengths[below(o, 4)]; n > 0; n--) write_sentence(o, &c);
}

grq_status grq_world_corpus(const grq_world *w, size_t n_tokens, uint64_t seed, int32_t *tokens, uint8_t *kinds,
                            uint64_t *mentions, grq_error *err)
{
    if (!w->n_units || !w->filler.n_topics)
        return grq_fail(err, GRQ_E_DATA, "the world has no facts or no filler topics");
    writer o = { .world = w, .tokens = tokens, .kinds = kinds, .mentions = mentions, .room = n_tokens };
    size_t fact_tokens = 0;
    if (mentions) memset(mentions, 0, w->n_facts * sizeof *mentions);
    grq_rng_seed_for(&o.rng, seed, "corpus");
    while (o.n < o.room) {
        const size_t before = o.n;
        if ((double)fact_tokens < w->fact_share * (double)o.n || o.n == 0) {
            write_fact(&o);
            fact_tokens += o.n - before;
        } else {
            write_filler(&o);
        }
    }
    return GRQ_OK;
}
