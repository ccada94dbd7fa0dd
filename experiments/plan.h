/* experiments/plan.h - a run is a list of public commands; the plan makes that list from an experiment config.
 *
 * `gaterq run` calls the same functions as the command line does, with the same options, so every step of a run can be
 * repeated by hand: the run's folder lists the commands in commands.sh. */
#ifndef GATERQ_PLAN_H
#define GATERQ_PLAN_H

#include "tool.h"

enum { PLAN_MAX_ARGUMENTS = 32, PLAN_MAX_STEPS = 128 };

typedef struct {
    char *name; /* "priced: encode layer 1" */
    tool_function *run;
    int argc;
    char *argv[PLAN_MAX_ARGUMENTS]; /* argv[0] is the command */
    char *result;                   /* file that gets the command's --json result; NULL: not kept */
    char *output;                   /* file or folder that must exist after the step; NULL when `result` is all */
} plan_step;

typedef struct {
    char *id, *title, *folder; /* results/<id> unless --out says otherwise */
    uint64_t seed;             /* of every step, from the config */
    size_t n_steps;
    plan_step steps[PLAN_MAX_STEPS];
    size_t n_variants;
    char *variants[8];
    char *predictions; /* text of predictions.json, the manifest of a grid's run; NULL: none */
    char *report_on;   /* folder of scored predictions that the report is about; NULL: the run's own */
} plan;

/* Reads and checks the whole config; world, model and train objects are checked by the commands that read them. */
grq_status plan_read(const char *config_path, const char *folder, plan *out, grq_error *err);
void plan_free(plan *p);

#endif
