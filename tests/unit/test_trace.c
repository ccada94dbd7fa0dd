/* Traces: what the model did, exactly; the same bytes every time; damaged files refused. */
#include "lm_support.h"

#include "gaterq/trace.h"
#include "gaterq/world.h"

enum { N_SEQUENCES = 30, LENGTH = 11 };

typedef struct {
    grq_model *model;
    grq_codes *codes[GRQ_MAX_MEMORY_LAYERS];
    grq_counts counts;
    int32_t *text;
    uint8_t kinds[N_SEQUENCES * LENGTH];
    size_t offsets[N_SEQUENCES + 1];
} fixture;

static void make_fixture(fixture *f)
{
    grq_error err;
    const grq_encoder *encoder;
    *f = (fixture){ .model = lm_make_model(LM_SMALL, 3),
                    .text = lm_make_text(N_SEQUENCES * LENGTH + 2000, LM_SMALL.vocab_size, 4) };
    const grq_geometry *g = &grq_model_shape_of(f->model)->memory;
    assert_ok(grq_encoder_find("integer", &encoder, &err), &err);
    for (uint32_t l = 0; l < g->n_layers; l++)
        assert_ok(grq_codes_encode(encoder, grq_model_memory(f->model, l)->table, g->n_rows[l], g->row_dim, 3, NULL, 1,
                                   NULL, &f->codes[l], &err),
                  &err);
    assert_ok(grq_counts_run(f->model, (const grq_codes *const *)f->codes, f->text + N_SEQUENCES * LENGTH, 2000, 16, 2,
                             NULL, &f->counts, &err),
              &err);
    for (size_t i = 0; i <= N_SEQUENCES; i++) f->offsets[i] = i * LENGTH;
    memset(f->kinds, GRQ_TEXT_FILLER, sizeof f->kinds);
}

static void free_fixture(fixture *f)
{
    for (uint32_t l = 0; l < GRQ_MAX_MEMORY_LAYERS; l++) grq_codes_close(f->codes[l]);
    grq_counts_free(&f->counts);
    grq_model_free(f->model);
    free(f->text);
}

static void capture(const fixture *f, const char *path)
{
    const grq_sequences sequences = { N_SEQUENCES, f->offsets, f->text, f->kinds };
    const grq_budget budget = { 1, { 0.412 } };
    const grq_metadata metadata[] = { { "gaterq.seed", "1" } };
    const grq_trace_info info = { metadata, 1 };
    grq_error err;
    assert_ok(grq_trace_capture(f->model, (const grq_codes *const *)f->codes, &f->counts, &sequences, &budget, 64,
                                &info, path, NULL, &err),
              &err);
}

static void a_trace_holds_what_its_formulas_say(void **state)
{
    (void)state;
    fixture f;
    grq_trace trace;
    grq_error err;
    make_fixture(&f);
    const grq_geometry *g = &grq_model_shape_of(f.model)->memory;
    capture(&f, test_path("t.h5"));
    assert_ok(grq_trace_open(test_path("t.h5"), &trace, &err), &err);
    assert_int_equal(trace.n_positions, N_SEQUENCES * LENGTH);
    assert_int_equal(trace.n_layers, g->n_layers);
    assert_memory_equal(trace.token, f.text, trace.n_positions * sizeof *f.text);
    for (uint32_t l = 0; l < trace.n_layers; l++) {
        const grq_trace_layer *layer = &trace.layers[l];
        double tau[GRQ_MAX_COLUMNS];
        float row[64];
        size_t deeper = 0;
        grq_layer_tau(grq_model_memory(f.model, l), tau);
        for (size_t i = 0; i < trace.n_positions * layer->n_columns; i++) {
            const size_t t = i / layer->n_columns, c = i % layer->n_columns;
            float energy = 0;
            double norm = 0;
            for (uint32_t m = 0; m < layer->n_branches; m++)
                energy +=
                    layer->gates_stage1[t * layer->n_branches + m] * layer->gates_stage1[t * layer->n_branches + m];
            grq_codes_decode(f.codes[l], (uint64_t)layer->row[i], 1, row);
            for (uint32_t k = 0; k < g->row_dim; k++) norm += (double)row[k] * row[k];
            assert_true(fabs((double)layer->gate_energy[i] - (double)energy) <= 1e-6 * (double)energy);
            assert_true(fabs((double)layer->row_energy[i] - norm) <= 1e-6 * norm);
            assert_true(fabs((double)layer->tau[i] - tau[c]) <= 1e-6 * tau[c]);
            assert_true(fabs((double)layer->importance[i] - (double)energy * tau[c] * norm) <=
                        1e-5 * (double)energy * tau[c] * norm);
            assert_true(layer->frequency[i] == f.counts.count[l][layer->row[i]]);
            assert_true(fabs((double)layer->prior[i] - grq_counts_prior(&f.counts, l, (uint64_t)layer->row[i])) < 1e-6);
            assert_int_equal(layer->order[i], grq_geometry_column_order(g, (uint32_t)c));
            deeper += layer->depth[i] == 2;
        }
        /* One batch is 64 positions' whole sequences: the share is exact per batch up to half a look-up. */
        assert_true(fabs((double)deeper / ((double)trace.n_positions * layer->n_columns) - 0.412) < 0.01);
    }
    grq_trace_free(&trace);
    free_fixture(&f);
}

