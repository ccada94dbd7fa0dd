/* Tables: every format, in pieces and unaligned, and what is refused. */
#include "support.h"

#include "gaterq/rng.h"
#include "gaterq/table.h"
#include "shared/number.h"

static grq_rng rng;
static grq_error err;

enum { DIM = 77, N_SCALES = 3, N_ROWS = 23, ROWS_PER_PIECE = 5, N_PIECES = 5, BYTES = N_ROWS * DIM * 4 + 16 };

static const char *const format_names[] = { "F32", "BF16", "F16", "F8 blocks", "F8 scalar" };

/* A table's bytes, laid out in pieces of odd addresses when asked for. */
typedef struct {
    uint8_t values[N_PIECES][BYTES], scales[N_PIECES][N_ROWS * N_SCALES + 1];
    const void *value_pieces[N_PIECES], *scale_pieces[N_PIECES];
    grq_table_layout layout;
    size_t value_bytes, shift;
} stored;

static stored s; /* too large for a stack */

static void lay_out(grq_row_format format, uint64_t rows_per_piece, size_t shift)
{
    static const size_t value_bytes[] = { 4, 2, 2, 1, 1 };
    s.value_bytes = value_bytes[format];
    s.shift = shift;
    for (size_t p = 0; p < N_PIECES; p++) {
        s.value_pieces[p] = s.values[p] + shift;
        s.scale_pieces[p] = s.scales[p] + shift;
    }
    s.layout = (grq_table_layout){ .format = format,
                                   .n_rows = N_ROWS,
                                   .row_dim = DIM,
                                   .rows_per_piece = rows_per_piece,
                                   .values = s.value_pieces,
                                   .scales = format == GRQ_ROWS_F8_BLOCKS ? s.scale_pieces : NULL,
                                   .scale = 0.37f,
                                   .name = "the table" };
}

static uint8_t *value_at(uint64_t row, uint32_t column)
{
    const uint64_t per = s.layout.rows_per_piece;
    return s.values[row / per] + s.shift + (row % per * DIM + column) * s.value_bytes;
}

static uint8_t *scale_at(uint64_t row, uint32_t column)
{
    const uint64_t per = s.layout.rows_per_piece;
    return s.scales[row / per] + s.shift + row % per * N_SCALES + column / 32;
}

/* Stores a value of the format and returns what a fetch must give. */
static float put_value(uint64_t row, uint32_t column, uint8_t scale)
{
    uint8_t *const at = value_at(row, column);
    const float x = (float)grq_rng_normal(&rng);
    uint16_t half;
    switch (s.layout.format) {
    case GRQ_ROWS_F32: memcpy(at, &x, sizeof x); return x;
    case GRQ_ROWS_BF16:
        half = grq_bf16_from_f32(x);
        memcpy(at, &half, sizeof half);
        return grq_f32_from_bf16(half);
    case GRQ_ROWS_F16:
        half = grq_f16_from_f32(x);
        memcpy(at, &half, sizeof half);
        return grq_f32_from_f16(half);
    case GRQ_ROWS_F8_BLOCKS:
        *at = grq_e4m3_from_f32(x);
        *scale_at(row, column) = scale;
        return ldexpf(grq_f32_from_e4m3(*at), scale - 127);
    default:
        *at = grq_e4m3_from_f32(x);
        return grq_f32_from_bf16(grq_bf16_from_f32(grq_f32_from_e4m3(*at) * s.layout.scale));
    }
}

static float want[N_ROWS][DIM], got[3 * N_ROWS * DIM];

static void fill_rows(void)
{
    for (uint64_t r = 0; r < N_ROWS; r++) {
        uint8_t scale = 0;
        for (uint32_t i = 0; i < DIM; i++) {
            if (i % 32 == 0) scale = (uint8_t)(100 + grq_rng_below(&rng, 50));
            want[r][i] = put_value(r, i, scale);
        }
    }
}

static grq_table *open_table(void)
{
    grq_table *t = NULL;
    assert_ok(grq_table_new(&s.layout, &t, &err), &err);
    return t;
}

