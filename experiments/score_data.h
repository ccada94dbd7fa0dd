/* experiments/score_data.h - the items of TriviaQA, NQ-open and CMMLU files. PopQA's are facts (gaterq/facts.h).
 * Source: specs/evaluation-protocols.md sections 3 to 5, with its traps. */
#ifndef GATERQ_SCORE_DATA_H
#define GATERQ_SCORE_DATA_H

#include "gaterq/score.h"

/* Items that own their texts. */
typedef struct {
    size_t n, room;
    grq_score_item *items;
} score_data;

/* TriviaQA and NQ-open, told apart by content: the official JSON ("Data"), JSON lines, or DPR's tab-separated file with
 * a Python list of answers. Ids are the items' own (TriviaQA), else 0-based rows. EfficientQA's
 * answer_and_def_correct_predictions are the answers where a line has them. */
grq_status score_data_open_questions(const char *path, bool own_ids, score_data *out, grq_error *err);
/* CMMLU: <folder>/test/<subject>.csv; ids <subject>/<0-based row>, the answer's letter is the one accepted answer. */
grq_status score_data_open_cmmlu(const char *folder, score_data *out, grq_error *err);
void score_data_close(score_data *data);

#endif
