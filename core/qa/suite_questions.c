/* Questions with short answers: TriviaQA's JSON, and JSON lines of TriviaQA, NQ-open and EfficientQA. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/json.h"
#include "suite_internal.h"
#include "text_file.h"

/* The first of the keys that the object has. */
static grq_json_node *find_any(grq_json_node *object, const char *const *keys)
{
    grq_json_node *found = NULL;
    for (; !found && *keys; keys++) found = grq_json_find(object, *keys);
    return found;
}

/* A text, a list of texts, or an object of those under the names that TriviaQA gives them. */
static grq_status add_json_answers(grq_suite_item *item, grq_json_node *node, grq_error *err)
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
        return st == GRQ_OK && !suite_add_answer(item, text) ? suite_no_memory(grq_json_where(node), err) : st;
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

/* A copy of the text under one of the keys, or of the first of the texts there. */
static grq_status copy_first(grq_json_node *node, const char **out, grq_error *err)
{
    const char *text;
    if (node && grq_json_kind_of(node) == GRQ_JSON_ARRAY) node = grq_json_at(node, 0);
    if (!node || grq_json_as_string(node, &text, err) != GRQ_OK) return GRQ_OK; /* none of the kind */
    *out = strdup(text);
    return *out ? GRQ_OK : suite_no_memory(grq_json_where(node), err);
}

static grq_status add_shown(grq_suite_item *item, grq_json_node *answers, grq_json_node *aliases, grq_error *err)
{
    static const char *const value_keys[] = { "Value", "value", NULL }, *const alias_keys[] = { "Aliases", "aliases",
                                                                                                NULL };
    const bool object = grq_json_kind_of(answers) == GRQ_JSON_OBJECT;
    if (object && !aliases) aliases = find_any(answers, alias_keys);
    grq_status st = copy_first(object ? find_any(answers, value_keys) : answers, &item->shown, err);
    return st == GRQ_OK ? copy_first(aliases, &item->first_alias, err) : st;
}

static grq_status add_json_item(grq_suite *d, grq_json_node *node, bool own_ids, grq_error *err)
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
    if (st == GRQ_OK && id && grq_json_kind_of(id) == GRQ_JSON_NUMBER) {
        uint64_t number;
        st = grq_json_as_u64(id, 0, UINT64_MAX / 2, &number, err);
        snprintf(row, sizeof row, "%" PRIu64, number);
    } else if (st == GRQ_OK && id) {
        st = grq_json_as_string(id, &id_text, err);
    }
    if (st != GRQ_OK) return st;
    grq_suite_item *const item = suite_add_item(d, id_text ? id_text : row, text, NULL);
    if (!item) return suite_no_memory(grq_json_where(node), err);
    st = add_json_answers(item, answers, err);
    if (st == GRQ_OK && aliases) st = add_json_answers(item, aliases, err);
    return st == GRQ_OK ? add_shown(item, answers, aliases, err) : st;
}

static grq_status read_json_lines(const char *path, const char *text, size_t n, bool own_ids, grq_suite *out,
                                  grq_error *err)
{
    grq_status st = GRQ_OK;
    size_t line = 0;
    for (size_t at = 0, length; st == GRQ_OK && at < n; at += length + 1) {
        char name[4200];
        grq_json *document = NULL;
        length = strcspn(text + at, "\n");
        if (length > GRQ_MAX_SUITE_LINE)
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu has %zu bytes; %d are allowed", path, line + 1, length,
                            GRQ_MAX_SUITE_LINE);
        snprintf(name, sizeof name, "%.4000s: line %zu", path, ++line);
        if (strspn(text + at, " \t\r") >= length) continue;
        st = grq_json_parse(name, text + at, length, &document, err);
        if (st == GRQ_OK) st = add_json_item(out, grq_json_root(document), own_ids, err);
        grq_json_close(document);
    }
    return st;
}

/* TriviaQA's own files. */
static grq_status read_json(const char *path, const char *text, size_t n, bool own_ids, grq_suite *out, grq_error *err)
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

/* An object that ends where the first line does, and is none of TriviaQA's own files on one line. */
static bool begins_with_a_line(const char *path, const char *text)
{
    size_t n = strcspn(text, "\n");
    grq_json *first = NULL;
    const bool whole = grq_json_parse(path, text, n, &first, NULL) == GRQ_OK;
    const bool data = whole && grq_json_find(grq_json_root(first), "Data");
    grq_json_close(first);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\r')) n--;
    return !data && (whole || (n > 1 && text[n - 1] == '}')); /* broken, and to be named by its line */
}

grq_status suite_read_questions(grq_suite *out, const char *path, bool own_ids, grq_error *err)
{
    char *text = NULL;
    size_t n;
    grq_status st = grq_text_file_read(path, &text, &n, err);
    if (st != GRQ_OK) return st;
    const bool json = text[strspn(text, " \t\r\n")] == '{', lines = json && begins_with_a_line(path, text);
    if (lines) st = read_json_lines(path, text, n, own_ids, out, err);
    else if (json) st = read_json(path, text, n, own_ids, out, err);
    else st = suite_read_dpr(out, path, text, n, err);
    free(text);
    return st;
}
