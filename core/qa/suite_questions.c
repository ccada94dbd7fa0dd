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

/* A text, or a list of texts. */
static grq_status add_texts(grq_suite_item *item, grq_json_node *node, grq_error *err)
{
    const bool list = grq_json_kind_of(node) == GRQ_JSON_ARRAY;
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < (list ? grq_json_count(node) : 1); i++) {
        grq_json_node *const at = list ? grq_json_at(node, i) : node;
        const char *text;
        if (grq_json_kind_of(at) != GRQ_JSON_STRING)
            return grq_fail(err, GRQ_E_DATA, "%s: answers must be texts", grq_json_where(at));
        st = grq_json_as_string(at, &text, err);
        if (st == GRQ_OK && !suite_add_answer(item, text)) st = suite_no_memory(grq_json_where(at), err);
    }
    return st;
}

/* Where one kind of answers lies among the accepted ones, whose place in memory is known only when all are read. */
typedef struct {
    size_t first, n;
} answer_range;

static grq_status add_range(grq_suite_item *item, grq_json_node *node, answer_range *range, grq_error *err)
{
    range->first = item->n_accepted;
    const grq_status st = add_texts(item, node, err);
    range->n = item->n_accepted - range->first;
    return st;
}

static grq_answer_list list_of(const grq_suite_item *item, answer_range range)
{
    return (grq_answer_list){ .n = range.n, .texts = range.n ? item->accepted + range.first : NULL };
}

static grq_status copy_shown(grq_suite_item *item, grq_json_node *value, grq_error *err)
{
    const char *text;
    const grq_status st = grq_json_as_string(value, &text, err);
    if (st != GRQ_OK || !*text) return st;
    item->shown = strdup(text);
    return item->shown ? GRQ_OK : suite_no_memory(grq_json_where(value), err);
}

/* TriviaQA's answers, told apart: the official files', and those of its copies. */
static grq_status add_parts(grq_suite_item *item, grq_json_node *answer, grq_error *err)
{
    static const char *const keys[][2] = { { "Value", "value" },
                                           { "Aliases", "aliases" },
                                           { "NormalizedAliases", "normalized_aliases" },
                                           { "HumanAnswers", "human_answers" } };
    answer_range ranges[4] = { 0 };
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < 4; i++) {
        grq_json_node *const official = grq_json_find(answer, keys[i][0]), *const copied =
                                                                               grq_json_find(answer, keys[i][1]);
        grq_json_node *const part = official ? official : copied;
        if (official && copied)
            st = grq_fail(err, GRQ_E_DATA, "%s: the answer has %s too", grq_json_where(official), keys[i][1]);
        if (st == GRQ_OK && part && i == 0) st = copy_shown(item, part, err);
        if (st == GRQ_OK && part) st = add_range(item, part, &ranges[i], err);
    }
    item->aliases = list_of(item, ranges[1]);
    item->normalized = list_of(item, ranges[2]);
    item->human = list_of(item, ranges[3]);
    return st;
}

/* An answer with its aliases beside it (llm-foundry), or a list of aliases with the canonical answer beside it (FiD:
 * "target", which is written in another way than any alias in one row of fifteen, and is shown only). */
static grq_status add_list(grq_suite_item *item, grq_json_node *object, grq_json_node *answers, grq_error *err)
{
    grq_json_node *const aliases = grq_json_find(object, "aliases"), *const target = grq_json_find(object, "target");
    answer_range range = { 0 };
    grq_status st = add_range(item, answers, &range, err);
    if (st == GRQ_OK && target) st = copy_shown(item, target, err);
    if (st == GRQ_OK && aliases) st = add_range(item, aliases, &range, err);
    if (aliases || target) item->aliases = list_of(item, range);
    return st;
}

