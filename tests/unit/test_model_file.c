/* Shapes, initial weights, and model files: there and back, and everything that must be refused. */
#include "lm_support.h"

#include "lm/model_internal.h"

static grq_json *parse(const char *text)
{
    grq_json *document = NULL;
    grq_error err = { 0 };
    assert_ok(grq_json_parse("w.json", text, strlen(text), &document, &err), &err);
    return document;
}

static grq_status read_shape(const char *text, grq_model_shape *out, grq_error *err)
{
    grq_json *document = parse(text);
    const grq_status st = grq_model_shape_read(grq_json_root(document), 963, out, err);
    grq_json_close(document);
    return st;
}

#define MEMORY(layers)                                                                                                 \
    "\"memory\": {\"layer_ids\": " layers ", \"min_order\": 2, \"max_order\": 4, \"n_heads\": 2, \"row_dim\": 32,"     \
    "\"n_branches\": 4, \"prime_start\": 8192, \"multiplier_seed\": 10007, \"norm_eps\": 1e-6, \"gate_clamp\": 1e-6}"
#define SHAPE(heads, more, layers)                                                                                     \
    "{\"width\": 64, \"n_blocks\": 4, \"n_heads\": " heads ", \"mlp_width\": 192, \"norm_eps\": 1e-6," more MEMORY(    \
        layers) "}"

static void the_recipe_has_the_recipes_size(void **state)
{
    (void)state;
    grq_model_shape shape;
    grq_model *model = NULL;
    grq_error err = { 0 };
    assert_ok(read_shape(SHAPE("4", "", "[1, 2]"), &shape, &err), &err);
    assert_int_equal(shape.memory.n_ids, 963);
    assert_int_equal(shape.memory.width, 64);
    assert_ok(grq_model_new(&shape, NULL, 1, &model, &err), &err);
    const uint64_t tables = grq_model_n_parameters(model, 1);
    assert_int_equal(grq_model_n_parameters(model, 0) - tables, 411780);
    assert_int_equal(tables, (shape.memory.n_rows[0] + shape.memory.n_rows[1]) * 32);
    assert_int_equal(tables, 3167232); /* the twelve primes from 8,192 up, as in the prototype */
    grq_model_free(model);
}

static void senseless_shapes_are_refused_by_name(void **state)
{
    (void)state;
    grq_model_shape shape;
    grq_error err = { 0 };
    assert_refused(read_shape(SHAPE("5", "", "[1]"), &shape, &err), GRQ_E_USAGE, &err,
                   "n_heads: 5 does not divide width 64");
    assert_refused(read_shape(SHAPE("4", "", "[1, 4]"), &shape, &err), GRQ_E_USAGE, &err,
                   "layer_ids: no block 4 in a model of 4");
    assert_refused(read_shape(SHAPE("4", "", "[2, 1]"), &shape, &err), GRQ_E_USAGE, &err, "layer_ids");
    assert_refused(read_shape(SHAPE("4", "\"widht\": 3,", "[1]"), &shape, &err), GRQ_E_DATA, &err, "widht");
    shape = lm_make_shape(LM_ODD);
    shape.memory.width = 16;
    grq_model *model = NULL;
    assert_refused(grq_model_new(&shape, NULL, 1, &model, &err), GRQ_E_USAGE, &err, "memory.width: 16");
    assert_null(model);
    shape = lm_make_shape(LM_ODD);
    grq_vocab *vocab = NULL;
    const char *const words[] = { "a", "b" };
    assert_ok(grq_vocab_new_words(words, 2, &vocab, &err), &err);
    assert_refused(grq_model_new(&shape, vocab, 1, &model, &err), GRQ_E_DATA, &err,
                   "the vocabulary has 3 entries, vocab_size is 23");
    grq_vocab_free(vocab);
}

static double deviation_of(const grq_model *model, size_t at, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += model->weights[at + i];
        squares += (double)model->weights[at + i] * model->weights[at + i];
    }
    return sqrt(squares / (double)n - (sum / (double)n) * (sum / (double)n));
}

