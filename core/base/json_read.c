/* The only file that knows cJSON. It builds the tree; on top of it lies an array of nodes, so that elements are found
 * in O(1), members in O(log n), and every node knows its path. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_check.h"
#include "gaterq/file.h"
#include "gaterq/json.h"

/* A key that was asked for and is absent: grq_json_finish lists it among the known ones. */
typedef struct asked_key {
    struct asked_key *next;
    char name[];
} asked_key;

struct grq_json_node {
    const cJSON *item;
    grq_json *document;
    grq_json_node *parent;
    grq_json_node *children; /* n_children of them, in file order, side by side */
    grq_json_node **by_key;  /* objects only: the children sorted by key */
    size_t n_children;
    asked_key *asked;
    char *where; /* made when first asked for */
    bool known;  /* a getter has touched this member */
};

struct grq_json {
    char *name;
    cJSON *tree;
    grq_json_node *nodes; /* breadth first, the root first */
    grq_json_node **sorted;
    size_t n_nodes;
};

enum {
    MAX_FILE_BYTES = 1 << 30,
    MAX_ASKED_KEYS = 64 /* remembered per object; only a message depends on it */
};

static const double exact_integers = 9007199254740992.0; /* 2^53: from here on a double may stand for its neighbour */

/* ---- opening --------------------------------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
    const grq_json_node *const *const x = a, *const *const y = b;
    return strcmp((*x)->item->string, (*y)->item->string);
}

static grq_status sort_members(grq_json_node *object, grq_json_node **sorted, grq_error *err)
{
    object->by_key = sorted;
    for (size_t i = 0; i < object->n_children; i++) sorted[i] = &object->children[i];
    qsort(sorted, object->n_children, sizeof *sorted, compare_keys);
    for (size_t i = 1; i < object->n_children; i++)
        if (compare_keys(&sorted[i - 1], &sorted[i]) == 0)
            return grq_fail(err, GRQ_E_DATA, "%s: appears twice", grq_json_where(sorted[i]));
    return GRQ_OK;
}

/* Lays the nodes out breadth first, so that the children of each are neighbours. */
static grq_status build_nodes(grq_json *d, grq_error *err)
{
    d->nodes[0] = (grq_json_node){ .item = d->tree, .document = d };
    size_t n = 1;
    for (size_t i = 0; i < n; i++) {
        grq_json_node *const node = &d->nodes[i];
        node->children = &d->nodes[n];
        for (const cJSON *child = node->item->child; child && n < d->n_nodes; child = child->next)
            d->nodes[n++] = (grq_json_node){ .item = child, .document = d, .parent = node };
        node->n_children = (size_t)(&d->nodes[n] - node->children);
        if (cJSON_IsNumber(node->item) && !isfinite(node->item->valuedouble))
            return grq_fail(err, GRQ_E_DATA, "%s: the number is too large for a double", grq_json_where(node));
        if (cJSON_IsObject(node->item)) {
            const grq_status st = sort_members(node, d->sorted + (node->children - d->nodes), err);
            if (st != GRQ_OK) return st;
        }
    }
    if (n != d->n_nodes) return grq_fail(err, GRQ_E_DATA, "%s: cJSON read another number of values", d->name);
    return GRQ_OK;
}

grq_status grq_json_parse(const char *name, const char *text, size_t n_bytes, grq_json **out, grq_error *err)
{
    *out = NULL;
    size_t n_values;
    grq_status st = grq_json_check(name, text, n_bytes, &n_values, err);
    if (st != GRQ_OK) return st;
    grq_json *d = calloc(1, sizeof *d);
    if (!d) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for the document", name);
    d->n_nodes = n_values;
    d->name = strdup(name);
    d->nodes = calloc(n_values, sizeof *d->nodes);
    d->sorted = calloc(n_values, sizeof(grq_json_node *));
    /* The text is valid, so the one thing cJSON can lack is memory. */
    d->tree = cJSON_ParseWithLength(text, n_bytes);
    if (!d->name || !d->nodes || !d->sorted || !d->tree)
        st = grq_fail(err, GRQ_E_NOMEM, "%s: no memory for %zu JSON values", name, n_values);
    if (st == GRQ_OK) st = build_nodes(d, err);
    if (st == GRQ_OK) *out = d;
    else grq_json_close(d);
    return st;
}

