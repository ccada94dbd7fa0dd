/* Checkpoints: safetensors with the flat arrays of a training and, in the metadata, what it belongs to. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lm/trainer.h"

static const char SHAPE_KEY[] = "gaterq.model", TRAIN_KEY[] = "gaterq.train", SEED_KEY[] = "gaterq.seed",
                  TEXT_KEY[] = "gaterq.text_sha256";
enum { N_TENSORS = 5, N_METADATA = 4, SEED_TEXT = 24 };

/* The tensors, in file order; `steps` and `means` are the caller's room for the small ones. */
static void list_tensors(const lm_trainer *t, uint64_t *steps, double *means, grq_tensor out[N_TENSORS])
{
    const uint64_t n = t->model->layout.n_all;
    const struct {
        const char *name;
        grq_dtype dtype;
        uint64_t n;
        const void *data;
    } all[N_TENSORS] = {
        { "weights", GRQ_F32, n, t->model->weights },
        { "first_moment", GRQ_F32, n, t->adam.first },
        { "second_moment", GRQ_F32, n, t->adam.second },
        { "step", GRQ_U64, 1, steps },
        { "means", GRQ_F64, 1 + t->model->shape.memory.n_layers, means }, /* loss, then the gates of each layer */
    };
    for (int i = 0; i < N_TENSORS; i++)
        out[i] = (grq_tensor){ .name = all[i].name,
                               .dtype = all[i].dtype,
                               .rank = 1,
                               .shape = { all[i].n },
                               .n_bytes = all[i].n * grq_dtype_bytes(all[i].dtype),
                               .data = all[i].data };
}

static grq_status write_file(const lm_trainer *t, const char *path, grq_json_writer *shape, grq_json_writer *train,
                             grq_error *err)
{
    char seed[SEED_TEXT];
    snprintf(seed, sizeof seed, "%" PRIu64, t->seed);
    grq_metadata metadata[N_METADATA] = {
        { SHAPE_KEY, NULL }, { TRAIN_KEY, NULL }, { SEED_KEY, seed }, { TEXT_KEY, t->text_sha256 }
    };
    lm_shape_write(&t->model->shape, NULL, shape);
    lm_train_config_write(t->config, NULL, train);
    grq_status st = grq_json_writer_text(shape, true, &metadata[0].value, err);
    if (st == GRQ_OK) st = grq_json_writer_text(train, true, &metadata[1].value, err);
    if (st != GRQ_OK) return st;
    uint64_t step = t->step;
    double means[1 + GRQ_MAX_MEMORY_LAYERS] = { t->loss_mean };
    memcpy(means + 1, t->gate_mean, sizeof t->gate_mean);
    grq_tensor tensors[N_TENSORS];
    list_tensors(t, &step, means, tensors);
    return grq_safetensors_write(path, tensors, N_TENSORS, metadata, N_METADATA, err);
}

grq_status lm_checkpoint_write(const lm_trainer *trainer, const char *path, grq_error *err)
{
    grq_json_writer *shape = grq_json_writer_new(), *train = grq_json_writer_new();
    const grq_status st = shape && train ? write_file(trainer, path, shape, train, err)
                                         : grq_fail(err, GRQ_E_NOMEM, "%s: no memory", path);
    grq_json_writer_free(shape);
    grq_json_writer_free(train);
    return st;
}

static grq_status need(const grq_safetensors *file, const char *key, const char **out, grq_error *err)
{
    *out = grq_safetensors_metadata(file, key);
    return *out ? GRQ_OK
                : grq_fail(err, GRQ_E_DATA, "%s: not a checkpoint: metadata %s is missing", grq_safetensors_path(file),
                           key);
}

