#include "score_data.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "gaterq/file.h"
#include "gaterq/json.h"
#include "score_csv.h"

/* ---- items that own their texts ---- */

static grq_status no_memory(const char *path, grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its items", path);
}

/* A new item at the end, without answers; NULL when out of memory. Texts may be NULL. */
static grq_score_item *add_item(score_data *d, const char *id, const char *question, const char *group)
{
    if (d->n == d->room) {
        const size_t room = d->room ? 2 * d->room : 1024;
        grq_score_item *const larger = realloc(d->items, room * sizeof *larger);
        if (!larger) return NULL;
        d->items = larger;
        d->room = room;
    }
    grq_score_item *const item = &d->items[d->n++];
    *item = (grq_score_item){ .id = strdup(id),
                              .question = question ? strdup(question) : NULL,
                              .group = group ? strdup(group) : NULL,
                              .popularity = NAN };
    return item->id && (item->question || !question) && (item->group || !group) ? item : NULL;
}

static bool add_answer(grq_score_item *item, const char *answer)
{
    if (!*answer) return true; /* no answer at all */
    const char **const more = realloc((void *)item->accepted, (item->n_accepted + 1) * sizeof *more);
    if (!more) return false;
    item->accepted = more;
    more[item->n_accepted] = strdup(answer);
    return more[item->n_accepted++] != NULL;
}

void score_data_close(score_data *data)
{
    for (size_t i = 0; i < data->n; i++) {
        grq_score_item *const item = &data->items[i];
        for (size_t k = 0; k < item->n_accepted; k++) free((char *)item->accepted[k]);
        free((void *)item->accepted);
        free((char *)item->id);
        free((char *)item->question);
        free((char *)item->group);
    }
    free(data->items);
    *data = (score_data){ 0 };
}

static grq_status read_text(const char *path, char **text, size_t *n, grq_error *err)
{
    const grq_status st = grq_file_read(path, 0, text, n, err);
    if (st != GRQ_OK) return st;
    if (strlen(*text) == *n && grq_utf8_valid(*text)) return GRQ_OK;
    const bool nul = strlen(*text) != *n;
    free(*text);
    *text = NULL;
    return grq_fail(err, GRQ_E_DATA, "%s: %s", path, nul ? "a NUL byte" : "not valid UTF-8");
}

/* ---- JSON ---- */

/* The first of the keys that the object has. */
static grq_json_node *find_any(grq_json_node *object, const char *const *keys)
{
    grq_json_node *found = NULL;
    for (; !found && *keys; keys++) found = grq_json_find(object, *keys);
    return found;
}

/* A text, a list of texts, or an object of those under the names that TriviaQA gives them. */
static grq_status add_json_answers(grq_score_item *item, grq_json_node *node, grq_error *err)
{
    static const char *const parts[] = {
        "Value",        "value",        "Aliases", "aliases", "NormalizedAliases", "normalized_aliases",
        "HumanAnswers", "human_answers"
    };
    const char *text;
    grq_status st = GRQ_OK;
    switch (grq_json_kind_of(node)) {
    case GRQ_JSON_STRING:
        st = grq_json_as_string(node, &text, err);
        return st == GRQ_OK && !add_answer(item, text) ? no_memory(grq_json_where(node), err) : st;
    case GRQ_JSON_ARRAY:
        for (size_t i = 0; st == GRQ_OK && i < grq_json_count(node); i++)
            st = add_json_answers(item, grq_json_at(node, i), err);
        return st;
    case GRQ_JSON_OBJECT:
        for (size_t i = 0; st == GRQ_OK && i < sizeof parts / sizeof *parts; i++) {
            grq_json_node *const part = grq_json_find(node, parts[i]);
            if (part) st = add_json_answers(item, part, err);
        }
        return st;
    default: return grq_fail(err, GRQ_E_DATA, "%s: answers must be texts", grq_json_where(node));
    }
}

