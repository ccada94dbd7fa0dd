#include "predictions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"
#include "gaterq/json.h"

static grq_status no_memory(const char *path, grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its predictions", path);
}

static grq_status read_id(grq_json_node *object, char **out, grq_error *err)
{
    grq_json_node *node = grq_json_find(object, "id");
    if (!node) return grq_fail(err, GRQ_E_DATA, "%s: there is no \"id\"", grq_json_where(object));
    if (grq_json_kind_of(node) == GRQ_JSON_STRING) {
        const char *text;
        const grq_status st = grq_json_as_string(node, &text, err);
        if (st != GRQ_OK) return st;
        *out = strdup(text);
    } else {
        int64_t number;
        const grq_status st = grq_json_as_i64(node, INT64_MIN, INT64_MAX, &number, err);
        if (st != GRQ_OK) return st;
        if (asprintf(out, "%" PRId64, number) < 0) *out = NULL;
    }
    return *out ? GRQ_OK : no_memory(grq_json_where(object), err);
}

static grq_status read_optional_text(grq_json_node *object, const char *key, char **out, grq_error *err)
{
    const char *text;
    if (!grq_json_find(object, key)) return GRQ_OK;
    const grq_status st = grq_json_string(object, key, &text, err);
    if (st != GRQ_OK) return st;
    *out = strdup(text);
    return *out ? GRQ_OK : no_memory(grq_json_where(object), err);
}

static void free_prediction(prediction *p)
{
    free(p->id);
    free(p->suite);
    free(p->output);
}

static grq_status read_line(const char *path, size_t line, const char *text, size_t n, prediction *out, grq_error *err)
{
    grq_json *document = NULL;
    char name[4200];
    snprintf(name, sizeof name, "%.4000s: line %zu", path, line);
    *out = (prediction){ .correct = -1, .line = line };
    grq_status st = grq_json_parse(name, text, n, &document, err);
    if (st != GRQ_OK) return st;
    grq_json_node *root = grq_json_root(document);
    if (grq_json_kind_of(root) != GRQ_JSON_OBJECT) st = grq_fail(err, GRQ_E_DATA, "%s: not an object", name);
    if (st == GRQ_OK) st = read_id(root, &out->id, err);
    if (st == GRQ_OK) st = read_optional_text(root, "suite", &out->suite, err);
    if (st == GRQ_OK) st = read_optional_text(root, "output", &out->output, err);
    if (st == GRQ_OK && grq_json_find(root, "correct")) {
        bool correct = false;
        st = grq_json_bool(root, "correct", &correct, err);
        out->correct = correct;
    }
    grq_json_close(document);
    if (st != GRQ_OK) {
        free_prediction(out);
        if (st == GRQ_E_USAGE) st = grq_fail(err, GRQ_E_DATA, "%s", err ? err->message : "");
    }
    return st;
}

static int by_id(const void *a, const void *b)
{
    const prediction *x = a, *y = b;
    const int order = strcmp(x->id, y->id);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static grq_status check_repeats(const predictions *p, grq_error *err)
{
    char list[400] = "";
    size_t n = 0;
    for (size_t i = 1; i < p->n; i++) {
        if (strcmp(p->items[i].id, p->items[i - 1].id)) continue;
        const size_t used = strlen(list);
        if (n++ < 10)
            snprintf(list + used, sizeof list - used, "%s%.24s (lines %zu and %zu)", used ? ", " : "", p->items[i].id,
                     p->items[i - 1].line, p->items[i].line);
    }
    return n ? grq_fail(err, GRQ_E_DATA, "%s: %zu repeated ids: %s", p->path, n, list) : GRQ_OK;
}

static grq_status read_lines(predictions *p, const char *text, size_t n_bytes, grq_error *err)
{
    size_t room = 0, line = 0;
    for (size_t at = 0; at < n_bytes;) {
        const char *newline = memchr(text + at, '\n', n_bytes - at);
        const size_t length = newline ? (size_t)(newline - (text + at)) : n_bytes - at;
        line++;
        if (strspn(text + at, " \t\r") < length) {
            if (p->n == room) {
                room = room ? 2 * room : 1024;
                prediction *larger = realloc(p->items, room * sizeof *larger);
                if (!larger) return no_memory(p->path, err);
                p->items = larger;
            }
            const grq_status st = read_line(p->path, line, text + at, length, &p->items[p->n], err);
            if (st != GRQ_OK) return st;
            p->n++;
        }
        at += length + 1;
    }
    if (p->n == 0) return grq_fail(err, GRQ_E_DATA, "%s: there is no prediction", p->path);
    qsort(p->items, p->n, sizeof *p->items, by_id);
    return check_repeats(p, err);
}

grq_status predictions_open(const char *path, predictions *out, grq_error *err)
{
    char *text = NULL;
    size_t n_bytes = 0;
    *out = (predictions){ .path = strdup(path) };
    grq_status st = out->path ? grq_file_read(path, 0, &text, &n_bytes, err) : no_memory(path, err);
    if (st == GRQ_OK) st = read_lines(out, text, n_bytes, err);
    free(text);
    if (st != GRQ_OK) predictions_close(out);
    return st;
}

void predictions_close(predictions *p)
{
    for (size_t i = 0; i < p->n; i++) free_prediction(&p->items[i]);
    free(p->items);
    free(p->path);
    *p = (predictions){ 0 };
}

const prediction *predictions_find(const predictions *p, const char *id)
{
    const prediction key = { .id = (char *)id };
    size_t low = 0, high = p->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(p->items[middle].id, key.id);
        if (order == 0) return &p->items[middle];
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

void id_list(const char *const *ids, const bool *bad, size_t n, char text[512])
{
    size_t shown = 0, left = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (!bad[i]) continue;
        const size_t used = strlen(text);
        if (shown++ < 10) snprintf(text + used, 480 - used, "%s%.40s", used ? ", " : "", ids[i]);
        else left++;
    }
    const size_t used = strlen(text);
    if (left) snprintf(text + used, 512 - used, " and %zu more", left);
}
