/* Trained books: better on heavy tails, the same for any thread count, carried by the file, refused when harmed. */
#include "codec_support.h"

#include "gaterq/encode.h"
#include "gaterq/pq_book.h"
#include "gaterq/safetensors.h"
#include "gaterq/verify.h"

enum { ROWS = 3000, DIM = 64 };

/* Laplace values: peaked, with heavy tails. */
static float *laplace_table(void)
{
    float *const table = malloc(ROWS * DIM * sizeof *table);
    for (size_t i = 0; i < (size_t)ROWS * DIM; i++) {
        const double u = grq_rng_uniform(&rng) - 0.5;
        table[i] = (float)(u < 0 ? log(1 + 2 * u + 1e-12) : -log(1 - 2 * u + 1e-12));
    }
    return table;
}

static grq_pq_book train(const float *values, const double *weights, uint64_t n_sample, uint32_t n_threads)
{
    grq_error err = { 0 };
    grq_pq_book book;
    grq_table *const table = table_of(values, ROWS, DIM);
    assert_ok(grq_pq_train(table, n_sample, weights, 3, 1, n_threads, NULL, &book, &err), &err);
    grq_table_free(table);
    return book;
}

static grq_distortion error_with(const grq_pq_book *book, const float *values, const double *weights)
{
    grq_error err = { 0 };
    grq_encoder *encoder;
    grq_distortion d;
    static int64_t rows[ROWS];
    for (int64_t i = 0; i < ROWS; i++) rows[i] = i;
    const grq_row_sample sample = { ROWS, rows, weights };
    assert_ok(grq_pq_encoder_new(book, &encoder, &err), &err);
    grq_codes *const codes = encode(encoder, values, ROWS, DIM, 3, 2);
    grq_table *const table = table_of(values, ROWS, DIM);
    assert_ok(grq_codes_distortion(codes, table, &sample, 2, NULL, &d, &err), &err);
    grq_table_free(table);
    grq_codes_close(codes);
    grq_pq_encoder_free(encoder);
    return d;
}

static grq_pq_book built_in(const float *values)
{
    grq_codes *const codes = encode(encoder_named("pq"), values, 8, DIM, 1, 1);
    const grq_pq_book book = *grq_codes_book(codes);
    grq_codes_close(codes);
    return book;
}

static void training_helps_heavy_tails(void **state)
{
    (void)state;
    float *const values = laplace_table();
    const grq_pq_book e8 = built_in(values), trained = train(values, NULL, ROWS, 2);
    assert_string_equal(e8.id, "E8-256");
    assert_string_equal(trained.id, "trained");
    const grq_distortion before = error_with(&e8, values, NULL), after = error_with(&trained, values, NULL);
    print_message("Laplace rows of %d: %.4f / %.4f / %.4f, trained %.4f / %.4f / %.4f\n", DIM, before.relative_mse[0],
                  before.relative_mse[1], before.relative_mse[2], after.relative_mse[0], after.relative_mse[1],
                  after.relative_mse[2]);
    assert_true(after.relative_mse[0] < 0.94 * before.relative_mse[0]);
    assert_true(after.relative_mse[1] < 0.94 * before.relative_mse[1]);
    assert_true(after.relative_mse[2] < 0.94 * before.relative_mse[2]);
    free(values);
}