/* Same seed, same text, same shape. */
static grq_status check_origin(const lm_trainer *t, const grq_safetensors *file, grq_error *err)
{
    const char *path = grq_safetensors_path(file), *shape = NULL, *seed = NULL, *text = NULL, *ours = NULL;
    char our_seed[SEED_TEXT];
    snprintf(our_seed, sizeof our_seed, "%" PRIu64, t->seed);
    grq_status st = need(file, SHAPE_KEY, &shape, err);
    if (st == GRQ_OK) st = need(file, SEED_KEY, &seed, err);
    if (st == GRQ_OK) st = need(file, TEXT_KEY, &text, err);
    if (st != GRQ_OK) return st;
    if (strcmp(seed, our_seed) != 0)
        return grq_fail(err, GRQ_E_USAGE, "%s: made with seed %s, this is seed %s; delete it to start anew", path, seed,
                        our_seed);
    grq_json_writer *writer = grq_json_writer_new();
    if (!writer) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory", path);
    lm_shape_write(&t->model->shape, NULL, writer);
    st = grq_json_writer_text(writer, true, &ours, err);
    if (st == GRQ_OK && strcmp(shape, ours) != 0)
        st = grq_fail(err, GRQ_E_USAGE, "%s: made for the model %s, this one is %s; delete it to start anew", path,
                      shape, ours);
    grq_json_writer_free(writer);
    if (st == GRQ_OK && strcmp(text, t->text_sha256) != 0)
        st = grq_fail(err, GRQ_E_USAGE, "%s: made on a text with SHA-256 %s, this one has %s; delete it to start anew",
                      path, text, t->text_sha256);
    return st;
}

static grq_status check_config(const lm_trainer *t, const grq_safetensors *file, grq_error *err)
{
    const char *path = grq_safetensors_path(file), *text;
    grq_json *document;
    grq_train_config stored;
    grq_status st = need(file, TRAIN_KEY, &text, err);
    if (st == GRQ_OK) st = grq_json_parse(TRAIN_KEY, text, strlen(text), &document, err);
    if (st != GRQ_OK) return st;
    st = grq_train_config_read(grq_json_root(document), &stored, err);
    grq_json_close(document);
    if (st != GRQ_OK) return grq_fail_prefix(err, st, "%s: metadata", path);
    return lm_train_config_compare(t->config, &stored, path, err);
}

static grq_status check_finite(const grq_safetensors *file, const char *name, const float *values, size_t n,
                               grq_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return grq_fail(err, GRQ_E_DATA, "%s: %s: element %zu is %g", grq_safetensors_path(file), name, i,
                            (double)values[i]);
    return GRQ_OK;
}

static grq_status read_tensors(lm_trainer *t, const grq_safetensors *file, grq_error *err)
{
    const size_t n = t->model->layout.n_all;
    uint64_t step = 0;
    double means[1 + GRQ_MAX_MEMORY_LAYERS] = { 0 };
    grq_tensor expected[N_TENSORS];
    const grq_tensor *found[N_TENSORS];
    list_tensors(t, &step, means, expected);
    grq_status st = GRQ_OK;
    for (int i = 0; i < N_TENSORS && st == GRQ_OK; i++)
        st = grq_safetensors_get(file, expected[i].name, expected[i].dtype, 1, expected[i].shape, &found[i], err);
    for (int i = 0; i < 3 && st == GRQ_OK; i++) st = check_finite(file, expected[i].name, found[i]->data, n, err);
    if (st != GRQ_OK) return st;
    memcpy(&step, found[3]->data, sizeof step);
    if (step > t->n_steps)
        return grq_fail(err, GRQ_E_DATA, "%s: step %" PRIu64 " of %" PRIu64, grq_safetensors_path(file), step,
                        t->n_steps);
    memcpy(means, found[4]->data, found[4]->n_bytes);
    memcpy(t->model->weights, found[0]->data, n * sizeof(float));
    memcpy(t->adam.first, found[1]->data, n * sizeof(float));
    memcpy(t->adam.second, found[2]->data, n * sizeof(float));
    lm_adamw_set_applied(&t->adam, step);
    t->step = step;
    t->loss_mean = means[0];
    memcpy(t->gate_mean, means + 1, sizeof t->gate_mean);
    return GRQ_OK;
}

grq_status lm_checkpoint_read(lm_trainer *trainer, const char *path, grq_error *err)
{
    grq_safetensors *file = NULL;
    grq_status st = grq_safetensors_open(path, &file, err);
    if (st == GRQ_OK) st = check_origin(trainer, file, err);
    if (st == GRQ_OK) st = check_config(trainer, file, err);
    if (st == GRQ_OK) st = read_tensors(trainer, file, err);
    grq_safetensors_close(file);
    return st;
}