static void every_format_in_one_piece_and_in_many(void **state)
{
    (void)state;
    static const uint64_t per_piece[] = { N_ROWS, ROWS_PER_PIECE, 1000 };
    static const double row_bytes[] = { 4 * DIM, 2 * DIM, 2 * DIM, DIM + N_SCALES, DIM };
    int64_t rows[3 * N_ROWS];
    for (int c = 0; c < 5 * 3 * 2; c++) {
        const grq_row_format format = (grq_row_format)(c % 5);
        lay_out(format, per_piece[c / 5 % 3], (size_t)(c / 15));
        fill_rows();
        grq_table *const t = open_table();
        assert_true(grq_table_n_rows(t) == N_ROWS && grq_table_row_dim(t) == DIM);
        assert_true(grq_table_row_bytes(t) == row_bytes[format]);
        assert_string_equal(grq_table_name(t), "the table");
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) rows[i] = (int64_t)(i < N_ROWS ? i : grq_rng_below(&rng, N_ROWS));
        assert_ok(grq_table_fetch(t, N_ROWS, 3, rows, got, &err), &err);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            if (memcmp(got + i * DIM, want[rows[i]], sizeof want[0]))
                fail_msg("%s, %" PRIu64 " rows a piece, shift %zu, seed %" PRIu64 ": row %" PRId64 " at %zu differs",
                         format_names[format], s.layout.rows_per_piece, s.shift, test_seed(), rows[i], i);
        grq_table_free(t);
    }
}

static void nothing_is_fetched_from_no_rows(void **state)
{
    (void)state;
    lay_out(GRQ_ROWS_F32, N_ROWS, 0);
    grq_table *const t = open_table();
    assert_ok(grq_table_fetch(t, 0, 24, NULL, NULL, &err), &err);
    grq_table_free(t);
    grq_table_free(NULL);
}

static void a_row_past_the_end_names_its_place(void **state)
{
    (void)state;
    lay_out(GRQ_ROWS_F8_BLOCKS, ROWS_PER_PIECE, 1);
    fill_rows();
    grq_table *const t = open_table();
    int64_t rows[] = { 0, 1, 2, 3, 4, N_ROWS };
    assert_refused(grq_table_fetch(t, 3, 2, rows, got, &err), GRQ_E_DATA, &err,
                   "the table: position 2, head 1: row 23 is not in the table of 23 rows");
    rows[2] = -1;
    assert_refused(grq_table_fetch(t, 3, 2, rows, got, &err), GRQ_E_DATA, &err, "position 1, head 0: row -1 is not");
    rows[2] = INT64_MIN;
    assert_refused(grq_table_fetch(t, 3, 2, rows, got, &err), GRQ_E_DATA, &err, "row -9223372036854775808 is not");
    grq_table_free(t);
}

/* Wherever in a row it stands, also behind the last whole vector. */
static void what_is_no_number_is_refused_by_row_and_column(void **state)
{
    (void)state;
    static const float infinite = -HUGE_VALF;
    static const uint16_t halves[] = { 0x7F80, 0xFC00 }; /* infinity as BF16 has it, as F16 has it */
    for (int format = 0; format < 5; format++)
        for (uint32_t column = 0; column < DIM; column++) {
            char text[100];
            lay_out((grq_row_format)format, ROWS_PER_PIECE, 1);
            fill_rows();
            uint8_t *const at = value_at(13, column);
            if (format == GRQ_ROWS_F32) memcpy(at, &infinite, sizeof infinite);
            else if (s.value_bytes == 2) memcpy(at, &halves[format - GRQ_ROWS_BF16], 2);
            else *at = column % 2 ? 0x7F : 0xFF;
            grq_table *const t = open_table();
            assert_ok(grq_table_fetch(t, 1, 3, (const int64_t[]){ 12, 14, 0 }, got, &err), &err);
            snprintf(text, sizeof text, "the table: row 13, column %u%s", column,
                     s.value_bytes == 1 ? ": code 0x" : " is");
            assert_refused(grq_table_fetch(t, 3, 1, (const int64_t[]){ 12, 13, 14 }, got, &err), GRQ_E_DATA, &err,
                           text);
            grq_table_free(t);
        }
}

static grq_status fetch_scaled(grq_e8m0_rule rule, uint8_t code, uint8_t scale, float *x)
{
    lay_out(GRQ_ROWS_F8_BLOCKS, N_ROWS, 0);
    memset(s.values, 0x38, sizeof s.values); /* 1.0 */
    memset(s.scales, 127, sizeof s.scales);
    s.layout.e8m0 = rule;
    *value_at(7, 40) = code;
    *scale_at(7, 40) = scale;
    grq_table *const t = open_table();
    const grq_status st = grq_table_fetch(t, 1, 1, (const int64_t[]){ 7 }, got, &err);
    grq_table_free(t);
    *x = got[40];
    if (st == GRQ_OK) assert_true(got[0] == 1 && got[76] == 1);
    return st;
}