static grq_status add_answers(grq_suite_item *item, grq_json_node *object, grq_json_node *answers, grq_error *err)
{
    return grq_json_kind_of(answers) == GRQ_JSON_OBJECT ? add_parts(item, answers, err)
                                                        : add_list(item, object, answers, err);
}

/* llm-foundry's "context" is the question in its prompt. The caller frees *out. */
static grq_status read_question(grq_json_node *object, char **out, grq_error *err)
{
    static const char *const keys[] = { "question", "Question", NULL };
    static const char BEFORE[] = "Question: ", BEHIND[] = "\nAnswer:";
    grq_json_node *const question = find_any(object, keys), *const context = grq_json_find(object, "context");
    grq_json_node *const node = question ? question : context;
    const char *text;
    *out = NULL;
    if (!node) return grq_fail(err, GRQ_E_DATA, "%s: there is no question", grq_json_where(object));
    grq_status st = grq_json_as_string(node, &text, err);
    if (st != GRQ_OK) return st;
    size_t n = strlen(text);
    if (!question) {
        const size_t before = sizeof BEFORE - 1, behind = sizeof BEHIND - 1;
        if (n < before + behind || strncmp(text, BEFORE, before) || strcmp(text + n - behind, BEHIND))
            return grq_fail(err, GRQ_E_DATA, "%s: not \"Question: ...\\nAnswer:\"", grq_json_where(node));
        text += before;
        n -= before + behind;
    }
    if (suite_is_blank(text, n)) return grq_fail(err, GRQ_E_DATA, "%s: the question is blank", grq_json_where(node));
    *out = strndup(text, n);
    return *out ? GRQ_OK : suite_no_memory(grq_json_where(node), err);
}

/* The item's own id, where it has one, else its row. */
static grq_status read_id(grq_json_node *object, size_t row, char id[SUITE_ID_BYTES], grq_error *err)
{
    static const char *const keys[] = { "QuestionId", "question_id", "id", NULL };
    grq_json_node *const node = find_any(object, keys);
    const char *text;
    uint64_t number = row;
    grq_status st = GRQ_OK;
    if (node && grq_json_kind_of(node) != GRQ_JSON_NUMBER) {
        st = grq_json_as_string(node, &text, err);
        if (st != GRQ_OK) return st;
        const size_t n = strlen(text);
        if (n == 0 || n >= SUITE_ID_BYTES)
            return grq_fail(err, GRQ_E_DATA, "%s: an id of %zu bytes; 1 to %d are allowed", grq_json_where(node), n,
                            SUITE_ID_BYTES - 1);
        memcpy(id, text, n + 1);
        return GRQ_OK;
    }
    if (node) st = grq_json_as_u64(node, 0, UINT64_MAX / 2, &number, err);
    snprintf(id, SUITE_ID_BYTES, "%" PRIu64, number);
    return st;
}

static grq_status add_json_item(grq_suite *d, grq_json_node *node, bool own_ids, grq_error *err)
{
    static const char *const keys[] = { "answer_and_def_correct_predictions", "answers", "answer", "Answer", NULL };
    if (grq_json_kind_of(node) != GRQ_JSON_OBJECT)
        return grq_fail(err, GRQ_E_DATA, "%s: not an object", grq_json_where(node));
    grq_json_node *const answers = find_any(node, keys);
    char id[SUITE_ID_BYTES], *question = NULL;
    snprintf(id, sizeof id, "%zu", d->n);
    grq_status st = read_question(node, &question, err);
    if (st == GRQ_OK && !answers) st = grq_fail(err, GRQ_E_DATA, "%s: there is no answer", grq_json_where(node));
    if (st == GRQ_OK && own_ids) st = read_id(node, d->n, id, err);
    grq_suite_item *const item = st == GRQ_OK ? suite_add_item(d, id, question, NULL) : NULL;
    if (st == GRQ_OK && !item) st = suite_no_memory(grq_json_where(node), err);
    free(question);
    return st == GRQ_OK ? add_answers(item, node, answers, err) : st;
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
