/* experiments/plan_steps.h - how the plans of runs (plan.c, plan_grid.c) are made of steps. */
#ifndef GATERQ_PLAN_STEPS_H
#define GATERQ_PLAN_STEPS_H

#include "gaterq/geometry.h"
#include "plan.h"

/* What a config says, apart from world, model and train. */
typedef struct {
    const char *encoder, *budget, *readers;
    uint64_t seed, n_stages, counting_tokens, trace_tokens, trace_questions, n_questions, max_new, n_resamples;
    uint64_t layer_ids[GRQ_MAX_MEMORY_LAYERS];
    size_t n_layers;
} run_settings;

/* New texts; NULL when out of memory, which plan_add_step reports. */
char *plan_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *plan_word(const char *word);
char *plan_number(uint64_t n);

/* Takes ownership of name, result, output and of every argument; arguments end with NULL. An argument that could not be
 * allocated reads as the end, so the step is checked to be whole by its count. */
grq_status plan_add_step(plan *p, char *name, tool_function *run, char *result, char *output, int n_arguments,
                         char *const *arguments, grq_error *err);

#define PLAN_STEP(p, name, run, result, output, err, ...)                                                              \
    plan_add_step(p, name, run, result, output, (int)TOOL_COUNT(((char *[]){ __VA_ARGS__ })),                          \
                  (char *[]){ __VA_ARGS__ }, err)

/* The step that writes the world's facts; the config must have "world" and "train". */
grq_status plan_world(plan *p, grq_json_node *root, const char *config, grq_error *err);
/* Steps that train variant `v` (model in FOLDER/v); that code its tables by s->encoder, verify them and count rows, all
 * into FOLDER/`at`; that ask questions with s->readers at s->budget, results into FOLDER/`into`. */
grq_status plan_train(plan *p, const char *config, const run_settings *s, const char *v, double gate_cost,
                      grq_error *err);
grq_status plan_codes(plan *p, const char *config, const run_settings *s, const char *v, const char *at,
                      grq_error *err);
grq_status plan_ask(plan *p, const char *config, const run_settings *s, const char *v, const char *at, const char *into,
                    grq_error *err);

/* Parts of a config that both kinds have. */
grq_status plan_read_layers(grq_json_node *root, run_settings *s, grq_error *err);
grq_status plan_read_counting(grq_json_node *root, run_settings *s, grq_error *err);

/* A config with a "grid": its steps and the manifest of its predictions. */
grq_status plan_read_grid(grq_json_node *root, const char *config, plan *p, run_settings *s, grq_error *err);
/* A config with a "family": no steps, a report on the run of the table that it names. */
grq_status plan_read_family(grq_json_node *root, const char *config, plan *p, grq_error *err);

#endif
