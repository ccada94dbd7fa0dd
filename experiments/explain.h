/* experiments/explain.h - printing the look-ups of a trace one by one. */
#ifndef GATERQ_EXPLAIN_H
#define GATERQ_EXPLAIN_H

#include "gaterq/trace.h"
#include "gaterq/vocab.h"
#include "tool.h"

enum { EXPLAIN_MAX_TEXTS = 16 };

typedef struct {
    const grq_trace *trace;
    const grq_vocab *vocab;   /* NULL: tokens are shown by number */
    const char *const *texts; /* (n_texts) what sequence s is; NULL: not known */
    uint64_t n_texts;
    bool only_sequence; /* show `sequence` only; budgets are still those of the whole trace */
    uint32_t sequence;
    int64_t layer; /* -1: all */
    uint64_t top;  /* 0: all look-ups */
    uint64_t seed; /* of the orderings random and shuffled */
} explain_view;

/* Readable tables to stdout, or the same as the keys `lookups` and `shared` of the result. */
grq_status explain_print(tool_context *tool, const explain_view *view, const grq_budget *budget, grq_error *err);

#endif