grq_status grq_json_open(const char *path, grq_json **out, grq_error *err)
{
    *out = NULL;
    char *text;
    size_t n_bytes;
    grq_status st = grq_file_read(path, MAX_FILE_BYTES, &text, &n_bytes, err);
    if (st != GRQ_OK) return st;
    st = n_bytes ? grq_json_parse(path, text, n_bytes, out, err)
                 : grq_fail(err, GRQ_E_DATA, "%s: empty, where JSON is expected", path);
    free(text);
    return st;
}

void grq_json_close(grq_json *d)
{
    if (!d) return;
    for (size_t i = 0; d->nodes && i < d->n_nodes; i++) {
        free(d->nodes[i].where);
        for (asked_key *key = d->nodes[i].asked, *next; key; key = next) {
            next = key->next;
            free(key);
        }
    }
    cJSON_Delete(d->tree);
    free(d->sorted);
    free(d->nodes);
    free(d->name);
    free(d);
}

/* ---- where and what -------------------------------------------------------------------------------------------- */

grq_json_node *grq_json_root(grq_json *document)
{
    return document->nodes;
}

grq_json_kind grq_json_kind_of(const grq_json_node *node)
{
    switch (node->item->type & 0xFF) {
    case cJSON_False:
    case cJSON_True: return GRQ_JSON_BOOL;
    case cJSON_Number: return GRQ_JSON_NUMBER;
    case cJSON_String: return GRQ_JSON_STRING;
    case cJSON_Array: return GRQ_JSON_ARRAY;
    case cJSON_Object: return GRQ_JSON_OBJECT;
    default: return GRQ_JSON_NULL;
    }
}

bool grq_json_is_true(const grq_json_node *node)
{
    return cJSON_IsTrue(node->item);
}

/* Writes the path below the root, outermost step first, into `to`; returns its length, as snprintf would. */
static size_t write_path(const grq_json_node *node, char *to, size_t room)
{
    const grq_json_node *const parent = node->parent;
    if (!parent) return 0;
    const size_t n = write_path(parent, to, room);
    char *const here = n < room ? to + n : NULL;
    const size_t left = n < room ? room - n : 0;
    const int more = grq_json_kind_of(parent) == GRQ_JSON_OBJECT
                         ? snprintf(here, left, "%s%s", n ? "." : "", node->item->string)
                         : snprintf(here, left, "[%zu]", (size_t)(node - parent->children));
    return n + (more > 0 ? (size_t)more : 0);
}

const char *grq_json_where(grq_json_node *node)
{
    const char *const name = node->document->name;
    if (!node->parent) return name;
    if (node->where) return node->where;
    const size_t n_path = write_path(node, NULL, 0), n_name = strlen(name), room = n_name + 2 + n_path + 1;
    char *const where = malloc(room);
    if (!where) return name; /* less precise, but a message still */
    memcpy(where, name, n_name);
    memcpy(where + n_name, ": ", 3);
    write_path(node, where + n_name + 2, n_path + 1);
    for (char *p = where; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F) *p = '?'; /* a key must not steer the terminal */
    return node->where = where;
}

static const char *kind_name(grq_json_kind kind)
{
    static const char *const names[] = { "null", "true or false", "a number", "a string", "an array", "an object" };
    return names[kind];
}

static grq_status wrong_kind(grq_json_node *node, const char *wanted, grq_error *err)
{
    return grq_fail(err, GRQ_E_DATA, "%s: must be %s, is %s", grq_json_where(node), wanted,
                    kind_name(grq_json_kind_of(node)));
}

/* ---- members --------------------------------------------------------------------------------------------------- */

static void remember_absent(grq_json_node *object, const char *key)
{
    unsigned n = 0;
    for (const asked_key *k = object->asked; k; k = k->next)
        if (++n == MAX_ASKED_KEYS || strcmp(k->name, key) == 0) return;
    const size_t n_bytes = strlen(key) + 1;
    asked_key *const k = malloc(sizeof *k + n_bytes);
    if (!k) return; /* only a message would have been longer */
    memcpy(k->name, key, n_bytes);
    k->next = object->asked;
    object->asked = k;
}