/* They differ at byte 0 only: 2^-127 or nothing. Byte 255 is NaN to one and infinity to the other; both refuse it. */
static void both_readings_of_a_scale(void **state)
{
    (void)state;
    float x;
    assert_ok(fetch_scaled(GRQ_E8M0_OCP, 0x38, 0, &x), &err);
    assert_true(x == 0x1p-127f);
    assert_ok(fetch_scaled(GRQ_E8M0_SHIFT, 0x38, 0, &x), &err);
    assert_true(x == 0);
    for (int rule = 0; rule < 2; rule++) {
        for (int scale = 1; scale < 255; scale++) {
            assert_ok(fetch_scaled((grq_e8m0_rule)rule, 0x38, (uint8_t)scale, &x), &err);
            if (x != ldexpf(1, scale - 127)) fail_msg("rule %d, scale byte %d: %a", rule, scale, (double)x);
        }
        assert_refused(fetch_scaled((grq_e8m0_rule)rule, 0x00, 255, &x), GRQ_E_DATA, &err,
                       "row 7, column 32: code 0x38 with scale byte 255");
        assert_refused(fetch_scaled((grq_e8m0_rule)rule, 0x7E, 254, &x), GRQ_E_DATA, &err,
                       "row 7, column 40: code 0x7E with scale byte 254 is no finite number");
    }
}

static void layouts_that_make_no_sense(void **state)
{
    (void)state;
    grq_table *t;
    lay_out(GRQ_ROWS_F32, N_ROWS, 0);
    s.layout.n_rows = 0;
    assert_refused(grq_table_new(&s.layout, &t, &err), GRQ_E_DATA, &err, "the table: a table of 0 rows");
    assert_null(t);
    lay_out(GRQ_ROWS_F32, 0, 0);
    assert_refused(grq_table_new(&s.layout, &t, &err), GRQ_E_DATA, &err, "pieces of 0 rows");
    lay_out(GRQ_ROWS_F32, N_ROWS, 0);
    s.layout.row_dim = 65537;
    assert_refused(grq_table_new(&s.layout, &t, &err), GRQ_E_DATA, &err, "rows of 65537 values");
    lay_out(GRQ_ROWS_F8_SCALAR, N_ROWS, 0);
    s.layout.scale = NAN;
    assert_refused(grq_table_new(&s.layout, &t, &err), GRQ_E_DATA, &err, "scale is nan");
}

/* As grq_codes_decode has them, at every depth. */
static void rows_of_codes(void **state)
{
    (void)state;
    const grq_encoder *encoder;
    grq_codes *codes = NULL;
    grq_table *t = NULL;
    float table[N_ROWS * DIM], row[DIM];
    const int64_t rows[] = { 3, 0, N_ROWS - 1, 3 };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) table[i] = (float)grq_rng_normal(&rng);
    assert_ok(grq_encoder_find("integer", &encoder, &err), &err);
    assert_ok(grq_codes_encode(encoder, table, N_ROWS, DIM, 2, &(grq_codes_origin){ .source = "some:table" }, 1, NULL,
                               &codes, &err),
              &err);
    for (uint32_t depth = 1; depth <= 2; depth++) {
        assert_ok(grq_table_of_codes(codes, depth, &t, &err), &err);
        assert_true(grq_table_row_bytes(t) == depth * (10.0 + 2));
        assert_ok(grq_table_fetch(t, 2, 2, rows, got, &err), &err);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            grq_codes_decode(codes, (uint64_t)rows[i], depth, row);
            assert_memory_equal(got + i * DIM, row, sizeof row);
        }
        assert_refused(grq_table_fetch(t, 1, 1, (const int64_t[]){ N_ROWS }, got, &err), GRQ_E_DATA, &err,
                       "some:table: position 0, head 0: row 23");
        grq_table_free(t);
    }
    assert_refused(grq_table_of_codes(codes, 3, &t, &err), GRQ_E_USAGE, &err, "depth 3: the codes have stages 1 to 2");
    assert_refused(grq_table_of_codes(codes, 0, &t, &err), GRQ_E_USAGE, &err, "depth 0");
    grq_codes_close(codes);
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_in_one_piece_and_in_many),
        cmocka_unit_test(nothing_is_fetched_from_no_rows),
        cmocka_unit_test(a_row_past_the_end_names_its_place),
        cmocka_unit_test(what_is_no_number_is_refused_by_row_and_column),
        cmocka_unit_test(both_readings_of_a_scale),
        cmocka_unit_test(layouts_that_make_no_sense),
        cmocka_unit_test(rows_of_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
