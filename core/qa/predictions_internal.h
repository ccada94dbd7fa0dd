/* core/qa/predictions_internal.h - the two layouts of a predictions line. */
#ifndef GATERQ_PREDICTIONS_INTERNAL_H
#define GATERQ_PREDICTIONS_INTERNAL_H

#include <stdbool.h>

#include "gaterq/json.h"
#include "gaterq/predictions.h"

/* Whether a line's object is one of lm-evaluation-harness. */
bool grq_is_harness_sample(grq_json_node *object);
/* Fills id, output or loglikelihoods of *out; `file` names the subject of a CMMLU sample. What is filled stays the
 * caller's, also on failure. */
grq_status grq_read_harness_sample(const char *file, grq_json_node *object, grq_prediction *out, grq_error *err);

/* The same for a line of our own; also what `correct` says. */
grq_status grq_read_own_prediction(grq_json_node *object, grq_prediction *out, grq_error *err);

/* `run` and the value of `key` must be what *all holds, if the line has them; the first line that has them sets it. */
grq_status grq_check_prediction_run(grq_json_node *object, char **all, grq_error *err);
grq_status grq_check_prediction_settings(grq_json_node *object, const char *key, char **all, grq_error *err);

/* The id under `key`, a string or a whole number, as text. */
grq_status grq_read_prediction_id(grq_json_node *object, const char *key, char **out, grq_error *err);
grq_status grq_no_memory_for_predictions(const char *path, grq_error *err);

#endif