grq_json_node *grq_json_find(grq_json_node *object, const char *key)
{
    if (grq_json_kind_of(object) != GRQ_JSON_OBJECT) return NULL;
    size_t low = 0, high = object->n_children;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(object->by_key[middle]->item->string, key);
        if (order == 0) {
            object->by_key[middle]->known = true;
            return object->by_key[middle];
        }
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    remember_absent(object, key);
    return NULL;
}

static grq_status find_needed(grq_json_node *object, const char *key, grq_json_node **out, grq_error *err)
{
    *out = NULL;
    if (grq_json_kind_of(object) != GRQ_JSON_OBJECT) return wrong_kind(object, "an object", err);
    *out = grq_json_find(object, key);
    return *out ? GRQ_OK : grq_fail(err, GRQ_E_DATA, "%s: the key \"%s\" is missing", grq_json_where(object), key);
}

static grq_status find_container(grq_json_node *object, const char *key, grq_json_kind kind, grq_json_node **out,
                                 grq_error *err)
{
    grq_status st = find_needed(object, key, out, err);
    if (st == GRQ_OK && grq_json_kind_of(*out) != kind) {
        st = wrong_kind(*out, kind_name(kind), err);
        *out = NULL;
    }
    return st;
}

grq_status grq_json_object(grq_json_node *object, const char *key, grq_json_node **out, grq_error *err)
{
    return find_container(object, key, GRQ_JSON_OBJECT, out, err);
}

grq_status grq_json_array(grq_json_node *object, const char *key, grq_json_node **out, grq_error *err)
{
    return find_container(object, key, GRQ_JSON_ARRAY, out, err);
}

grq_status grq_json_string(grq_json_node *object, const char *key, const char **out, grq_error *err)
{
    grq_json_node *node;
    *out = NULL;
    const grq_status st = find_needed(object, key, &node, err);
    return st == GRQ_OK ? grq_json_as_string(node, out, err) : st;
}

grq_status grq_json_u64(grq_json_node *object, const char *key, uint64_t min, uint64_t max, uint64_t *out,
                        grq_error *err)
{
    grq_json_node *node;
    const grq_status st = find_needed(object, key, &node, err);
    return st == GRQ_OK ? grq_json_as_u64(node, min, max, out, err) : st;
}

grq_status grq_json_i64(grq_json_node *object, const char *key, int64_t min, int64_t max, int64_t *out, grq_error *err)
{
    grq_json_node *node;
    const grq_status st = find_needed(object, key, &node, err);
    return st == GRQ_OK ? grq_json_as_i64(node, min, max, out, err) : st;
}

grq_status grq_json_f64(grq_json_node *object, const char *key, double min, double max, double *out, grq_error *err)
{
    grq_json_node *node;
    const grq_status st = find_needed(object, key, &node, err);
    return st == GRQ_OK ? grq_json_as_f64(node, min, max, out, err) : st;
}

grq_status grq_json_bool(grq_json_node *object, const char *key, bool *out, grq_error *err)
{
    grq_json_node *node;
    const grq_status st = find_needed(object, key, &node, err);
    if (st != GRQ_OK) return st;
    if (grq_json_kind_of(node) != GRQ_JSON_BOOL) return wrong_kind(node, "true or false", err);
    *out = grq_json_is_true(node);
    return GRQ_OK;
}

static void list_key(char *list, size_t room, const char *key)
{
    const size_t n = strlen(list);
    snprintf(list + n, room - n, "%s%s", n ? ", " : "", key);
}

grq_status grq_json_finish(grq_json_node *object, grq_error *err)
{
    if (grq_json_kind_of(object) != GRQ_JSON_OBJECT) return wrong_kind(object, "an object", err);
    for (size_t i = 0; i < object->n_children; i++) {
        if (object->children[i].known) continue;
        char keys[GRQ_ERROR_BYTES] = "";
        for (size_t k = 0; k < object->n_children; k++)
            if (object->children[k].known) list_key(keys, sizeof keys, object->children[k].item->string);
        for (const asked_key *k = object->asked; k; k = k->next) list_key(keys, sizeof keys, k->name);
        return grq_fail(err, GRQ_E_DATA, "%s: unknown key; known here: %s", grq_json_where(&object->children[i]),
                        *keys ? keys : "none");
    }
    return GRQ_OK;
}

