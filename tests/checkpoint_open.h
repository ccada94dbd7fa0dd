/* tests/checkpoint_open.h - opening all of a small checkpoint's layer, and expecting that it is refused. */
#ifndef GATERQ_TESTS_CHECKPOINT_OPEN_H
#define GATERQ_TESTS_CHECKPOINT_OPEN_H

#include "checkpoint_kinds.h"

#include "gaterq/checkpoint.h"

static grq_error err;

typedef struct {
    grq_checkpoint *checkpoint;
    grq_table *table;
    grq_layer_weights *weights;
} opened;

static inline void close_all(opened *o)
{
    grq_layer_weights_free(o->weights);
    grq_table_free(o->table);
    grq_checkpoint_close(o->checkpoint);
    *o = (opened){ 0 };
}

static inline grq_status try_rule(const char *path, uint32_t layer_index, grq_e8m0_rule rule, opened *o)
{
    *o = (opened){ 0 };
    const grq_checkpoint_options options = { .e8m0 = rule };
    grq_status st = grq_checkpoint_open(path, &options, &o->checkpoint, &err);
    if (st == GRQ_OK) st = grq_checkpoint_table(o->checkpoint, layer_index, &o->table, &err);
    if (st == GRQ_OK) st = grq_checkpoint_weights(o->checkpoint, layer_index, &o->weights, &err);
    if (st != GRQ_OK) close_all(o);
    return st;
}

/* Everything of one layer: the first thing that is wrong. */
static inline grq_status try_open(const char *path, uint32_t layer_index, opened *o)
{
    return try_rule(path, layer_index, GRQ_E8M0_OCP, o);
}

static inline void open_all(const char *path, uint32_t layer_index, opened *o)
{
    assert_ok(try_open(path, layer_index, o), &err);
}

static inline void assert_spoilt(const test_checkpoint *c, const char *text)
{
    opened o;
    const grq_status st = try_open(test_save(c), 0, &o);
    if (st != GRQ_E_DATA || !strstr(err.message, text))
        fail_msg("status %d, %s (expected %s)", (int)st, st == GRQ_OK ? "accepted" : err.message, text);
}

#endif