static grq_status add_json_item(score_data *d, grq_json_node *node, bool own_ids, grq_error *err)
{
    static const char *const id_keys[] = { "QuestionId", "question_id", "id", NULL };
    static const char *const question_keys[] = { "question", "Question", "context", NULL };
    static const char *const answer_keys[] = { "answer_and_def_correct_predictions", "answers", "answer", "Answer",
                                               NULL };
    if (grq_json_kind_of(node) != GRQ_JSON_OBJECT)
        return grq_fail(err, GRQ_E_DATA, "%s: not an object", grq_json_where(node));
    grq_json_node *const question = find_any(node, question_keys), *const answers = find_any(node, answer_keys);
    grq_json_node *const aliases = grq_json_find(node, "aliases"), *const id = own_ids ? find_any(node, id_keys) : NULL;
    const char *text, *id_text = NULL;
    char row[32];
    if (!question || !answers)
        return grq_fail(err, GRQ_E_DATA, "%s: there is no %s", grq_json_where(node), question ? "answer" : "question");
    snprintf(row, sizeof row, "%zu", d->n);
    grq_status st = grq_json_as_string(question, &text, err);
    if (st == GRQ_OK && id) st = grq_json_as_string(id, &id_text, err);
    if (st != GRQ_OK) return st;
    grq_score_item *const item = add_item(d, id_text ? id_text : row, text, NULL);
    if (!item) return no_memory(grq_json_where(node), err);
    st = add_json_answers(item, answers, err);
    return st == GRQ_OK && aliases ? add_json_answers(item, aliases, err) : st;
}

static grq_status read_json_lines(const char *path, const char *text, size_t n, bool own_ids, score_data *out,
                                  grq_error *err)
{
    grq_status st = GRQ_OK;
    size_t line = 0;
    for (size_t at = 0, length; st == GRQ_OK && at < n; at += length + 1) {
        char name[4200];
        grq_json *document = NULL;
        length = strcspn(text + at, "\n");
        snprintf(name, sizeof name, "%.4000s: line %zu", path, ++line);
        if (strspn(text + at, " \t\r") >= length) continue;
        st = grq_json_parse(name, text + at, length, &document, err);
        if (st == GRQ_OK) st = add_json_item(out, grq_json_root(document), own_ids, err);
        grq_json_close(document);
    }
    return st;
}

/* TriviaQA's own files. */
static grq_status read_json(const char *path, const char *text, size_t n, bool own_ids, score_data *out, grq_error *err)
{
    grq_json *document = NULL;
    grq_json_node *list;
    grq_status st = grq_json_parse(path, text, n, &document, err);
    if (st == GRQ_OK) st = grq_json_array(grq_json_root(document), "Data", &list, err);
    for (size_t i = 0; st == GRQ_OK && i < grq_json_count(list); i++)
        st = add_json_item(out, grq_json_at(list, i), own_ids, err);
    grq_json_close(document);
    return st;
}

/* ---- DPR ---- */

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
static bool add_python_answers(grq_score_item *item, char *list)
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
        if (!add_answer(item, answer)) return false;
        while (*at == ' ') at++;
        if (*at != ',') break;
        for (at++; *at == ' ';) at++;
    }
    return at[0] == ']' && !at[1];
}

static grq_status read_dpr(const char *path, char *text, size_t n, score_data *out, grq_error *err)
{
    csv_reader r = { .path = path, .at = text, .end = text + n, .separator = '\t', .line = 1 };
    csv_record record;
    for (bool more = true;;) {
        char row[32];
        const grq_status st = csv_next(&r, &record, &more, err);
        if (st != GRQ_OK || !more) return st;
        if (record.n_fields != 2)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: line %zu: a question and its answers are wanted, separated by one tab", path,
                            record.line);
        csv_unquote(record.fields[0]); /* 748 questions of TriviaQA have a second layer of quotes */
        snprintf(row, sizeof row, "%zu", out->n);
        grq_score_item *const item = add_item(out, row, record.fields[0], NULL);
        if (!item) return no_memory(path, err);
        if (!add_python_answers(item, record.fields[1]))
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu: the answers are no list of texts as Python writes one",
                            path, record.line);
    }
}

