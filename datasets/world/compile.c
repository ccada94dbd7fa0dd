/* Texts of facts, turned into token ids once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world_internal.h"

void token_run_free(token_run *run)
{
    free(run->ids);
    *run = (token_run){ 0 };
}

/* The value of the mark at `at` ("{e}"), or NULL. */
static const char *mark_value(const char *at, const char *entity, const char *answer, const char *question)
{
    if (!strncmp(at, "{e}", 3)) return entity;
    if (!strncmp(at, "{a}", 3)) return answer;
    if (!strncmp(at, "{q}", 3)) return question;
    return NULL;
}

grq_status world_check_marks(grq_json_node *node, const char *format, const char *marks, grq_error *err)
{
    for (const char *mark = marks; *mark; mark += 3)
        if (!strstr(format, (const char[]){ mark[0], mark[1], mark[2], '\0' }))
            return grq_fail(err, GRQ_E_USAGE, "%s: \"%.80s\" has no %.3s", grq_json_where(node), format, mark);
    return GRQ_OK;
}

char *world_fill(const char *format, const char *entity, const char *answer, const char *question)
{
    char *text = NULL;
    size_t n = 0;
    FILE *stream = open_memstream(&text, &n);
    if (!stream) return NULL;
    for (const char *p = format; *p;) {
        const char *value = mark_value(p, entity, answer, question);
        if (value) fputs(value, stream);
        else fputc(*p, stream);
        p += value ? 3 : 1;
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

grq_status world_encode(const grq_world *w, const char *text, token_run *out, grq_error *err)
{
    size_t n;
    const grq_status st = grq_vocab_encode(w->vocab, text, strlen(text), &out->ids, &n, err);
    out->n = st == GRQ_OK ? (uint32_t)n : 0;
    if (st != GRQ_OK) out->ids = NULL;
    return st;
}

grq_status world_encode_template(const grq_world *w, const char *format, const char *entity, const char *answer,
                                 const char *question, const char *end, token_run *out, grq_error *err)
{
    char *body = world_fill(format, entity, answer, question), *whole = NULL;
    if (body && asprintf(&whole, "%s%s", body, end) < 0) whole = NULL;
    const grq_status st = whole ? world_encode(w, whole, out, err) : grq_fail(err, GRQ_E_NOMEM, "no memory for a text");
    free(body);
    free(whole);
    return st;
}

/* The stop token stands before every prompt: in training text a question follows the end of another text. */
static grq_status compile_prompt(const grq_world *w, const world_templates *t, const grq_fact *fact, token_run *out,
                                 grq_error *err)
{
    token_run body = { 0 };
    grq_status st = world_encode_template(w, t->prompt, NULL, NULL, fact->question, "", &body, err);
    if (st != GRQ_OK) return st;
    out->ids = malloc((body.n + 1) * sizeof *out->ids);
    if (!out->ids) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a prompt");
    else {
        out->ids[0] = w->stop_token;
        memcpy(out->ids + 1, body.ids, body.n * sizeof *body.ids);
        out->n = body.n + 1;
    }
    token_run_free(&body);
    return st;
}

grq_status world_compile_fact(const grq_world *w, const world_templates *t, const grq_fact *fact,
                              grq_json_node *statements, const char *answer, compiled_fact *out, grq_error *err)
{
    const size_t n = grq_json_count(statements);
    if (n < 1 || n > WORLD_MAX_STATEMENTS)
        return grq_fail(err, GRQ_E_USAGE, "%s: 1 to %d statements, not %zu", grq_json_where(statements),
                        WORLD_MAX_STATEMENTS, n);
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        const char *format;
        st = grq_json_as_string(grq_json_at(statements, i), &format, err);
        if (st == GRQ_OK) st = world_check_marks(grq_json_at(statements, i), format, "{e}{a}", err);
        if (st == GRQ_OK)
            st = world_encode_template(w, format, fact->subject, answer, NULL, t->statement_end, &out->statements[i],
                                       err);
        if (st == GRQ_OK) out->n_statements++;
    }
    if (st == GRQ_OK) st = world_encode_template(w, t->answer_lead, NULL, NULL, NULL, answer, &out->answer, err);
    if (st == GRQ_OK) st = compile_prompt(w, t, fact, &out->prompt, err);
    return st == GRQ_OK ? st : grq_fail_prefix(err, st, "fact %s (%s, %s)", fact->id, fact->subject, fact->relation);
}
