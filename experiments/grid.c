#include "grid.h"

#include <string.h>

#include "tool.h"

/* ---- lists ---- */

/* Names become folders and keys, so they are kept plain. */
static grq_status plain_name(grq_json_node *node, const char *name, grq_error *err)
{
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");
    if (length && !name[length] && length <= 40) return GRQ_OK;
    return grq_fail(err, GRQ_E_USAGE, "%s: name \"%s\" may hold a-z, 0-9, - and _ only, at most 40 of them",
                    grq_json_where(node), name);
}

static grq_status open_list(grq_json_node *object, const char *key, grq_json_node **list, size_t *n, grq_error *err)
{
    grq_status st = grq_json_array(object, key, list, err);
    if (st != GRQ_OK) return st;
    *n = grq_json_count(*list);
    if (*n >= 1 && *n <= GRID_MOST) return GRQ_OK;
    return grq_fail(err, GRQ_E_USAGE, "%s: 1 to %d entries, not %zu", grq_json_where(*list), GRID_MOST, *n);
}

static grq_status read_words(grq_json_node *object, const char *key, const char **words, size_t *n, grq_error *err)
{
    grq_json_node *list;
    grq_status st = open_list(object, key, &list, n, err);
    for (size_t i = 0; st == GRQ_OK && i < *n; i++) {
        st = grq_json_as_string(grq_json_at(list, i), &words[i], err);
        if (st == GRQ_OK) st = plain_name(list, words[i], err);
        for (size_t k = 0; st == GRQ_OK && k < i; k++)
            if (!strcmp(words[i], words[k]))
                st = grq_fail(err, GRQ_E_USAGE, "%s: \"%s\" is listed twice", grq_json_where(list), words[i]);
    }
    return st;
}

static grq_status read_names(grq_json_node *node, const char **name, const char **title, grq_error *err)
{
    grq_status st = grq_json_string(node, "name", name, err);
    if (st == GRQ_OK) st = plain_name(node, *name, err);
    return st == GRQ_OK ? grq_json_string(node, "title", title, err) : st;
}

/* ---- the parts of a grid ---- */

static grq_status read_row_dim(grq_json_node *node, uint32_t *row_dim, grq_error *err)
{
    uint64_t value;
    const grq_status st = grq_json_u64(node, "row_dim", 1, 65536, &value, err);
    *row_dim = (uint32_t)value;
    return st;
}

/* {"name", "title", "row_dim", "gate_cost", "why"}, or {"name", "title", "row_dim", "not_run"} */
static grq_status read_miniature(grq_json_node *node, grid_model *m, grq_error *err)
{
    grq_status st = read_names(node, &m->name, &m->title, err);
    if (st == GRQ_OK) st = read_row_dim(node, &m->row_dim, err);
    if (st == GRQ_OK && grq_json_find(node, "not_run")) return grq_json_string(node, "not_run", &m->not_run, err);
    if (st == GRQ_OK) st = grq_json_f64(node, "gate_cost", 0, 1000, &m->gate_cost, err);
    return st == GRQ_OK ? grq_json_string(node, "why", &m->why, err) : st;
}

static grq_status read_model(grq_json_node *node, bool miniature, grid_model *m, grq_error *err)
{
    grq_json_node *small;
    grid_model stand_in = { 0 };
    grq_status st = read_names(node, &m->name, &m->title, err);
    if (st == GRQ_OK) st = read_row_dim(node, &m->row_dim, err);
    if (st == GRQ_OK) st = grq_json_object(node, "miniature", &small, err);
    if (st == GRQ_OK) st = read_miniature(small, &stand_in, err);
    if (st == GRQ_OK) st = grq_json_finish(small, err);
    if (st == GRQ_OK && miniature) *m = stand_in;
    return st == GRQ_OK ? grq_json_finish(node, err) : st;
}

static grq_status read_encoder(grq_json_node *node, bool miniature, grid_encoder *e, grq_error *err)
{
    (void)miniature;
    grq_status st = read_names(node, &e->name, &e->title, err);
    if (st == GRQ_OK) st = grq_json_string(node, "miniature", &e->miniature, err);
    return st == GRQ_OK ? grq_json_finish(node, err) : st;
}

static grq_status read_budget(grq_json_node *node, bool miniature, grid_budget *b, grq_error *err)
{
    (void)miniature;
    grq_status st = read_names(node, &b->name, &b->title, err);
    if (st == GRQ_OK) st = grq_json_string(node, "fractions", &b->fractions, err);
    if (st == GRQ_OK) st = grq_budget_parse(b->fractions, &b->budget, err);
    return st == GRQ_OK ? grq_json_finish(node, err) : st;
}

static grq_status read_suite(grq_json_node *node, bool miniature, grid_suite *s, grq_error *err)
{
    const char *not_run = NULL, *title = NULL;
    grq_status st = read_names(node, &s->name, &s->title, err);
    if (st == GRQ_OK) st = grq_json_u64(node, "items", 1, 1000000000, &s->n_items, err);
    if (st == GRQ_OK && grq_json_find(node, "miniature_not_run"))
        st = grq_json_string(node, "miniature_not_run", &not_run, err);
    if (st == GRQ_OK && grq_json_find(node, "miniature_title"))
        st = grq_json_string(node, "miniature_title", &title, err);
    if (miniature && title) s->title = title;
    s->not_run = miniature ? not_run : NULL;
    return st == GRQ_OK ? grq_json_finish(node, err) : st;
}