grq_status score_data_open_questions(const char *path, bool own_ids, score_data *out, grq_error *err)
{
    char *text = NULL;
    size_t n;
    *out = (score_data){ 0 };
    grq_status st = read_text(path, &text, &n, err);
    if (st != GRQ_OK) return st;
    grq_json *first = NULL;
    const bool json = text[strspn(text, " \t\r\n")] == '{';
    const bool lines = json && grq_json_parse(path, text, strcspn(text, "\n"), &first, NULL) == GRQ_OK &&
                       !grq_json_find(grq_json_root(first), "Data");
    grq_json_close(first);
    if (lines) st = read_json_lines(path, text, n, own_ids, out, err);
    else if (json) st = read_json(path, text, n, own_ids, out, err);
    else st = read_dpr(path, text, n, out, err);
    free(text);
    if (st == GRQ_OK && !out->n) st = grq_fail(err, GRQ_E_DATA, "%s: there is no question", path);
    return st;
}

/* ---- CMMLU ---- */

static grq_status add_choice_item(const char *path, const char *subject, const csv_record *record, size_t row,
                                  score_data *out, grq_error *err)
{
    char id[320];
    if (record->n_fields != 7)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu has %zu fields, not 7", path, record->line, record->n_fields);
    const char *const answer = record->fields[6];
    if (strlen(answer) != 1 || *answer < 'A' || *answer > 'D')
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu: the answer is \"%.20s\", not A, B, C or D", path, record->line,
                        answer);
    snprintf(id, sizeof id, "%s/%zu", subject, row);
    grq_score_item *const item = add_item(out, id, record->fields[1], subject);
    return item && add_answer(item, answer) ? GRQ_OK : no_memory(path, err);
}

static grq_status read_subject(const char *path, const char *subject, score_data *out, grq_error *err)
{
    static const char *const header[] = { "", "Question", "A", "B", "C", "D", "Answer" };
    char *text = NULL;
    size_t n;
    grq_status st = read_text(path, &text, &n, err);
    if (st != GRQ_OK) return st;
    csv_reader r = { .path = path, .at = text, .end = text + n, .separator = ',', .line = 1 };
    csv_record record;
    bool more;
    st = csv_next(&r, &record, &more, err);
    bool right = st == GRQ_OK && record.n_fields == 7;
    for (size_t i = 0; right && i < 7; i++) right = !strcmp(record.fields[i], header[i]);
    if (st == GRQ_OK && !right) st = grq_fail(err, GRQ_E_DATA, "%s: the header is not ,Question,A,B,C,D,Answer", path);
    for (size_t row = 0; st == GRQ_OK; row++) {
        st = csv_next(&r, &record, &more, err);
        if (st != GRQ_OK || !more) break;
        st = add_choice_item(path, subject, &record, row, out, err);
    }
    free(text);
    return st;
}

static int is_subject_file(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);
    return entry->d_name[0] != '.' && n > 4 && !strcmp(entry->d_name + n - 4, ".csv");
}

grq_status score_data_open_cmmlu(const char *folder, score_data *out, grq_error *err)
{
    *out = (score_data){ 0 };
    char *const tests = grq_path_join(folder, "test");
    struct dirent **entries = NULL;
    if (!tests) return no_memory(folder, err);
    const int n = scandir(tests, &entries, is_subject_file, alphasort);
    grq_status st = n > 0 ? GRQ_OK
                          : grq_fail(err, n < 0 ? GRQ_E_IO : GRQ_E_DATA, "%s: %s", tests,
                                     n < 0 ? strerror(errno) : "the folder holds no <subject>.csv");
    for (int i = 0; i < n; i++) {
        char *const path = grq_path_join(tests, entries[i]->d_name);
        entries[i]->d_name[strlen(entries[i]->d_name) - 4] = '\0';
        if (st == GRQ_OK) st = path ? read_subject(path, entries[i]->d_name, out, err) : no_memory(folder, err);
        free(path);
        free(entries[i]);
    }
    free(entries);
    free(tests);
    if (st == GRQ_OK && !out->n) st = grq_fail(err, GRQ_E_DATA, "%s: there is no question", folder);
    return st;
}
