/* experiments/results.h - numbers out of a run's JSON files, by path.
 *
 * A path is "FILE#a.b[2].c": FILE inside the run's folder, then keys and indices; [*] means every element of an array
 * or every value of an object. Keys may hold spaces, '/', '#' and '-', but no '.' and no '['. */
#ifndef GATERQ_RESULTS_H
#define GATERQ_RESULTS_H

#include <stddef.h>

#include "gaterq/json.h"

typedef struct results results;

grq_status results_open(const char *folder, results **out,
                        grq_error *err); /* opens files when they are first asked for */
void results_close(results *r);

enum { RESULTS_MAX = 256 };
/* All numbers that `path` names, in file order; at least one, else an error that says what is missing. null is NaN. */
grq_status results_numbers(results *r, const char *path, double values[RESULTS_MAX], size_t *n, grq_error *err);
grq_status results_number(results *r, const char *path, double *value, grq_error *err);     /* exactly one */
grq_status results_node(results *r, const char *path, grq_json_node **out, grq_error *err); /* exactly one, any kind */

#endif