static void initial_weights_are_the_recipes(void **state)
{
    (void)state;
    grq_model_shape shape;
    grq_model *model = NULL, *same = NULL, *other = NULL;
    grq_error err = { 0 };
    assert_ok(read_shape(SHAPE("4", "", "[1, 2]"), &shape, &err), &err);
    assert_ok(grq_model_new(&shape, NULL, 1, &model, &err), &err);
    assert_ok(grq_model_new(&shape, NULL, 1, &same, &err), &err);
    assert_ok(grq_model_new(&shape, NULL, 2, &other, &err), &err);
    const lm_layout *l = &model->layout;
    assert_memory_equal(model->weights, same->weights, l->n_all * sizeof(float));
    assert_memory_not_equal(model->weights, other->weights, l->n_all * sizeof(float));
    const struct {
        size_t at, n;
        double want;
    } drawn[] = {
        { l->embed, 963 * 64, 0.02 * sqrt(2) * 10 / 8 },
        { l->head, 963 * 64, 0.5 / 8 },
        { l->blocks[3][LM_ATTENTION].in, 192 * 64, 1.0 / 8 },
        { l->blocks[0][LM_ATTENTION].out, 64 * 64, 1.0 / 8 / sqrt(8) },
        { l->blocks[1][LM_MLP].in, 192 * 64, 1.0 / 8 },
        { l->blocks[2][LM_MLP].out, 64 * 192, 1.0 / 8 / sqrt(3 * 8) },
        { l->memory[0].key, 256 * 192, 1 / sqrt(192) },
        { l->memory[1].value, 64 * 192, 1 / sqrt(192) },
        { l->memory[1].table, shape.memory.n_rows[1] * 32, 0.02 },
    };
    for (size_t i = 0; i < ARRAY_LEN(drawn); i++) { /* 5 standard errors of a sample's deviation */
        const double got = deviation_of(model, drawn[i].at, drawn[i].n), slack = 5 / sqrt(2.0 * (double)drawn[i].n);
        if (fabs(got / drawn[i].want - 1) > slack) fail_msg("tensor %zu: deviation %g, want %g", i, got, drawn[i].want);
    }
    const float *read = model->weights + l->blocks[1][LM_MLP].read; /* sub-layer 3 reads mostly branch 3 */
    assert_true(read[0] == 0.075f && read[3] == 0.075f + 0.7f);
    assert_true(model->weights[l->blocks[0][LM_MLP].mix + 5] == 1 && model->weights[l->blocks[0][LM_MLP].mix + 4] == 0);
    assert_true(model->weights[l->final_read] == 0.25f && model->weights[l->memory[0].key_gain + 255] == 1);
    grq_model_free(model);
    grq_model_free(same);
    grq_model_free(other);
}

static grq_vocab *make_vocab(uint32_t size)
{
    char storage[64][8];
    const char *words[64];
    grq_vocab *vocab = NULL;
    grq_error err = { 0 };
    for (uint32_t i = 0; i + 1 < size; i++) {
        snprintf(storage[i], sizeof storage[i], "w%u", i);
        words[i] = storage[i];
    }
    assert_ok(grq_vocab_new_words(words, size - 1, &vocab, &err), &err);
    return vocab;
}

static void a_model_file_brings_everything_back(void **state)
{
    (void)state;
    const grq_model_shape shape = lm_make_shape(LM_ODD);
    grq_vocab *vocab = make_vocab(LM_ODD.vocab_size);
    grq_model *model = NULL, *back = NULL;
    grq_error err = { 0 };
    const char *path = test_path("model.safetensors");
    const grq_metadata extra[] = { { "gaterq.commit", "abc" }, { "gaterq.seed", "7" } };
    assert_ok(grq_model_new(&shape, vocab, 8, &model, &err), &err);
    assert_ok(grq_model_save(model, path, extra, 2, &err), &err);
    assert_ok(grq_model_open(path, &back, &err), &err);
    assert_memory_equal(grq_model_shape_of(back), grq_model_shape_of(model), sizeof shape);
    assert_memory_equal(back->weights, model->weights, model->layout.n_all * sizeof(float));
    assert_string_equal(grq_model_metadata(back, "gaterq.commit"), "abc");
    assert_null(grq_model_metadata(back, "gaterq.nothing"));
    assert_null(grq_model_metadata(model, "gaterq.commit"));
    assert_int_equal(grq_vocab_size(grq_model_vocab(back)), LM_ODD.vocab_size);
    size_t n = 0;
    assert_memory_equal(grq_vocab_token(grq_model_vocab(back), 22, &n), "w21", 3);
    assert_ptr_equal(grq_model_memory(back, 0)->table, back->weights + back->layout.memory[0].table);
    assert_ptr_equal(grq_model_memory(back, 0)->geometry, &grq_model_shape_of(back)->memory);
    grq_model_free(back);
    grq_model_free(model);
    grq_vocab_free(vocab);
    assert_ok(grq_model_new(&shape, NULL, 8, &model, &err), &err); /* a model need not have a vocabulary */
    assert_ok(grq_model_save(model, path, NULL, 0, &err), &err);
    assert_ok(grq_model_open(path, &back, &err), &err);
    assert_null(grq_model_vocab(back));
    grq_model_free(back);
    grq_model_free(model);
    assert_int_equal(test_count_files(".tmp-"), 0);
}

/* ---- files that must be refused ---- */

enum { MAX_TENSORS = 64 };

/* A model file as a list that a case can spoil before it is written. */
typedef struct {
    grq_model *model;
    grq_tensor tensors[MAX_TENSORS];
    size_t n_tensors;
    char shape[2048];
    grq_metadata metadata[1];
    size_t n_metadata;
} parts;

