/* datasets/world/world_internal.h - how a world is held once it is built; shared by its builders and its readers.
 *
 * A builder (generated.c, popqa.c) chooses the facts, the vocabulary and the weights; compile.c turns every text a fact
 * can appear in into token ids once; corpus.c and questions.c only draw and copy. */
#ifndef GATERQ_WORLD_INTERNAL_H
#define GATERQ_WORLD_INTERNAL_H

#include "gaterq/rng.h"
#include "gaterq/world.h"

/* A piece of text as token ids; owned. */
typedef struct {
    int32_t *ids;
    uint32_t n;
} token_run;

enum { WORLD_MAX_STATEMENTS = 4 };

typedef struct {
    uint32_t n_statements;
    token_run statements[WORLD_MAX_STATEMENTS]; /* each with its end */
    token_run prompt;                           /* stop token first, then the question up to where the answer begins */
    token_run answer;                           /* without the stop token */
    token_run label; /* infobox: the relation's short name; empty in worlds without infoboxes */
    bool held;       /* never shown as question and answer */
} compiled_fact;

/* What mentions are drawn over: an entity with its facts (generated), or a single fact (popqa). */
typedef struct {
    size_t first_fact, n_facts;
    token_run name; /* infobox: the entity's name */
} world_unit;

/* One noun or verb: singular and plural form; for verbs the form that goes with a singular or plural noun. */
typedef struct {
    token_run singular, plural;
} inflected;

enum { FILLER_MAX_WORDS = 8 };

typedef struct {
    uint32_t n_nouns, n_verbs, n_adjectives;
    inflected nouns[FILLER_MAX_WORDS], verbs[FILLER_MAX_WORDS];
    token_run adjectives[FILLER_MAX_WORDS];
} filler_topic;

typedef struct {
    size_t n_topics;
    filler_topic *topics;
    token_run article, first_article, of, end;
    uint32_t n_prepositions, n_conjunctions;
    token_run prepositions[FILLER_MAX_WORDS], conjunctions[FILLER_MAX_WORDS];
    double preposition_share;
} filler_grammar;

struct grq_world {
    const char *name; /* "generated" or "popqa"; static */
    const char *rule; /* static: a name that match.h knows */
    grq_vocab *vocab;
    int32_t stop_token;
    uint64_t seed;

    size_t n_facts;
    grq_fact *facts;         /* views into `storage` or into `file` */
    compiled_fact *compiled; /* (n_facts) */
    size_t n_units;
    world_unit *units;
    double *cumulative; /* (n_units) weights, last is 1 */

    filler_grammar filler;
    token_run infobox_after_name, infobox_between, infobox_end;
    double fact_share, infobox_share, qa_share;

    /* what the selection did, for reports */
    uint64_t n_file_rows, n_with_popularity, n_distinct_questions;

    grq_facts *file; /* popqa: the opened fact file */
    char **storage;  /* generated: strings the facts point to */
    size_t n_storage, storage_room;
};

/* The template file of a world, and what both builders read from it. */
typedef struct {
    grq_json *document;
    grq_json_node *root;
    const char *prompt, *answer_lead, *stop, *statement_end;
} world_templates;

/* `vocabulary` is the kind that the builder makes ("words", "bytes"); templates for another kind are refused. */
grq_status world_templates_open(const char *folder, const char *path, const char *vocabulary, world_templates *out,
                                grq_error *err);
void world_templates_close(world_templates *t);

/* Builders: fill facts, vocab, compiled, units, weights and shares from the config object. */
grq_status world_build_generated(grq_world *w, grq_json_node *config, const char *folder, grq_error *err);
grq_status world_build_popqa(grq_world *w, grq_json_node *config, const char *folder, grq_error *err);

/* compile.c */
grq_status world_encode(const grq_world *w, const char *text, token_run *out, grq_error *err);
/* Encodes "template" with {e} and {a} (and {q}) replaced; NULL values leave their mark unreplaced. */
grq_status world_encode_template(const grq_world *w, const char *format, const char *entity, const char *answer,
                                 const char *question, const char *end, token_run *out, grq_error *err);
/* Fails unless `format`, the value of `node`, holds every one of the marks ("{e}{a}"): a text without one would teach
 * or ask nothing. */
grq_status world_check_marks(grq_json_node *node, const char *format, const char *marks, grq_error *err);
/* The text itself; the caller frees. */
char *world_fill(const char *format, const char *entity, const char *answer, const char *question);
/* Statements, prompt and answer of one fact. `statements` is an array of strings. */
grq_status world_compile_fact(const grq_world *w, const world_templates *t, const grq_fact *fact,
                              grq_json_node *statements, const char *answer, compiled_fact *out, grq_error *err);
void token_run_free(token_run *run);

/* filler.c */
typedef void world_word_visitor(void *context, const char *text);
/* Calls `visit` with every word the filler can use, in a fixed order, so that vocabularies can hold them; plural and
 * verb forms too if they are words of their own. */
grq_status world_filler_words(grq_json_node *filler, uint64_t n_generated_topics, bool inflected_forms,
                              world_word_visitor *visit, void *context, grq_error *err);
grq_status world_compile_filler(grq_world *w, grq_json_node *filler, uint64_t n_generated_topics, grq_error *err);
void world_free_filler(filler_grammar *g);

/* Sets the rule, the stop token and the shares that both kinds of world have. */
grq_status world_read_rule(grq_world *w, const world_templates *t, grq_error *err);
grq_status world_read_shares(grq_world *w, grq_json_node *config, grq_error *err);

/* Turns non-negative weights (n_units), not all zero, into cumulative shares. */
grq_status world_set_weights(grq_world *w, const double *weights, grq_error *err);

#endif
