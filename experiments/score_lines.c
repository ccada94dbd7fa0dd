/* Scored lines: what was said, what of it counted, and the verdict of each rule. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"
#include "score_report.h"

static grq_status put_output(grq_json_writer *w, const grq_rule_score *s, const grq_prediction *p, grq_error *err)
{
    grq_json_put_string(w, "output", p->output);
    if (!s->cut) return GRQ_OK;
    const char *text = p->output;
    size_t n = strlen(text);
    s->cut->cut(&text, &n);
    char *const kept = strndup(text, n);
    if (!kept) return grq_fail(err, GRQ_E_NOMEM, "no memory for a scored line");
    grq_json_put_string(w, "cut", s->cut->name);
    grq_json_put_string(w, "cut_output", kept);
    free(kept);
    if (grq_match_rule_itself(s->rule)->kind != GRQ_MATCH_CHOICE) return GRQ_OK;
    char *letter;
    const grq_status st = grq_match_compared(s->rule, s->cut, p->output, &letter, err);
    if (st == GRQ_OK) grq_json_put_string(w, "choice", *letter ? letter : NULL);
    free(letter);
    return st;
}

static void put_likelihoods(grq_json_writer *w, const grq_prediction *p, bool chosen)
{
    grq_json_begin_array(w, "loglikelihoods");
    for (size_t i = 0; i < p->n_loglikelihoods; i++) grq_json_put_f64(w, NULL, p->loglikelihoods[i]);
    grq_json_end_array(w);
    if (!chosen) return;
    const grq_choice choice = grq_choose(p->loglikelihoods);
    const char letter[2] = { (char)('A' + choice.choice), '\0' };
    grq_json_put_string(w, "choice", choice.choice == GRQ_NO_CHOICE ? NULL : letter);
    grq_json_put_bool(w, "tied", choice.tied);
}

/* Right or wrong; graded rules give their score. */
static void put_verdicts(grq_json_writer *w, const score_results *r, size_t i)
{
    grq_json_begin_object(w, "verdicts");
    for (size_t k = 0; k < r->n_rules; k++) {
        const grq_rule_score *const s = &r->scores[k];
        if (grq_match_rule_itself(s->rule)->graded) grq_json_put_f64(w, s->rule->name, s->scores[i]);
        else grq_json_put_bool(w, s->rule->name, s->scores[i] == 1);
    }
    grq_json_end_object(w);
}

static grq_status put_line(grq_json_writer *w, const score_results *r, size_t i, grq_error *err)
{
    const grq_suite_item *const item = &r->items->items[i];
    const grq_prediction *const p = r->of_item[i];
    const grq_rule_score *const s = &r->scores[0];
    grq_status st = GRQ_OK;
    grq_json_put_string(w, "suite", r->items->suite->name);
    grq_json_put_string(w, "id", item->id);
    if (r->predictions->run) grq_json_put_string(w, "run", r->predictions->run);
    if (p->prompt_sha256) grq_json_put_string(w, "prompt_sha256", p->prompt_sha256);
    if (p->output) st = put_output(w, s, p, err);
    if (p->loglikelihoods) put_likelihoods(w, p, !s->cut);
    grq_json_put_string(w, "rule", s->rule->name);
    grq_json_put_bool(w, "correct", s->scores[i] == 1);
    if (grq_match_rule_itself(s->rule)->graded) grq_json_put_f64(w, "score", s->scores[i]);
    if (r->items->suite->group_key) grq_json_put_string(w, r->items->suite->group_key, item->group);
    if (r->quartile) {
        grq_json_put_f64(w, "popularity", item->popularity);
        if (r->quartile[i] < GRQ_N_QUARTILES) grq_json_put_u64(w, "quartile", r->quartile[i]);
    }
    if (r->n_rules > 1) put_verdicts(w, r, i);
    return st;
}

static grq_status write_line(FILE *stream, const score_results *r, size_t i, grq_error *err)
{
    grq_json_writer *const w = grq_json_writer_new();
    const char *text;
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "no memory for a scored line");
    grq_json_begin_object(w, NULL);
    grq_status st = put_line(w, r, i, err);
    grq_json_end_object(w);
    if (st == GRQ_OK) st = grq_json_writer_text(w, true, &text, err);
    if (st == GRQ_OK) fprintf(stream, "%s\n", text); /* commit reports short writes */
    grq_json_writer_free(w);
    return st;
}

grq_status score_write_lines(const score_results *r, const char *path, grq_error *err)
{
    grq_outfile *file = NULL;
    grq_status st = grq_outfile_open(path, &file, err);
    for (size_t i = 0; st == GRQ_OK && i < r->items->n; i++)
        if (r->of_item[i]) st = write_line(grq_outfile_stream(file), r, i, err);
    if (st == GRQ_OK) return grq_outfile_commit(file, err);
    grq_outfile_discard(file);
    return st;
}
