#include <inttypes.h>
#include <math.h>

#include "lm/trainer.h"

/* One description of every field serves reading, checking, writing and comparing. Bounds are inclusive. */
typedef struct {
    const char *key;
    enum { U64, U32, F64 } kind;
    size_t offset;
    double min, max;
} field;

#define AT(name) #name, .offset = offsetof(grq_train_config, name)
static const field FIELDS[] = {
    { AT(n_tokens), .kind = U64, .min = 1, .max = 1e12 },
    { AT(batch), .kind = U32, .min = 1, .max = 65536 },
    { AT(window), .kind = U32, .min = 1, .max = 65536 },
    { AT(n_shards), .kind = U32, .min = 1, .max = 1024 },
    { AT(learning_rate), .kind = F64, .min = 0, .max = 10 },
    { AT(table_rate_factor), .kind = F64, .min = 0, .max = 1000 },
    { AT(weight_decay), .kind = F64, .min = 0, .max = 10 },
    { AT(beta1), .kind = F64, .min = 0, .max = 0.99999 },
    { AT(beta2), .kind = F64, .min = 0, .max = 0.99999 },
    { AT(clip), .kind = F64, .min = 1e-6, .max = 1e9 },
    { AT(warmup_steps), .kind = U32, .min = 0, .max = 1e9 },
    { AT(gate_cost), .kind = F64, .min = 0, .max = 1000 },
    { AT(gate_cost_ramp), .kind = F64, .min = 0, .max = 1 },
};
enum { N_FIELDS = sizeof FIELDS / sizeof *FIELDS };

static double value_of(const grq_train_config *config, const field *f)
{
    const void *at = (const char *)config + f->offset;
    switch (f->kind) {
    case U64: return (double)*(const uint64_t *)at; /* at most 1e12: exact */
    case U32: return *(const uint32_t *)at;
    case F64: return *(const double *)at;
    }
    return NAN;
}

static grq_status read_field(grq_json_node *object, const field *f, grq_train_config *out, grq_error *err)
{
    void *at = (char *)out + f->offset;
    if (f->kind == F64) return grq_json_f64(object, f->key, f->min, f->max, (double *)at, err);
    uint64_t value = 0;
    const grq_status st = grq_json_u64(object, f->key, (uint64_t)f->min, (uint64_t)f->max, &value, err);
    if (f->kind == U64) *(uint64_t *)at = value;
    else *(uint32_t *)at = (uint32_t)value;
    return st;
}

/* Fields that must fit each other. */
static grq_status check_batch(const grq_train_config *c, const char *where, grq_error *err)
{
    if (c->batch % c->n_shards != 0)
        return grq_fail(err, GRQ_E_USAGE, "%s.n_shards: %u does not divide batch %u", where, c->n_shards, c->batch);
    const uint64_t per_step = (uint64_t)c->batch * c->window;
    if (per_step > 1 << 24)
        return grq_fail(err, GRQ_E_USAGE, "%s.batch: %u windows of %u tokens are more than 2^24 tokens a step", where,
                        c->batch, c->window);
    if (c->n_tokens < per_step)
        return grq_fail(err, GRQ_E_USAGE, "%s.n_tokens: %" PRIu64 " is less than one step of %" PRIu64, where,
                        c->n_tokens, per_step);
    if (c->n_tokens / c->window > UINT32_MAX)
        return grq_fail(err, GRQ_E_USAGE, "%s.n_tokens: %" PRIu64 " is more than 2^32 windows of %u", where,
                        c->n_tokens, c->window);
    return GRQ_OK;
}

grq_status grq_train_config_read(grq_json_node *object, grq_train_config *out, grq_error *err)
{
    grq_train_config config = { 0 };
    grq_status st = GRQ_OK;
    for (size_t i = 0; i < N_FIELDS && st == GRQ_OK; i++) st = read_field(object, &FIELDS[i], &config, err);
    if (st == GRQ_OK) st = grq_json_finish(object, err);
    if (st == GRQ_OK) st = check_batch(&config, grq_json_where(object), err);
    if (st == GRQ_OK) *out = config;
    return st;
}

grq_status lm_train_config_check(const grq_train_config *config, grq_error *err)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        const double value = value_of(config, &FIELDS[i]);
        if (!(value >= FIELDS[i].min && value <= FIELDS[i].max))
            return grq_fail(err, GRQ_E_USAGE, "train.%s: %g is outside %g..%g", FIELDS[i].key, value, FIELDS[i].min,
                            FIELDS[i].max);
    }
    return check_batch(config, "train", err);
}

void lm_train_config_write(const grq_train_config *config, const char *key, grq_json_writer *writer)
{
    grq_json_begin_object(writer, key);
    for (size_t i = 0; i < N_FIELDS; i++) {
        const double value = value_of(config, &FIELDS[i]);
        if (FIELDS[i].kind == F64) grq_json_put_f64(writer, FIELDS[i].key, value);
        else grq_json_put_u64(writer, FIELDS[i].key, (uint64_t)value);
    }
    grq_json_end_object(writer);
}

grq_status lm_train_config_compare(const grq_train_config *wanted, const grq_train_config *stored, const char *where,
                                   grq_error *err)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        const double here = value_of(wanted, &FIELDS[i]), there = value_of(stored, &FIELDS[i]);
        if (here != there)
            return grq_fail(err, GRQ_E_USAGE,
                            "%s: made with train.%s = %.17g, the config says %.17g; delete it to start anew", where,
                            FIELDS[i].key, there, here);
    }
    return GRQ_OK;
}
