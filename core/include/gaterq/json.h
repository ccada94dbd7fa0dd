/* gaterq/json.h - strict JSON in (cJSON underneath), plain JSON out.
 *
 * Strict: UTF-8, one value, no trailing text, no duplicate key, no NaN, and no key that nobody asked for. Every error
 * names the file, the path inside it ("train.batch") and the value.
 *
 * Reading: open a document, walk with grq_json_get_*; grq_json_finish(object) reports the first key that no getter
 * touched, so that a misspelt key is an error and not a silent default. */
#ifndef GATERQ_JSON_H
#define GATERQ_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/status.h"

typedef struct grq_json grq_json;           /* an opened document; owns every node */
typedef struct grq_json_node grq_json_node; /* a value inside; lives as long as its document */

grq_status grq_json_open(const char *path, grq_json **out, grq_error *err);
/* `name` stands for the file in messages. */
grq_status grq_json_parse(const char *name, const char *text, size_t n_bytes, grq_json **out, grq_error *err);
void grq_json_close(grq_json *document); /* takes NULL */
grq_json_node *grq_json_root(grq_json *document);

/* "file.json: train.batch": for messages of the caller. Lives as long as the document. */
const char *grq_json_where(grq_json_node *node);

typedef enum {
    GRQ_JSON_NULL,
    GRQ_JSON_BOOL,
    GRQ_JSON_NUMBER,
    GRQ_JSON_STRING,
    GRQ_JSON_ARRAY,
    GRQ_JSON_OBJECT
} grq_json_kind;
grq_json_kind grq_json_kind_of(const grq_json_node *node);
bool grq_json_is_true(const grq_json_node *node); /* the value of a GRQ_JSON_BOOL */

/* Members of an object. Each marks the key as known. `grq_json_find` returns NULL when absent; the others fail when the
 * key is absent, of another kind, not whole (integers), or outside [min, max]. Integers may be written as decimal
 * strings, and from 2^53 on they must be: a JSON number of that size may stand for its neighbour. */
grq_json_node *grq_json_find(grq_json_node *object, const char *key);
grq_status grq_json_object(grq_json_node *object, const char *key, grq_json_node **out, grq_error *err);
grq_status grq_json_array(grq_json_node *object, const char *key, grq_json_node **out, grq_error *err);
grq_status grq_json_string(grq_json_node *object, const char *key, const char **out, grq_error *err);
grq_status grq_json_u64(grq_json_node *object, const char *key, uint64_t min, uint64_t max, uint64_t *out,
                        grq_error *err);
grq_status grq_json_i64(grq_json_node *object, const char *key, int64_t min, int64_t max, int64_t *out, grq_error *err);
grq_status grq_json_f64(grq_json_node *object, const char *key, double min, double max, double *out, grq_error *err);
grq_status grq_json_bool(grq_json_node *object, const char *key, bool *out, grq_error *err);
/* Fails for the first key of `object` that no getter has touched, listing the keys that are known there. */
grq_status grq_json_finish(grq_json_node *object, grq_error *err);

/* Elements of an array (or of an object, in file order). */
size_t grq_json_count(const grq_json_node *node);
grq_json_node *grq_json_at(grq_json_node *node, size_t index);    /* NULL past the end */
const char *grq_json_key_at(grq_json_node *object, size_t index); /* borrowed; marks nothing */
/* The value of a node itself, for array elements. */
grq_status grq_json_as_string(grq_json_node *node, const char **out, grq_error *err);
grq_status grq_json_as_u64(grq_json_node *node, uint64_t min, uint64_t max, uint64_t *out, grq_error *err);
grq_status grq_json_as_i64(grq_json_node *node, int64_t min, int64_t max, int64_t *out, grq_error *err);
grq_status grq_json_as_f64(grq_json_node *node, double min, double max, double *out, grq_error *err);

/* Writing into a growing buffer. Calls nest; a misuse or lack of memory is remembered and reported by _text and _save.
 * Keys are written in call order. Doubles use the shortest decimal that reads back to the same bits; a NaN or infinity
 * is written as null. Integers of 2^53 and more are written as decimal strings. `key` is NULL inside arrays and at the
 * root. */
typedef struct grq_json_writer grq_json_writer;
grq_json_writer *grq_json_writer_new(void); /* NULL when out of memory */
void grq_json_writer_free(grq_json_writer *writer);
void grq_json_begin_object(grq_json_writer *writer, const char *key);
void grq_json_end_object(grq_json_writer *writer);
void grq_json_begin_array(grq_json_writer *writer, const char *key);
void grq_json_end_array(grq_json_writer *writer);
void grq_json_put_string(grq_json_writer *writer, const char *key,
                         const char *value); /* NULL: null; broken UTF-8: U+FFFD */
void grq_json_put_u64(grq_json_writer *writer, const char *key, uint64_t value);
void grq_json_put_i64(grq_json_writer *writer, const char *key, int64_t value);
void grq_json_put_f64(grq_json_writer *writer, const char *key, double value);
void grq_json_put_bool(grq_json_writer *writer, const char *key, bool value);
void grq_json_put_null(grq_json_writer *writer, const char *key);
/* The finished text (borrowed, valid until the writer is freed); indented by two spaces unless
 * `compact`, with arrays that hold no containers on one line. */
grq_status grq_json_writer_text(grq_json_writer *writer, bool compact, const char **text, grq_error *err);
/* Writes the indented text and a newline to `path`, complete or not at all. */
grq_status grq_json_writer_save(grq_json_writer *writer, const char *path, grq_error *err);

#endif
