/* core/qa/text_clean.h - what the published scripts do to a text before they compare it: six normalisations, the steps
 * around them, and the cuts of raw outputs. Source: specs/evaluation-protocols.md section 1.
 *
 * All take n bytes of UTF-8 and make `out`, another text. False when out of memory. */
#ifndef GATERQ_TEXT_CLEAN_H
#define GATERQ_TEXT_CLEAN_H

#include "qa/text_buffer.h"

typedef bool text_step(const char *text, size_t n, text_buffer *out);

text_step grq_clean_copy;  /* as it is */
text_step grq_clean_strip; /* spaces off both ends */
text_step grq_clean_lower;

text_step grq_clean_squad, grq_clean_triviaqa, grq_clean_nq_open; /* _official */
text_step grq_clean_lm_eval_triviaqa, grq_clean_lm_eval_nq_open;
text_step grq_clean_lm_eval_triviaqa_output, grq_clean_lm_eval_nq_open_output; /* stripped first */
text_step grq_clean_opencompass;                                               /* opencompass_general */
text_step grq_clean_opencompass_gold;                                          /* the same, lower-cased afterwards */
text_step grq_clean_opencompass_general_output;                                /* lower-cased before */
text_step grq_clean_opencompass_triviaqa_output; /* stripped, first line, lower-cased, prefixes dropped */
text_step grq_clean_opencompass_nq_output;

#endif