static void the_same_run_gives_the_same_bytes(void **state)
{
    (void)state;
    fixture f;
    char *a, *b;
    size_t n, m;
    grq_error err;
    make_fixture(&f);
    capture(&f, test_path("a.h5"));
    capture(&f, test_path("b.h5"));
    assert_ok(grq_file_read(test_path("a.h5"), 0, &a, &n, &err), &err);
    assert_ok(grq_file_read(test_path("b.h5"), 0, &b, &m, &err), &err);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    for (size_t cut = 0; cut < n; cut += n / 97 + 1) {
        grq_trace trace;
        if (grq_trace_open(test_write("cut.h5", a, cut), &trace, &err) == GRQ_OK)
            fail_msg("accepted the first %zu of %zu bytes", cut, n);
        assert_non_null(strstr(err.message, "cut.h5"));
    }
    grq_trace trace;
    assert_int_not_equal(grq_trace_open(test_write_text("text.h5", "not HDF5 at all"), &trace, &err), GRQ_OK);
    assert_int_not_equal(grq_trace_open(test_folder(), &trace, &err), GRQ_OK);
    assert_int_equal(test_count_files(".tmp-"), 0);
    free(a);
    free(b);
    free_fixture(&f);
}

static void counts_do_not_depend_on_threads(void **state)
{
    (void)state;
    fixture f;
    grq_error err;
    grq_counts again, back;
    make_fixture(&f);
    const grq_geometry *g = &grq_model_shape_of(f.model)->memory;
    assert_ok(grq_counts_run(f.model, (const grq_codes *const *)f.codes, f.text + N_SEQUENCES * LENGTH, 2000, 16, 1,
                             NULL, &again, &err),
              &err);
    assert_ok(grq_counts_save(&again, test_path("counts.safetensors"), NULL, 0, &err), &err);
    assert_ok(grq_counts_open(test_path("counts.safetensors"), &back, &err), &err);
    for (uint32_t l = 0; l < g->n_layers; l++) {
        uint64_t total = 0;
        for (uint64_t r = 0; r < g->n_rows[l]; r++) total += back.count[l][r];
        assert_int_equal(total, 2000 * g->n_columns);
        assert_memory_equal(f.counts.count[l], back.count[l], g->n_rows[l] * sizeof *back.count[l]);
        assert_memory_equal(f.counts.gate_energy_sum[l], back.gate_energy_sum[l],
                            g->n_rows[l] * sizeof *back.gate_energy_sum[l]);
        assert_true(back.mean_gate_energy[l] == f.counts.mean_gate_energy[l]);
    }
    grq_counts_free(&again);
    grq_counts_free(&back);
    free_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_holds_what_its_formulas_say),
        cmocka_unit_test(the_same_run_gives_the_same_bytes),
        cmocka_unit_test(counts_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
