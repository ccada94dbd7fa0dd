#include "gaterq/predictions.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gaterq/file.h"
#include "qa/predictions_internal.h"

static void free_prediction(grq_prediction *p)
{
    free(p->id);
    free(p->suite);
    free(p->prompt_sha256);
    free(p->output);
    free(p->loglikelihoods);
}

/* ---- lines ---- */

typedef struct {
    grq_predictions *all;
    const char *file;
    size_t room, first; /* of all->items; the first item of this file */
    bool harness;
} line_reader;

static grq_status read_object(line_reader *r, grq_json_node *root, grq_prediction *out, grq_error *err)
{
    if (grq_json_kind_of(root) != GRQ_JSON_OBJECT)
        return grq_fail(err, GRQ_E_DATA, "%s: not an object", grq_json_where(root));
    if (r->all->n == r->first) r->harness = grq_is_harness_sample(root);
    if (r->harness) {
        grq_status st = grq_read_harness_sample(r->file, root, out, err);
        if (st == GRQ_OK) st = grq_check_prediction_settings(root, "filter", &r->all->settings, err);
        return st;
    }
    grq_status st = grq_read_own_prediction(root, out, err);
    if (st == GRQ_OK) st = grq_check_prediction_run(root, &r->all->run, err);
    if (st == GRQ_OK) st = grq_check_prediction_settings(root, "settings", &r->all->settings, err);
    return st;
}

static grq_status read_line(line_reader *r, size_t line, const char *text, size_t n, grq_prediction *out,
                            grq_error *err)
{
    grq_json *document = NULL;
    char name[4200];
    snprintf(name, sizeof name, "%.4000s: line %zu", r->file, line);
    *out = (grq_prediction){ .correct = -1, .line = line, .file = r->file };
    if (n > GRQ_MAX_PREDICTION_LINE)
        return grq_fail(err, GRQ_E_DATA, "%s has %zu bytes; at most %d are read", name, n, GRQ_MAX_PREDICTION_LINE);
    grq_status st = grq_json_parse(name, text, n, &document, err);
    if (st != GRQ_OK) return st;
    st = read_object(r, grq_json_root(document), out, err);
    grq_json_close(document);
    if (st != GRQ_OK) {
        free_prediction(out);
        if (st == GRQ_E_USAGE) st = grq_fail(err, GRQ_E_DATA, "%s", err ? err->message : "");
    }
    return st;
}

static bool is_blank(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r')) i++;
    return i == n;
}

static grq_status read_lines(line_reader *r, const char *text, size_t n_bytes, grq_error *err)
{
    grq_predictions *const p = r->all;
    size_t line = 0;
    r->first = p->n;
    for (size_t at = 0; at < n_bytes;) {
        const char *const newline = memchr(text + at, '\n', n_bytes - at);
        const size_t length = newline ? (size_t)(newline - (text + at)) : n_bytes - at;
        line++;
        if (!is_blank(text + at, length)) {
            if (p->n == r->room) {
                r->room = r->room ? 2 * r->room : 1024;
                grq_prediction *const larger = realloc(p->items, r->room * sizeof *larger);
                if (!larger) return grq_no_memory_for_predictions(r->file, err);
                p->items = larger;
            }
            const grq_status st = read_line(r, line, text + at, length, &p->items[p->n], err);
            if (st != GRQ_OK) return st;
            p->n++;
        }
        at += length + 1;
    }
    return GRQ_OK;
}

/* ---- all of them ---- */

static int by_id(const void *a, const void *b)
{
    const grq_prediction *const x = a, *const y = b;
    const int order = strcmp(x->id, y->id), files = strcmp(x->file, y->file);
    return order ? order : files ? files : (x->line > y->line) - (x->line < y->line);
}

