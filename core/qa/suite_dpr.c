/* DPR's and FiD's files: a question and a list of answers as Python writes one, separated by a tab. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "csv.h"
#include "suite_internal.h"

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static void put_utf8(char **to, uint32_t c)
{
    const int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (int i = n - 1; i > 0; i--, c >>= 6) (*to)[i] = (char)(0x80 | (c & 0x3F));
    (*to)[0] = (char)(first[n] | c);
    *to += n;
}

/* A backslash escape of Python at *at, which moves behind it. No escape is shorter than what it stands for. */
static bool take_escape(const char **at, char **to)
{
    static const char plain[][2] = { { '\\', '\\' }, { '\'', '\'' }, { '"', '"' },
                                     { 'n', '\n' },  { 't', '\t' },  { 'r', '\r' } };
    const char c = *++*at;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (c == plain[i][0]) {
            *(*to)++ = plain[i][1];
            ++*at;
            return true;
        }
    const int n = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t value = 0;
    for (int i = 1; i <= n; i++) {
        const int digit = hex_digit((*at)[i]);
        if (digit < 0) return false;
        value = value * 16 + (uint32_t)digit;
    }
    if (n == 0 || value == 0 || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return false;
    put_utf8(to, value);
    *at += n + 1;
    return true;
}

/* ['a', "it's"]: Python's list of texts, unescaped in place. */
static bool add_python_answers(grq_suite_item *item, char *list)
{
    const char *at = list;
    if (*at++ != '[') return false;
    while (*at == ' ') at++;
    while (*at == '\'' || *at == '"') {
        const char quote = *at++;
        char *const answer = list, *to = list;
        while (*at && *at != quote) {
            if (*at != '\\') *to++ = *at++;
            else if (!take_escape(&at, &to)) return false;
        }
        if (!*at++) return false;
        *to = '\0';
        if (!suite_add_answer(item, answer)) return false;
        while (*at == ' ') at++;
        if (*at != ',') break;
        for (at++; *at == ' ';) at++;
    }
    return at[0] == ']' && !at[1];
}

grq_status suite_read_dpr(grq_suite *out, const char *path, char *text, size_t n, grq_error *err)
{
    grq_csv r = { .path = path, .at = text, .end = text + n, .separator = '\t', .line = 1 };
    grq_csv_record record;
    for (bool more = true;;) {
        char row[32];
        const grq_status st = grq_csv_next(&r, &record, &more, err);
        if (st != GRQ_OK || !more) return st;
        if (record.n_fields != 2)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: line %zu: a question and its answers are wanted, separated by one tab", path,
                            record.line);
        grq_csv_unquote(record.fields[0]); /* 748 questions of TriviaQA have a second layer of quotes */
        if (suite_is_blank(record.fields[0], strlen(record.fields[0])))
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu, column 1: the question is blank", path, record.line);
        snprintf(row, sizeof row, "%zu", out->n);
        grq_suite_item *const item = suite_add_item(out, row, record.fields[0], NULL);
        if (!item) return suite_no_memory(path, err);
        if (!add_python_answers(item, record.fields[1]))
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu: the answers are no list of texts as Python writes one",
                            path, record.line);
    }
}
