#include "results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"

enum { MAX_FILES = 64 };

struct results {
    char *folder;
    size_t n_files;
    char *names[MAX_FILES];
    grq_json *documents[MAX_FILES];
};

grq_status results_open(const char *folder, results **out, grq_error *err)
{
    *out = calloc(1, sizeof **out);
    if (*out) (*out)->folder = strdup(folder);
    if (*out && (*out)->folder) return GRQ_OK;
    free(*out);
    *out = NULL;
    return grq_fail(err, GRQ_E_NOMEM, "no memory for the results of %s", folder);
}

void results_close(results *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n_files; i++) {
        free(r->names[i]);
        grq_json_close(r->documents[i]);
    }
    free(r->folder);
    free(r);
}

static grq_status document(results *r, const char *name, size_t length, grq_json **out, grq_error *err)
{
    for (size_t i = 0; i < r->n_files; i++)
        if (strlen(r->names[i]) == length && !memcmp(r->names[i], name, length)) return *out = r->documents[i], GRQ_OK;
    if (r->n_files == MAX_FILES) return grq_fail(err, GRQ_E_USAGE, "more than %d result files are named", MAX_FILES);
    char *own = strndup(name, length), *path = own ? grq_path_join(r->folder, own) : NULL;
    grq_status st = path ? grq_json_open(path, out, err) : grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
    free(path);
    if (st != GRQ_OK) {
        free(own);
        return st;
    }
    r->names[r->n_files] = own;
    r->documents[r->n_files++] = *out;
    return GRQ_OK;
}

typedef struct {
    grq_json_node **nodes; /* (room) */
    size_t n, room;
    const char *path; /* whole, for messages */
} matches;

/* Follows `rest` (what is left of the path) from `node`, collecting every node it ends at. */
static grq_status follow(grq_json_node *node, const char *rest, matches *m, grq_error *err)
{
    if (!*rest) {
        if (m->n == m->room) return grq_fail(err, GRQ_E_DATA, "%s: names more than %zu values", m->path, m->room);
        m->nodes[m->n++] = node;
        return GRQ_OK;
    }
    if (*rest == '[') {
        const char *end = strchr(rest, ']');
        if (!end) return grq_fail(err, GRQ_E_USAGE, "%s: a [ has no ]", m->path);
        const char *next = end[1] == '.' ? end + 2 : end + 1;
        if (rest[1] == '*') {
            grq_status st = GRQ_OK;
            for (size_t i = 0; st == GRQ_OK && i < grq_json_count(node); i++)
                st = follow(grq_json_at(node, i), next, m, err);
            return st;
        }
        grq_json_node *element = grq_json_at(node, strtoul(rest + 1, NULL, 10));
        if (!element)
            return grq_fail(err, GRQ_E_DATA, "%s: there is no element %.*s", m->path, (int)(end + 1 - rest), rest);
        return follow(element, next, m, err);
    }
    const size_t length = strcspn(rest, ".[");
    char key[128];
    if (length >= sizeof key)
        return grq_fail(err, GRQ_E_USAGE, "%s: a key is longer than %zu bytes", m->path, sizeof key - 1);
    memcpy(key, rest, length);
    key[length] = '\0';
    grq_json_node *child = grq_json_kind_of(node) == GRQ_JSON_OBJECT ? grq_json_find(node, key) : NULL;
    if (!child) return grq_fail(err, GRQ_E_DATA, "%s: there is no \"%s\"", m->path, key);
    return follow(child, rest[length] == '.' ? rest + length + 1 : rest + length, m, err);
}

static grq_status resolve(results *r, const char *path, matches *m, grq_error *err)
{
    const char *hash = strchr(path, '#');
    if (!hash) return grq_fail(err, GRQ_E_USAGE, "\"%s\" is no path: FILE#key.key[index]", path);
    grq_json *file;
    m->path = path;
    const grq_status st = document(r, path, (size_t)(hash - path), &file, err);
    return st == GRQ_OK ? follow(grq_json_root(file), hash + 1, m, err) : st;
}

grq_status results_numbers(results *r, const char *path, double values[RESULTS_MAX], size_t *n, grq_error *err)
{
    grq_json_node *nodes[RESULTS_MAX];
    matches m = { .nodes = nodes, .room = RESULTS_MAX };
    grq_status st = resolve(r, path, &m, err);
    for (size_t i = 0; st == GRQ_OK && i < m.n; i++) {
        if (grq_json_kind_of(nodes[i]) == GRQ_JSON_NULL) values[i] = NAN;
        else st = grq_json_as_f64(nodes[i], -INFINITY, INFINITY, &values[i], err);
    }
    *n = m.n;
    if (st == GRQ_OK && !m.n) st = grq_fail(err, GRQ_E_DATA, "%s: names nothing", path);
    return st;
}

grq_status results_number(results *r, const char *path, double *value, grq_error *err)
{
    double values[RESULTS_MAX];
    size_t n;
    const grq_status st = results_numbers(r, path, values, &n, err);
    if (st != GRQ_OK) return st;
    if (n != 1) return grq_fail(err, GRQ_E_DATA, "%s: names %zu values, not one", path, n);
    *value = values[0];
    return GRQ_OK;
}

grq_status results_node(results *r, const char *path, grq_json_node **out, grq_error *err)
{
    matches m = { .nodes = out, .room = 1 };
    const grq_status st = resolve(r, path, &m, err);
    if (st == GRQ_OK && m.n != 1) return grq_fail(err, GRQ_E_DATA, "%s: names nothing", path);
    return st;
}
