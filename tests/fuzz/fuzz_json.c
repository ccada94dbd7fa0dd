/* The JSON reader: whatever is accepted can be walked with every getter, and reads back the same once it is written. */
#include "gaterq/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_check.h"
#include "fuzz.h"

static void checked(grq_status st, const grq_error *err)
{
    if (st != GRQ_OK) fuzz_refused(st, err);
}

static void get_values(grq_json_node *node)
{
    const char *text;
    uint64_t u;
    int64_t i;
    double f;
    grq_error err;
    const grq_status st = grq_json_as_string(node, &text, &err);
    fuzz_require((st == GRQ_OK) == (grq_json_kind_of(node) == GRQ_JSON_STRING), "strings only are strings");
    checked(st, &err);
    if (st == GRQ_OK) fuzz_touch(text, strlen(text) + 1);
    checked(grq_json_as_u64(node, 0, UINT64_MAX, &u, &err), &err);
    checked(grq_json_as_i64(node, INT64_MIN, INT64_MAX, &i, &err), &err);
    if (grq_json_as_u64(node, 3, 10, &u, &err) == GRQ_OK) fuzz_require(u >= 3 && u <= 10, "outside its range");
    if (grq_json_as_i64(node, -3, 10, &i, &err) == GRQ_OK) fuzz_require(i >= -3 && i <= 10, "outside its range");
    if (grq_json_as_f64(node, -HUGE_VAL, HUGE_VAL, &f, &err) == GRQ_OK) fuzz_require(isfinite(f), "not finite");
    if (grq_json_as_f64(node, -1, 1, &f, &err) == GRQ_OK) fuzz_require(f >= -1 && f <= 1, "outside its range");
}

static void get_member(grq_json_node *object, const char *key, const grq_json_node *wanted)
{
    grq_json_node *node;
    const char *text;
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    grq_error err;
    fuzz_require(grq_json_find(object, key) == wanted, "a member is not found by its key");
    checked(grq_json_object(object, key, &node, &err), &err);
    checked(grq_json_array(object, key, &node, &err), &err);
    checked(grq_json_string(object, key, &text, &err), &err);
    checked(grq_json_u64(object, key, 0, UINT64_MAX, &u, &err), &err);
    checked(grq_json_i64(object, key, INT64_MIN, INT64_MAX, &i, &err), &err);
    checked(grq_json_f64(object, key, -1e300, 1e300, &f, &err), &err);
    checked(grq_json_bool(object, key, &b, &err), &err);
}

static void walk(grq_json_node *node, int depth)
{
    grq_error err;
    fuzz_require(depth <= GRQ_JSON_MAX_DEPTH, "nested deeper than is allowed");
    fuzz_touch(grq_json_where(node), strlen(grq_json_where(node)) + 1);
    get_values(node);
    const bool is_object = grq_json_kind_of(node) == GRQ_JSON_OBJECT;
    const size_t n = grq_json_count(node);
    if (is_object && n > 0) fuzz_refused(grq_json_finish(node, &err), &err); /* nobody has asked yet */
    for (size_t i = 0; i < n; i++) {
        grq_json_node *const child = grq_json_at(node, i);
        if (is_object) get_member(node, grq_json_key_at(node, i), child);
        walk(child, depth + 1);
    }
    fuzz_require(!grq_json_at(node, n), "an element behind the last");
    if (!is_object) return;
    if (!grq_json_find(node, "absent")) get_member(node, "absent", NULL);
    fuzz_require(grq_json_finish(node, &err) == GRQ_OK, "a key that was asked for is unknown");
}

/* Booleans outside objects have no getter: they are left out. */
static void write(grq_json_writer *w, grq_json_node *parent, const char *key, grq_json_node *node)
{
    const char *text;
    double f;
    bool b;
    switch (grq_json_kind_of(node)) {
    case GRQ_JSON_NULL: grq_json_put_null(w, key); break;
    case GRQ_JSON_BOOL:
        if (key && grq_json_bool(parent, key, &b, NULL) == GRQ_OK) grq_json_put_bool(w, key, b);
        else grq_json_put_null(w, key);
        break;
    case GRQ_JSON_NUMBER:
        fuzz_require(grq_json_as_f64(node, -HUGE_VAL, HUGE_VAL, &f, NULL) == GRQ_OK, "a number that is none");
        grq_json_put_f64(w, key, f);
        break;
    case GRQ_JSON_STRING:
        grq_json_as_string(node, &text, NULL);
        grq_json_put_string(w, key, text);
        break;
    default: {
        const bool is_object = grq_json_kind_of(node) == GRQ_JSON_OBJECT;
        if (is_object) grq_json_begin_object(w, key);
        else grq_json_begin_array(w, key);
        for (size_t i = 0; i < grq_json_count(node); i++)
            write(w, node, is_object ? grq_json_key_at(node, i) : NULL, grq_json_at(node, i));
        if (is_object) grq_json_end_object(w);
        else grq_json_end_array(w);
    }
    }
}

static bool same(grq_json_node *a, grq_json_node *b)
{
    const grq_json_kind kind = grq_json_kind_of(a);
    if (kind == GRQ_JSON_BOOL) return true;
    if (kind != grq_json_kind_of(b) || grq_json_count(a) != grq_json_count(b)) return false;
    if (kind == GRQ_JSON_STRING) {
        const char *x, *y;
        grq_json_as_string(a, &x, NULL);
        grq_json_as_string(b, &y, NULL);
        return strcmp(x, y) == 0;
    }
    if (kind == GRQ_JSON_NUMBER) {
        double x, y;
        grq_json_as_f64(a, -HUGE_VAL, HUGE_VAL, &x, NULL);
        grq_json_as_f64(b, -HUGE_VAL, HUGE_VAL, &y, NULL);
        return memcmp(&x, &y, sizeof x) == 0;
    }
    for (size_t i = 0; i < grq_json_count(a); i++) {
        if (kind == GRQ_JSON_OBJECT && strcmp(grq_json_key_at(a, i), grq_json_key_at(b, i)) != 0) return false;
        if (!same(grq_json_at(a, i), grq_json_at(b, i))) return false;
    }
    return true;
}

static void round_trip(grq_json *document, bool compact)
{
    grq_json_writer *const w = grq_json_writer_new();
    fuzz_require(w != NULL, "no memory for a writer");
    const char *text;
    grq_json *again;
    grq_error err;
    write(w, NULL, NULL, grq_json_root(document));
    if (grq_json_writer_text(w, compact, &text, &err) != GRQ_OK) { /* the writer nests less deeply than the reader */
        fuzz_require(strstr(err.message, "nested more than") != NULL, err.message);
        grq_json_writer_free(w);
        return;
    }
    fuzz_require(grq_json_parse("again", text, strlen(text), &again, &err) == GRQ_OK, err.message);
    fuzz_require(same(grq_json_root(document), grq_json_root(again)), "what is written reads back as something else");
    grq_json_close(again);
    grq_json_writer_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    grq_json *document;
    grq_error err;
    const grq_status st = grq_json_parse("fuzz.json", (const char *)data, size, &document, &err);
    if (st != GRQ_OK) {
        fuzz_refused(st, &err);
        fuzz_require(!document, "a refused text is handed out");
        return 0;
    }
    fuzz_accepted = 1;
    walk(grq_json_root(document), 0);
    round_trip(document, false);
    round_trip(document, true);
    grq_json_close(document);
    return 0;
}