static void take_apart(parts *p)
{
    p->model = lm_make_model(LM_ODD, 1);
    const lm_layout *layout = &p->model->layout;
    p->n_tensors = layout->n_tensors;
    for (size_t i = 0; i < p->n_tensors; i++) {
        const lm_tensor *t = &layout->tensors[i];
        p->tensors[i] = (grq_tensor){
            .name = t->name, .dtype = GRQ_F32, .rank = t->rank, .n_bytes = t->n * 4, .data = p->model->weights + t->at
        };
        memcpy(p->tensors[i].shape, t->shape, sizeof t->shape);
    }
    grq_json_writer *writer = grq_json_writer_new();
    const char *text = NULL;
    grq_error err = { 0 };
    lm_shape_write(&p->model->shape, NULL, writer);
    assert_ok(grq_json_writer_text(writer, true, &text, &err), &err);
    snprintf(p->shape, sizeof p->shape, "%s", text);
    grq_json_writer_free(writer);
    p->metadata[0] = (grq_metadata){ "gaterq.model", p->shape };
    p->n_metadata = 1;
}

static void assert_file_refused(parts *p, const char *text)
{
    const char *path = test_path("spoilt.safetensors");
    grq_model *model = NULL;
    grq_error err = { 0 };
    assert_ok(grq_safetensors_write(path, p->tensors, p->n_tensors, p->metadata, p->n_metadata, &err), &err);
    assert_refused(grq_model_open(path, &model, &err), GRQ_E_DATA, &err, text);
    assert_null(model);
    if (!strstr(err.message, "spoilt.safetensors")) fail_msg("the message does not name the file: %s", err.message);
    grq_model_free(p->model);
}

/* Replaces the first `from` of the shape's text by `to`, of any length. */
static void edit(parts *p, const char *from, const char *to)
{
    char *at = strstr(p->shape, from), rest[sizeof p->shape];
    if (!at) fail_msg("no %s in %s", from, p->shape);
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    snprintf(at, sizeof p->shape - (size_t)(at - p->shape), "%s%s", to, rest);
}

static void spoilt_files_are_refused(void **state)
{
    (void)state;
    parts p;
    take_apart(&p);
    p.model->weights[p.model->layout.blocks[1][LM_MLP].in + 7] = NAN;
    assert_file_refused(&p, "blocks.1.mlp.up: element 7 is");
    take_apart(&p);
    p.model->weights[p.model->layout.memory[0].table + 100] = -INFINITY;
    assert_file_refused(&p, "memory.1.table: element 100 is -inf");
    take_apart(&p);
    p.tensors[0] = p.tensors[--p.n_tensors];
    assert_file_refused(&p, "embed");
    take_apart(&p);
    p.tensors[0].shape[0] = 15;
    p.tensors[0].shape[1] = 23;
    assert_file_refused(&p, "embed");
    take_apart(&p);
    p.tensors[p.n_tensors] = p.tensors[2];
    p.tensors[p.n_tensors++].name = "final.bias";
    assert_file_refused(&p, "final.bias: no such tensor");
    take_apart(&p);
    p.n_metadata = 0;
    assert_file_refused(&p, "metadata gaterq.model is missing");
    take_apart(&p);
    edit(&p, "\"n_heads\"", "\"n_haeds\"");
    assert_file_refused(&p, "n_heads");
    take_apart(&p);
    edit(&p, "\"width\":15", "\"width\":18"); /* the memory inside still says 15 */
    assert_file_refused(&p, "memory.width");
    take_apart(&p);
    edit(&p, "\"prime_start\":31", "\"prime_start\":37"); /* derived tables are larger than the stored ones */
    assert_file_refused(&p, "memory.1.table");
    take_apart(&p);
    edit(&p, "\"n_ids\":23", "\"n_ids\":24");
    assert_file_refused(&p, "memory.n_ids");
    take_apart(&p);
    snprintf(p.shape, sizeof p.shape, "{\"width\": ");
    assert_file_refused(&p, "gaterq.model");
}

static void truncated_files_are_refused(void **state)
{
    (void)state;
    grq_model *model = lm_make_model(LM_ODD, 1), *back = NULL;
    const char *path = test_path("whole.safetensors");
    grq_error err = { 0 };
    char *bytes = NULL;
    size_t n = 0;
    assert_ok(grq_model_save(model, path, NULL, 0, &err), &err);
    assert_ok(grq_file_read(path, 0, &bytes, &n, &err), &err);
    for (size_t cut = 0; cut < n; cut += 1 + n / 37) {
        const char *shorter = test_write("cut.safetensors", bytes, cut);
        const grq_status st = grq_model_open(shorter, &back, &err);
        if (st != GRQ_E_DATA || back || !strstr(err.message, "cut.safetensors"))
            fail_msg("%zu of %zu bytes: status %d: %s", cut, n, st, err.message);
    }
    free(bytes);
    assert_refused(grq_model_open(test_path("nowhere"), &back, &err), GRQ_E_IO, &err, "nowhere");
    assert_refused(grq_model_save(model, test_path("no/such/folder"), NULL, 0, &err), GRQ_E_IO, &err, "no/such/folder");
    grq_model_free(model);
    assert_int_equal(test_count_files(".tmp-"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recipe_has_the_recipes_size), cmocka_unit_test(senseless_shapes_are_refused_by_name),
        cmocka_unit_test(initial_weights_are_the_recipes), cmocka_unit_test(a_model_file_brings_everything_back),
        cmocka_unit_test(spoilt_files_are_refused),        cmocka_unit_test(truncated_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
