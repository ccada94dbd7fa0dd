/* gaterq/match.h - is an answer right? Matching rules by name, as published, and the cuts of raw outputs before them.
 *
 * A score has no meaning without the name of its rule and of its cut: on the same outputs they differ by points.
 * Source: specs/evaluation-protocols.md sections 1 to 5. All texts are UTF-8; a rule that normalises refuses others
 * (GRQ_E_DATA). */
#ifndef GATERQ_MATCH_H
#define GATERQ_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "gaterq/status.h"

/* What of a raw output counts: "whole", "first_line", "popqa_first_line", "lm_eval_until", ... */
typedef struct {
    const char *name;
    const char *description;
    /* Moves *text and shortens *n: a cut never changes a character. */
    void (*cut)(const char **text, size_t *n);
} grq_match_cut;

typedef enum {
    GRQ_MATCH_TEXT,       /* the output against the accepted answers */
    GRQ_MATCH_CHOICE,     /* a letter is taken from the output and compared with the accepted one (CMMLU) */
    GRQ_MATCH_LIKELIHOOD, /* the most likely choice, see grq_choose: there is no output to match */
} grq_match_kind;

typedef struct {
    const char *name; /* "popqa_contains" */
    const char *description;
    const char *same_as; /* only another name of that rule, which has what follows; NULL for a rule */
    const char *cut;     /* the cut that the published rule makes; NULL: none of its own, the suite's is used */
    grq_match_kind kind;
    bool graded;                     /* F1: scores between 0 and 1 */
    const struct grq_match_how *how; /* private */
} grq_match_rule;

/* By name. An unknown name is GRQ_E_USAGE, with all names. */
grq_status grq_match_rule_find(const char *name, const grq_match_rule **out, grq_error *err);
grq_status grq_match_cut_find(const char *name, const grq_match_cut **out, grq_error *err);
const grq_match_rule *grq_match_rule_at(size_t index); /* in order of their list; NULL past the end */
const grq_match_cut *grq_match_cut_at(size_t index);
/* The rule itself where `rule` is only another name of it. All functions below take both. */
const grq_match_rule *grq_match_rule_itself(const grq_match_rule *rule);

/* The score of a raw output: 1 right, 0 wrong, between them for graded rules only. `cut` NULL: the rule's own cut, and
 * the whole output where it has none. An empty `accepted` is matched by nothing. Not for GRQ_MATCH_LIKELIHOOD. */
grq_status grq_match_score(const grq_match_rule *rule, const grq_match_cut *cut, const char *output,
                           const char *const *accepted, size_t n_accepted, double *score, grq_error *err);
/* The same with the rule's own cut; right means a score of 1. */
grq_status grq_match(const grq_match_rule *rule, const char *output, const char *const *accepted, size_t n_accepted,
                     bool *correct, grq_error *err);
/* What the rule compares with the accepted answers: the output, cut and normalised (choices: the letter, or ""). The
 * caller frees *compared. */
grq_status grq_match_compared(const grq_match_rule *rule, const grq_match_cut *cut, const char *output, char **compared,
                              grq_error *err);

/* A normalisation by the name that the specification gives it ("squad_v1", "opencompass_general", ...). Caller frees.
 */
grq_status grq_normalize(const char *name, const char *text, char **out, grq_error *err);

/* The output says that it does not know, in English or Chinese ("I do not know the answer", "unknown"): a count to
 * print beside a score, no part of any rule. */
grq_status grq_match_is_refusal(const char *output, bool *refusal, grq_error *err);

/* ---- choices (CMMLU) ---- */

enum { GRQ_N_CHOICES = 4, GRQ_NO_CHOICE = -1 };

typedef struct {
    int choice;     /* the most likely one, the first of equals; GRQ_NO_CHOICE when one of them is NaN */
    bool tied;      /* another one is as likely */
    bool undefined; /* one of them is NaN */
} grq_choice;

grq_choice grq_choose(const double loglikelihoods[GRQ_N_CHOICES]);

#endif
