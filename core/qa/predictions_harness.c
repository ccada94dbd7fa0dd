/* samples_*.jsonl of lm-evaluation-harness. Raw responses are read, not filtered ones: cutting is the matching rule's.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qa/predictions_internal.h"

bool grq_is_harness_sample(grq_json_node *object)
{
    return !grq_json_find(object, "id") && grq_json_find(object, "doc_id") && grq_json_find(object, "resps");
}

/* "samples_cmmlu_default_agronomy_2024-07-01T12.jsonl" is of the subject agronomy. NULL where there is none. */
static char *subject_of(const char *file)
{
    const char *const slash = strrchr(file, '/'), *const base = slash ? slash + 1 : file;
    const char *at = strstr(base, "cmmlu_");
    if (!at) return NULL;
    at += strlen("cmmlu_");
    if (!strncmp(at, "default_", 8)) at += 8;
    size_t n = strcspn(at, ".");
    for (size_t i = 0; i + 1 < n; i++)
        if (at[i] == '_' && at[i + 1] >= '0' && at[i + 1] <= '9') n = i; /* the date */
    return n ? strndup(at, n) : NULL;
}

/* CMMLU has no ids: subject and row. */
static grq_status read_cmmlu_id(const char *file, grq_json_node *object, char **out, grq_error *err)
{
    char *row = NULL, *const subject = subject_of(file);
    grq_status st = grq_read_prediction_id(object, "doc_id", &row, err);
    if (st == GRQ_OK && !subject)
        st =
            grq_fail(err, GRQ_E_DATA, "%s: the file's name must hold the subject: samples_cmmlu_<subject>_<date>.jsonl",
                     grq_json_where(object));
    if (st == GRQ_OK && asprintf(out, "%s/%s", subject, row) < 0) {
        *out = NULL;
        st = grq_no_memory_for_predictions(file, err);
    }
    free(subject);
    free(row);
    return st;
}

/* The document's own id where it has one (TriviaQA question_id, PopQA id), else its row. */
static grq_status read_id(const char *file, grq_json_node *object, char **out, grq_error *err)
{
    grq_json_node *const doc = grq_json_find(object, "doc");
    if (doc && grq_json_kind_of(doc) == GRQ_JSON_OBJECT) {
        if (grq_json_find(doc, "Question") && grq_json_find(doc, "D")) return read_cmmlu_id(file, object, out, err);
        if (grq_json_find(doc, "question_id")) return grq_read_prediction_id(doc, "question_id", out, err);
        if (grq_json_find(doc, "id")) return grq_read_prediction_id(doc, "id", out, err);
    }
    return grq_read_prediction_id(object, "doc_id", out, err);
}

/* The harness writes numbers as text: "-1.25", "-inf", "nan". */
static grq_status read_number(grq_json_node *node, double *out, grq_error *err)
{
    if (grq_json_kind_of(node) == GRQ_JSON_NUMBER) return grq_json_as_f64(node, -INFINITY, INFINITY, out, err);
    const char *text;
    const grq_status st = grq_json_as_string(node, &text, err);
    if (st != GRQ_OK) return st;
    char *end = NULL;
    if (!strcmp(text, "nan")) *out = NAN;
    else if (!strcmp(text, "inf") || !strcmp(text, "-inf")) *out = *text == '-' ? -INFINITY : INFINITY;
    else if (*text == '-' || (*text >= '0' && *text <= '9')) *out = strtod(text, &end);
    else end = (char *)text;
    return !end || (!*end && end != text)
               ? GRQ_OK
               : grq_fail(err, GRQ_E_DATA, "%s: \"%.40s\" is no log-likelihood", grq_json_where(node), text);
}

/* One per choice: [[log-likelihood, is greedy]]. */
static grq_status read_loglikelihoods(grq_json_node *resps, grq_prediction *out, grq_error *err)
{
    const size_t n = grq_json_count(resps);
    out->loglikelihoods = calloc(n + 1, sizeof *out->loglikelihoods);
    if (!out->loglikelihoods) return grq_no_memory_for_predictions(grq_json_where(resps), err);
    out->n_loglikelihoods = n;
    for (size_t i = 0; i < n; i++) {
        grq_json_node *node = grq_json_at(resps, i);
        for (int deep = 0; deep < 2 && node; deep++)
            node = grq_json_kind_of(node) == GRQ_JSON_ARRAY ? grq_json_at(node, 0) : NULL;
        if (!node) return grq_fail(err, GRQ_E_DATA, "%s: choice %zu has no log-likelihood", grq_json_where(resps), i);
        const grq_status st = read_number(node, &out->loglikelihoods[i], err);
        if (st != GRQ_OK) return st;
    }
    return GRQ_OK;
}

static grq_status read_responses(grq_json_node *object, grq_prediction *out, grq_error *err)
{
    grq_json_node *resps;
    const grq_status st = grq_json_array(object, "resps", &resps, err);
    if (st != GRQ_OK) return st;
    grq_json_node *const first = grq_json_at(resps, 0);
    grq_json_node *const inner = first && grq_json_kind_of(first) == GRQ_JSON_ARRAY ? grq_json_at(first, 0) : NULL;
    if (inner && grq_json_kind_of(inner) == GRQ_JSON_ARRAY) return read_loglikelihoods(resps, out, err);
    if (!inner || grq_json_kind_of(inner) != GRQ_JSON_STRING || grq_json_count(resps) != 1 ||
        grq_json_count(first) != 1)
        return grq_fail(err, GRQ_E_DATA, "%s: neither one generated text nor one log-likelihood per choice",
                        grq_json_where(resps));
    const char *text;
    const grq_status read = grq_json_as_string(inner, &text, err);
    if (read != GRQ_OK) return read;
    out->output = strdup(text);
    return out->output ? GRQ_OK : grq_no_memory_for_predictions(grq_json_where(object), err);
}

grq_status grq_read_harness_sample(const char *file, grq_json_node *object, grq_prediction *out, grq_error *err)
{
    const grq_status st = read_id(file, object, &out->id, err);
    return st == GRQ_OK ? read_responses(object, out, err) : st;
}