/* Half of the rows are Laplace rows that count, half Gaussian ones that do not. */
static void weights_are_followed(void **state)
{
    (void)state;
    float *const values = laplace_table();
    static double weights[ROWS];
    for (size_t r = 0; r < ROWS; r++) {
        weights[r] = r % 2;
        for (uint32_t i = 0; r % 2 == 0 && i < DIM; i++) values[r * DIM + i] = (float)grq_rng_normal(&rng);
    }
    const grq_pq_book plain = train(values, NULL, ROWS, 2), weighted = train(values, weights, ROWS, 2);
    const grq_distortion a = error_with(&plain, values, weights), b = error_with(&weighted, values, weights);
    assert_true(b.weighted_mse[0] < 0.995 * a.weighted_mse[0]);
    assert_true(b.relative_mse[0] > a.relative_mse[0]);
    grq_error err = { 0 };
    grq_pq_book book;
    grq_table *const table = table_of(values, ROWS, DIM);
    weights[7] = NAN;
    assert_refused(grq_pq_train(table, ROWS, weights, 3, 1, 1, NULL, &book, &err), GRQ_E_DATA, &err, "row 7");
    assert_refused(grq_pq_train(table, 0, NULL, 3, 1, 1, NULL, &book, &err), GRQ_E_USAGE, &err, "0 rows");
    values[5 * DIM] = NAN;
    assert_refused(grq_pq_train(table, ROWS, NULL, 3, 1, 1, NULL, &book, &err), GRQ_E_DATA, &err, "row 5");
    grq_table_free(table);
    free(values);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    float *const values = laplace_table();
    const grq_pq_book one = train(values, NULL, 1000, 1);
    for (uint32_t n = 2; n <= 5; n++) {
        const grq_pq_book other = train(values, NULL, 1000, n);
        assert_memory_equal(one.vector, other.vector, sizeof one.vector);
        assert_int_equal(one.crc32, other.crc32);
    }
    free(values);
}

static void files_carry_their_book(void **state)
{
    (void)state;
    float *const values = laplace_table(), a[DIM], b[DIM];
    grq_error err = { 0 };
    grq_encoder *encoder;
    grq_encode_result result;
    grq_codes *read = NULL;
    const grq_pq_book book = train(values, NULL, 500, 2);
    assert_ok(grq_pq_encoder_new(&book, &encoder, &err), &err);
    grq_codes *const made = encode(encoder, values, ROWS, DIM, 3, 2);
    grq_table *const table = table_of(values, ROWS, DIM);
    const grq_codes_origin origin = { "random", 14, "table.safetensors:rows", NULL };
    const grq_encode_job job = { .encoder = encoder, .n_stages = 3, .origin = &origin, .n_threads = 2 };
    assert_ok(grq_codes_save(made, test_path("saved"), &err), &err);
    assert_ok(grq_encode_file(table, &job, test_path("streamed"), &result, &err), &err);
    assert_string_equal(result.encoder->name, "pq");
    size_t n, m;
    char *const bytes = file_bytes(test_path("saved"), &n), *const other = file_bytes(test_path("streamed"), &m);
    assert_true(n == m && !memcmp(bytes, other, n));
    assert_ok(grq_codes_open(test_path("saved"), &read, &err), &err);
    assert_memory_equal(grq_codes_book(read)->vector, book.vector, sizeof book.vector);
    for (uint64_t r = 0; r < ROWS; r += 97)
        for (uint32_t d = 1; d <= 3; d++) {
            grq_codes_decode(made, r, d, a);
            grq_codes_decode(read, r, d, b);
            assert_memory_equal(a, b, sizeof a);
        }
    const grq_verify_options options = { .n_sample = 500 };
    grq_verify_report report;
    assert_ok(grq_codes_verify(read, table, &options, &report, &err), &err);
    assert_true(report.passed);
    grq_codes_close(read);
    /* Any harm to the book is seen on opening: its CRC-32 is in the metadata. */
    char *const at = memmem(bytes, n, book.vector, sizeof book.vector);
    assert_non_null(at);
    for (int k = 0; k < 50; k++) {
        const size_t i = grq_rng_below(&rng, sizeof book.vector);
        const char kept = at[i];
        at[i] ^= (char)(1 << grq_rng_below(&rng, 8));
        test_write("harmed", bytes, n);
        assert_refused(grq_codes_open(test_path("harmed"), &read, &err), GRQ_E_DATA, &err, "pq.book");
        at[i] = kept;
    }
    free(bytes);
    free(other);
    grq_table_free(table);
    grq_codes_close(made);
    grq_pq_encoder_free(encoder);
    free(values);
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_helps_heavy_tails),
        cmocka_unit_test(weights_are_followed),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(files_carry_their_book),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
