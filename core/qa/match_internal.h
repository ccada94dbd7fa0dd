/* core/qa/match_internal.h - how a rule compares: the table is in match_rules.c, the comparisons in match.c. */
#ifndef GATERQ_MATCH_INTERNAL_H
#define GATERQ_MATCH_INTERNAL_H

#include "gaterq/match.h"
#include "qa/text_clean.h"

typedef enum { EQUAL, CONTAINS, CONTAINS_CASES, STARTS, F1, F1_STRICT_WORDS, F1_SET } comparison;

struct grq_match_how {
    comparison compare;
    text_step *output, *gold;
    bool empty_output_is_wrong; /* HELM: before any normalisation */
    bool empty_gold_is_nothing; /* OpenCompass as we score it: a gold answer that cleans to nothing matches nothing */
    bool takes_every_kind;      /* of answer: the normalised and the human ones that TriviaQA has beside its aliases */
    bool drops_extensions;      /* lighteval: answers that begin with another one are dropped first */
};

#endif
