/* Model files: safetensors with the shape and the vocabulary in the metadata. Names and keys: docs/format.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm/model_internal.h"

static const char SHAPE_KEY[] = "gaterq.model", VOCABULARY_KEY[] = "gaterq.vocabulary";

/* Opens the JSON text that metadata `key` holds; NULL in *out when there is none. */
static grq_status open_metadata(const grq_safetensors *file, const char *key, grq_json **out, grq_error *err)
{
    *out = NULL;
    const char *text = grq_safetensors_metadata(file, key);
    if (!text) return GRQ_OK;
    const grq_status st = grq_json_parse(key, text, strlen(text), out, err);
    return st == GRQ_OK ? GRQ_OK : grq_fail_prefix(err, st, "%s: metadata", grq_safetensors_path(file));
}

static grq_status read_shape(const grq_safetensors *file, grq_model_shape *out, grq_error *err)
{
    grq_json *document;
    grq_status st = open_metadata(file, SHAPE_KEY, &document, err);
    if (st != GRQ_OK) return st;
    if (!document)
        return grq_fail(err, GRQ_E_DATA, "%s: not a gaterq model: metadata %s is missing", grq_safetensors_path(file),
                        SHAPE_KEY);
    st = lm_shape_read(grq_json_root(document), out, err);
    if (st != GRQ_OK) {
        st = GRQ_E_DATA; /* the same mistake in a config would be one of usage */
        if (err) err->status = st;
        st = grq_fail_prefix(err, st, "%s: metadata", grq_safetensors_path(file));
    }
    grq_json_close(document);
    return st;
}

static grq_status read_vocabulary(const grq_safetensors *file, grq_vocab **out, grq_error *err)
{
    grq_json *document;
    grq_status st = open_metadata(file, VOCABULARY_KEY, &document, err);
    if (st != GRQ_OK || !document) return st;
    st = grq_vocab_read(grq_json_root(document), out, err);
    if (st != GRQ_OK) st = grq_fail_prefix(err, st, "%s: metadata", grq_safetensors_path(file));
    grq_json_close(document);
    return st;
}

static grq_status copy_tensor(const grq_safetensors *file, const lm_tensor *t, float *weights, grq_error *err)
{
    const grq_tensor *stored;
    const grq_status st = grq_safetensors_get(file, t->name, GRQ_F32, t->rank, t->shape, &stored, err);
    if (st != GRQ_OK) return st;
    float *to = weights + t->at;
    memcpy(to, stored->data, t->n * sizeof *to);
    for (size_t i = 0; i < t->n; i++)
        if (!isfinite(to[i]))
            return grq_fail(err, GRQ_E_DATA, "%s: %s: element %zu is %g; weights must be finite",
                            grq_safetensors_path(file), t->name, i, (double)to[i]);
    return GRQ_OK;
}

/* Every stored tensor must be one of the model's: a file with more was written for another program. */
static grq_status refuse_others(const grq_safetensors *file, const lm_layout *layout, grq_error *err)
{
    for (size_t i = 0; i < grq_safetensors_count(file); i++) {
        const char *name = grq_safetensors_at(file, i)->name;
        size_t k = 0;
        while (k < layout->n_tensors && strcmp(layout->tensors[k].name, name) != 0) k++;
        if (k == layout->n_tensors)
            return grq_fail(err, GRQ_E_DATA, "%s: %s: no such tensor in a model of this shape",
                            grq_safetensors_path(file), name);
    }
    return GRQ_OK;
}

grq_status grq_model_open(const char *path, grq_model **out, grq_error *err)
{
    *out = NULL;
    grq_safetensors *file = NULL;
    grq_vocab *vocab = NULL;
    grq_model *model = NULL;
    grq_model_shape shape;
    grq_status st = grq_safetensors_open(path, &file, err);
    if (st == GRQ_OK) st = read_shape(file, &shape, err);
    if (st == GRQ_OK) st = read_vocabulary(file, &vocab, err);
    if (st == GRQ_OK) {
        st = lm_model_allocate(&shape, vocab, &model, err);
        if (st != GRQ_OK) grq_fail_prefix(err, st, "%s", path);
    }
    for (size_t i = 0; st == GRQ_OK && i < model->layout.n_tensors; i++)
        st = copy_tensor(file, &model->layout.tensors[i], model->weights, err);
    if (st == GRQ_OK) st = refuse_others(file, &model->layout, err);
    grq_vocab_free(vocab);
    if (st != GRQ_OK) {
        grq_model_free(model);
        grq_safetensors_close(file);
        return st;
    }
    model->file = file; /* the model owns it now */
    *out = model;
    return GRQ_OK;
}

/* The texts of the two metadata entries; the writers own them. */
static grq_status write_description(const grq_model *model, grq_json_writer *shape, grq_json_writer *vocabulary,
                                    grq_metadata entries[2], size_t *n_entries, grq_error *err)
{
    if (!shape || !vocabulary) return grq_fail(err, GRQ_E_NOMEM, "no memory for the model's metadata");
    lm_shape_write(&model->shape, NULL, shape);
    entries[0].key = SHAPE_KEY;
    grq_status st = grq_json_writer_text(shape, true, &entries[0].value, err);
    *n_entries = 1;
    if (st != GRQ_OK || !model->vocab) return st;
    grq_vocab_write(model->vocab, NULL, vocabulary);
    entries[1].key = VOCABULARY_KEY;
    *n_entries = 2;
    return grq_json_writer_text(vocabulary, true, &entries[1].value, err);
}

static void list_tensors(const grq_model *model, grq_tensor *out)
{
    for (size_t i = 0; i < model->layout.n_tensors; i++) {
        const lm_tensor *t = &model->layout.tensors[i];
        out[i] = (grq_tensor){ .name = t->name,
                               .dtype = GRQ_F32,
                               .rank = t->rank,
                               .n_bytes = t->n * sizeof(float),
                               .data = model->weights + t->at };
        memcpy(out[i].shape, t->shape, sizeof t->shape);
    }
}

grq_status grq_model_save(const grq_model *model, const char *path, const grq_metadata *metadata, size_t n_metadata,
                          grq_error *err)
{
    grq_json_writer *shape = grq_json_writer_new(), *vocabulary = grq_json_writer_new();
    grq_tensor *tensors = calloc(model->layout.n_tensors, sizeof *tensors);
    grq_metadata *entries = calloc(n_metadata + 2, sizeof *entries);
    size_t n_entries = 0;
    grq_status st = tensors && entries ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "%s: no memory to save the model", path);
    if (st == GRQ_OK) st = write_description(model, shape, vocabulary, entries, &n_entries, err);
    if (st == GRQ_OK) {
        list_tensors(model, tensors);
        if (n_metadata) memcpy(entries + n_entries, metadata, n_metadata * sizeof *entries);
        st = grq_safetensors_write(path, tensors, model->layout.n_tensors, entries, n_entries + n_metadata, err);
    }
    grq_json_writer_free(shape);
    grq_json_writer_free(vocabulary);
    free(tensors);
    free(entries);
    return st;
}
