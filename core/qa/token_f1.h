/* core/qa/token_f1.h - F1 of the words of two texts, separated by single spaces. No common word is 0, also where both
 * are empty (as the scripts have it). False when out of memory. */
#ifndef GATERQ_TOKEN_F1_H
#define GATERQ_TOKEN_F1_H

#include "qa/text_buffer.h"

/* `as_sets`: repeated words count once. */
bool grq_token_f1(const text_buffer *output, const text_buffer *gold, bool as_sets, double *f1);
/* A text that is "yes", "no" or "noanswer" has an F1 with itself alone. */
bool grq_token_f1_strict(const text_buffer *output, const text_buffer *gold, double *f1);

#endif
