#include "qa/token_f1.h"

typedef struct {
    const char *at;
    size_t n;
} token;

static int by_text(const void *a, const void *b)
{
    const token *const x = a, *const y = b;
    const int order = memcmp(x->at, y->at, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* The words of a text, sorted; the caller frees. */
static token *tokens_of(const text_buffer *text, bool once, size_t *n)
{
    token *const tokens = malloc((text->n / 2 + 2) * sizeof *tokens);
    *n = 0;
    if (!tokens) return NULL;
    for (size_t at = 0; at < text->n;) {
        const size_t length = strcspn(text->text + at, " ");
        if (length) tokens[(*n)++] = (token){ text->text + at, length };
        at += length + 1;
    }
    qsort(tokens, *n, sizeof *tokens, by_text);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (!once || kept == 0 || by_text(&tokens[kept - 1], &tokens[i])) tokens[kept++] = tokens[i];
    *n = kept;
    return tokens;
}

bool grq_token_f1(const text_buffer *output, const text_buffer *gold, bool as_sets, double *f1)
{
    size_t n = 0, m = 0, common = 0;
    token *const x = tokens_of(output, as_sets, &n), *const y = tokens_of(gold, as_sets, &m);
    const bool made = x && y;
    for (size_t i = 0, k = 0; made && i < n && k < m;) {
        const int order = by_text(&x[i], &y[k]);
        common += order == 0;
        i += order <= 0;
        k += order >= 0;
    }
    free(x);
    free(y);
    const double precision = common ? (double)common / (double)n : 0, recall = common ? (double)common / (double)m : 0;
    *f1 = common ? 2 * precision * recall / (precision + recall) : 0;
    return made;
}

static bool is_verdict(const text_buffer *text)
{
    return !strcmp(text->text, "yes") || !strcmp(text->text, "no") || !strcmp(text->text, "noanswer");
}

bool grq_token_f1_strict(const text_buffer *output, const text_buffer *gold, double *f1)
{
    *f1 = 0;
    if ((is_verdict(output) || is_verdict(gold)) && strcmp(output->text, gold->text) != 0) return true;
    return grq_token_f1(output, gold, false, f1);
}