static grq_status check_repeats(const grq_predictions *p, grq_error *err)
{
    char list[600] = "";
    size_t n = 0;
    for (size_t i = 1; i < p->n; i++) {
        const grq_prediction *const x = &p->items[i - 1], *const y = &p->items[i];
        if (strcmp(x->id, y->id) != 0) continue;
        const size_t used = strlen(list);
        if (n++ >= 10) continue;
        if (x->file == y->file)
            snprintf(list + used, sizeof list - used, "%s%.24s (lines %zu and %zu)", used ? ", " : "", x->id, x->line,
                     y->line);
        else snprintf(list + used, sizeof list - used, "%s%.24s (in two files)", used ? ", " : "", x->id);
    }
    return n ? grq_fail(err, GRQ_E_DATA, "%s: %zu repeated ids: %s", p->path, n, list) : GRQ_OK;
}

static grq_status finish(grq_predictions *p, grq_error *err)
{
    if (p->n == 0) return grq_fail(err, GRQ_E_DATA, "%s: there is no prediction", p->path);
    qsort(p->items, p->n, sizeof *p->items, by_id);
    return check_repeats(p, err);
}

static int is_lines_file(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);
    return entry->d_name[0] != '.' && n > 6 && !strcmp(entry->d_name + n - 6, ".jsonl");
}

static grq_status list_files(grq_predictions *p, grq_error *err)
{
    struct stat info;
    struct dirent **entries = NULL;
    if (stat(p->path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        p->files = calloc(1, sizeof *p->files);
        if (p->files) p->files[0] = strdup(p->path);
        p->n_files = p->files && p->files[0];
        return p->n_files ? GRQ_OK : grq_no_memory_for_predictions(p->path, err);
    }
    const int n = scandir(p->path, &entries, is_lines_file, alphasort);
    if (n < 0) return grq_fail(err, GRQ_E_IO, "%s: %s", p->path, strerror(errno));
    p->files = calloc((size_t)n + 1, sizeof *p->files);
    for (int i = 0; i < n; i++) {
        if (p->files && (p->files[p->n_files] = grq_path_join(p->path, entries[i]->d_name))) p->n_files++;
        free(entries[i]);
    }
    free(entries);
    if (!p->files || p->n_files != (size_t)n) return grq_no_memory_for_predictions(p->path, err);
    return n ? GRQ_OK : grq_fail(err, GRQ_E_DATA, "%s: the folder holds no *.jsonl", p->path);
}

grq_status grq_predictions_open(const char *path, grq_predictions *out, grq_error *err)
{
    line_reader r = { .all = out };
    *out = (grq_predictions){ .path = strdup(path) };
    grq_status st = out->path ? list_files(out, err) : grq_no_memory_for_predictions(path, err);
    for (size_t i = 0; st == GRQ_OK && i < out->n_files; i++) {
        char *text = NULL;
        size_t n_bytes = 0;
        r.file = out->files[i];
        st = grq_file_read(r.file, 0, &text, &n_bytes, err);
        if (st == GRQ_OK) st = read_lines(&r, text, n_bytes, err);
        free(text);
    }
    if (st == GRQ_OK) st = finish(out, err);
    if (st != GRQ_OK) grq_predictions_close(out);
    return st;
}

grq_status grq_predictions_parse(const char *name, const char *text, size_t n_bytes, grq_predictions *out,
                                 grq_error *err)
{
    *out = (grq_predictions){ .path = strdup(name) };
    line_reader r = { .all = out, .file = out->path };
    grq_status st = out->path ? read_lines(&r, text, n_bytes, err) : grq_no_memory_for_predictions(name, err);
    if (st == GRQ_OK) st = finish(out, err);
    if (st != GRQ_OK) grq_predictions_close(out);
    return st;
}

void grq_predictions_close(grq_predictions *p)
{
    for (size_t i = 0; i < p->n; i++) free_prediction(&p->items[i]);
    for (size_t i = 0; i < p->n_files; i++) free(p->files[i]);
    free(p->files);
    free(p->items);
    free(p->run);
    free(p->settings);
    free(p->path);
    *p = (grq_predictions){ 0 };
}

const grq_prediction *grq_predictions_find(const grq_predictions *p, const char *id)
{
    size_t low = 0, high = p->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(p->items[middle].id, id);
        if (order == 0) return &p->items[middle];
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}