bool grid_is_coded(const char *reading)
{
    return !strncmp(reading, "depth", 5);
}

static grq_status check_orderings(grq_json_node *node, const grid *g, grq_error *err)
{
    grq_ordering unused;
    grq_status st = GRQ_OK;
    for (size_t i = 0; st == GRQ_OK && i < g->n_orderings; i++) st = grq_ordering_find(g->orderings[i], &unused, err);
    for (size_t i = 0; st == GRQ_OK && i < g->n_readings; i++) {
        const char *r = g->readings[i];
        const bool depth = grid_is_coded(r) && r[5] >= '1' && r[5] <= '3' && !r[6];
        if (!depth && strcmp(r, "full") && strcmp(r, "zero"))
            st = grq_fail(err, GRQ_E_USAGE, "%s: reading \"%s\" is not full, zero or depth1 to depth3",
                          grq_json_where(node), r);
    }
    return st;
}

/* A list of named objects, each read by `read`. */
#define READ_LIST(key, count, array, read)                                                                             \
    do {                                                                                                               \
        if (st == GRQ_OK) st = open_list(node, key, &list, &out->count, err);                                          \
        for (size_t i = 0; st == GRQ_OK && i < out->count; i++) {                                                      \
            st = read(grq_json_at(list, i), miniature, &out->array[i], err);                                           \
            for (size_t k = 0; st == GRQ_OK && k < i; k++)                                                             \
                if (!strcmp(out->array[i].name, out->array[k].name))                                                   \
                    st = grq_fail(err, GRQ_E_USAGE, "%s: \"%s\" is listed twice", grq_json_where(list),                \
                                  out->array[i].name);                                                                 \
        }                                                                                                              \
    } while (0)

grq_status grid_read(grq_json_node *root, bool miniature, grid *out, grq_error *err)
{
    grq_json_node *node, *list;
    *out = (grid){ .miniature = miniature };
    grq_status st = grq_json_object(root, "grid", &node, err);
    READ_LIST("models", n_models, models, read_model);
    READ_LIST("encoders", n_encoders, encoders, read_encoder);
    READ_LIST("budgets", n_budgets, budgets, read_budget);
    READ_LIST("suites", n_suites, suites, read_suite);
    if (st == GRQ_OK) st = read_words(node, "orderings", out->orderings, &out->n_orderings, err);
    if (st == GRQ_OK) st = read_words(node, "readings", out->readings, &out->n_readings, err);
    if (st == GRQ_OK) st = check_orderings(node, out, err);
    return st == GRQ_OK ? grq_json_finish(node, err) : st;
}

grq_status grid_open(const char *path, bool miniature, grid *out, grq_error *err)
{
    grq_json *document = NULL;
    *out = (grid){ 0 };
    grq_status st = grq_json_open(path, &document, err);
    if (st == GRQ_OK) st = grid_read(grq_json_root(document), miniature, out, err);
    out->document = document;
    if (st != GRQ_OK) grid_close(out);
    return grq_config_status(st, err);
}

void grid_close(grid *g)
{
    grq_json_close(g->document);
    *g = (grid){ 0 };
}

/* ---- the family ---- */

grq_status grid_family_read(grq_json_node *root, grid_family *out, grq_error *err)
{
    grq_json_node *family;
    const char *id;
    *out = (grid_family){ 0 };
    grq_status st = grq_json_string(root, "id", &id, err);
    if (st == GRQ_OK) st = grq_json_string(root, "title", &out->title, err);
    if (st == GRQ_OK) st = grq_json_string(root, "about", &out->about, err);
    if (st == GRQ_OK) st = grq_json_string(root, "table", &out->grid_path, err);
    if (st == GRQ_OK) st = grq_json_u64(root, "seed", 0, UINT64_MAX / 2, &out->seed, err);
    if (st == GRQ_OK) st = grq_json_u64(root, "bootstrap", 0, 1000000, &out->n_resamples, err);
    if (st == GRQ_OK) st = grq_json_object(root, "family", &family, err);
    if (st == GRQ_OK) st = grq_json_string(family, "of", &out->of, err);
    if (st == GRQ_OK) st = read_words(family, "against", out->against, &out->n_against, err);
    if (st == GRQ_OK) st = grq_json_string(family, "criterion", &out->criterion, err);
    if (st == GRQ_OK) st = grq_json_f64(family, "alpha", 1e-9, 0.5, &out->alpha, err);
    if (st == GRQ_OK) st = grq_json_finish(family, err);
    return st == GRQ_OK ? grq_json_finish(root, err) : st;
}

grq_status grid_family_open(const char *path, grid_family *out, grq_error *err)
{
    grq_json *document = NULL;
    *out = (grid_family){ 0 };
    grq_status st = grq_json_open(path, &document, err);
    if (st == GRQ_OK) st = grid_family_read(grq_json_root(document), out, err);
    out->document = document;
    if (st != GRQ_OK) grid_family_close(out);
    return grq_config_status(st, err);
}

void grid_family_close(grid_family *f)
{
    grq_json_close(f->document);
    *f = (grid_family){ 0 };
}