/* ---- elements and values --------------------------------------------------------------------------------------- */

size_t grq_json_count(const grq_json_node *node)
{
    return node->n_children;
}

grq_json_node *grq_json_at(grq_json_node *node, size_t index)
{
    return index < node->n_children ? &node->children[index] : NULL;
}

const char *grq_json_key_at(grq_json_node *object, size_t index)
{
    return index < object->n_children ? object->children[index].item->string : NULL;
}

grq_status grq_json_as_string(grq_json_node *node, const char **out, grq_error *err)
{
    *out = NULL;
    if (grq_json_kind_of(node) != GRQ_JSON_STRING) return wrong_kind(node, "a string", err);
    *out = node->item->valuestring;
    return GRQ_OK;
}

/* Sign and magnitude of a whole number, given as a number below 2^53 or as a decimal string. */
static grq_status whole_number(grq_json_node *node, bool *negative, uint64_t *magnitude, grq_error *err)
{
    if (grq_json_kind_of(node) == GRQ_JSON_NUMBER) {
        const double value = node->item->valuedouble;
        if (fabs(value) >= exact_integers)
            return grq_fail(err, GRQ_E_DATA, "%s: %.17g is 2^53 or more; write it as a decimal string (\"123\")",
                            grq_json_where(node), value);
        if (value != floor(value))
            return grq_fail(err, GRQ_E_DATA, "%s: must be a whole number, is %.17g", grq_json_where(node), value);
        *negative = value < 0;
        *magnitude = (uint64_t)fabs(value);
        return GRQ_OK;
    }
    if (grq_json_kind_of(node) != GRQ_JSON_STRING) return wrong_kind(node, "a whole number", err);
    const char *const text = node->item->valuestring;
    const char *digit = text;
    *negative = *digit == '-';
    digit += *negative;
    bool fits = *digit != '\0' && !(*digit == '0' && digit[1] != '\0');
    *magnitude = 0;
    for (; fits && *digit; digit++)
        fits = *digit >= '0' && *digit <= '9' && !__builtin_mul_overflow(*magnitude, 10u, magnitude) &&
               !__builtin_add_overflow(*magnitude, (uint64_t)(*digit - '0'), magnitude);
    if (!fits)
        return grq_fail(err, GRQ_E_DATA, "%s: must be a whole number of 64 bits, is \"%s\"", grq_json_where(node),
                        text);
    return GRQ_OK;
}

grq_status grq_json_as_u64(grq_json_node *node, uint64_t min, uint64_t max, uint64_t *out, grq_error *err)
{
    bool negative = false;
    uint64_t value = 0;
    const grq_status st = whole_number(node, &negative, &value, err);
    if (st != GRQ_OK) return st;
    negative = negative && value != 0;
    if (negative || value < min || value > max)
        return grq_fail(err, GRQ_E_DATA, "%s: must be from %" PRIu64 " to %" PRIu64 ", is %s%" PRIu64,
                        grq_json_where(node), min, max, negative ? "-" : "", value);
    *out = value;
    return GRQ_OK;
}

grq_status grq_json_as_i64(grq_json_node *node, int64_t min, int64_t max, int64_t *out, grq_error *err)
{
    bool negative = false;
    uint64_t magnitude = 0;
    const grq_status st = whole_number(node, &negative, &magnitude, err);
    if (st != GRQ_OK) return st;
    const uint64_t limit = (uint64_t)INT64_MAX + negative;
    const int64_t value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    if (magnitude > limit || value < min || value > max)
        return grq_fail(err, GRQ_E_DATA, "%s: must be from %" PRId64 " to %" PRId64 ", is %s%" PRIu64,
                        grq_json_where(node), min, max, negative ? "-" : "", magnitude);
    *out = value;
    return GRQ_OK;
}

grq_status grq_json_as_f64(grq_json_node *node, double min, double max, double *out, grq_error *err)
{
    if (grq_json_kind_of(node) != GRQ_JSON_NUMBER) return wrong_kind(node, "a number", err);
    const double value = node->item->valuedouble;
    if (!(value >= min && value <= max))
        return grq_fail(err, GRQ_E_DATA, "%s: must be from %g to %g, is %.17g", grq_json_where(node), min, max, value);
    *out = value;
    return GRQ_OK;
}
