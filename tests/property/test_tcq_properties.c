/* What must hold of the trellis and book codes: symmetries, hard rows, side words, metadata, transforms. */
#include "codec_support.h"

#include "codec/codec_internal.h"
#include "gaterq/safetensors.h"
#include "shared/number.h"

static const char *const NAMES[] = { "tcq", "tcq-b", "tcq-t10", "tcq-t8", "pq" };
enum { DIM = 64, CODE_BYTES = DIM / 8, N_STAGES = 3 };

/* ---- decoding is what the encoder summed ---- */

/* Once more stage by stage: decoded alone, each stage is factor * c; summed in order they are the decoded row, and the
 * encoder's next stage coded what they left over, as its scale shows. */
static void stages_are_summed_in_order(void **state)
{
    (void)state;
    for (size_t e = 0; e < ARRAY_LEN(NAMES); e++) {
        const grq_encoder *const encoder = encoder_named(NAMES[e]);
        if (encoder->side_words) continue; /* a later stage's scale hangs on the first's */
        for (int round = 0; round < 50; round++) {
            float *const x = gaussian_table(1, DIM, 2), left[DIM], y[DIM] = { 0 }, alone[DIM], got[DIM];
            uint8_t codes[N_STAGES * CODE_BYTES], again[CODE_BYTES];
            uint16_t side[N_STAGES], side_again;
            grq_error err = { 0 };
            memcpy(left, x, sizeof left);
            assert_ok(encoder->encode_row(encoder, x, DIM, N_STAGES, codes, side, &err), &err);
            for (uint32_t k = 0; k < N_STAGES; k++) {
                const uint8_t *const planes[] = { codes, codes + CODE_BYTES, codes + 2 * CODE_BYTES };
                assert_ok(encoder->encode_row(encoder, left, DIM, 1, again, &side_again, &err), &err);
                if (side_again != side[k] || memcmp(again, planes[k], CODE_BYTES))
                    fail_msg("%s: stage %u does not code what stages before it left", NAMES[e], k + 1);
                encoder->decode_row(encoder, planes + k, side + k, DIM, 1, alone);
                for (uint32_t i = 0; i < DIM; i++) {
                    left[i] -= alone[i];
                    y[i] += alone[i];
                }
                encoder->decode_row(encoder, planes, side, DIM, k + 1, got);
                assert_memory_equal(got, y, sizeof y);
            }
            free(x);
        }
    }
}

/* T12's masks have odd weight and its levels are antisymmetric: the complement of a code is the negated row. */
static void the_complement_negates(void **state)
{
    (void)state;
    const grq_encoder *const encoder = encoder_named("tcq");
    for (int round = 0; round < 50; round++) {
        uint8_t code[CODE_BYTES], other[CODE_BYTES];
        const uint8_t *const a[] = { code }, *const b[] = { other };
        const uint16_t side[] = { (uint16_t)(0x3000 + grq_rng_below(&rng, 0x800)) };
        float x[DIM], y[DIM];
        for (uint32_t i = 0; i < CODE_BYTES; i++) other[i] = (uint8_t) ~(code[i] = (uint8_t)grq_rng_next(&rng));
        encoder->decode_row(encoder, a, side, DIM, 1, x);
        encoder->decode_row(encoder, b, side, DIM, 1, y);
        for (uint32_t i = 0; i < DIM; i++) assert_true(x[i] == -y[i] && x[i] != 0);
    }
}

/* Format A has no seam: rows turned by one position are coded as well as before, on average. */
static void the_seam_is_as_good_as_the_rest(void **state)
{
    (void)state;
    enum { ROWS = 500 };
    const grq_rng saved = rng;
    grq_rng_seed(&rng, 3);
    grq_tcq_coding coding = { .code = &grq_tcq_t8, .format = 'A', .warm_up = 2 };
    grq_encoder encoder = *encoder_named("tcq-t8");
    encoder.detail = &coding;
    float *const table = gaussian_table(ROWS, DIM, 0), *const turned = malloc(ROWS * DIM * sizeof *turned);
    double mse[2];
    assert_non_null(turned);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t i = 0; i < DIM; i++) turned[r * DIM + i] = table[r * DIM + (i + 1) % DIM];
    for (int k = 0; k < 2; k++) {
        grq_codes *const codes = encode(&encoder, k ? turned : table, ROWS, DIM, 1, 1);
        grq_distortion d;
        grq_error err = { 0 };
        assert_ok(distortion_of(codes, k ? turned : table, ROWS, DIM, &d, &err), &err);
        mse[k] = d.relative_mse[0];
        grq_codes_close(codes);
    }
    if (fabs(mse[1] / mse[0] - 1) > 0.003) fail_msg("relative MSE %.5f, turned %.5f", mse[0], mse[1]);
    free(table);
    free(turned);
    rng = saved;
}

/* ---- hard rows ---- */

static double squared(const float *x)
{
    double sum = 0;
    for (uint32_t i = 0; i < DIM; i++) sum += (double)x[i] * x[i];
    return sum;
}

/* Fills x by kind; all finite. */
static void make_hard_row(uint32_t kind, float *x)
{
    for (uint32_t i = 0; i < DIM; i++) x[i] = 0;
    switch (kind) {
    case 0: break;
    case 1: x[0] = -0.0f; break;
    case 2: x[17] = 3; break;
    case 3: x[DIM - 1] = -1000; break;
    case 4:
        for (uint32_t i = 0; i < DIM; i++) x[i] = 1;
        break;
    case 5:
        for (uint32_t i = 0; i < DIM; i++) x[i] = i % 2 ? -0.25f : 0.25f;
        break;
    case 6:
        for (uint32_t i = 0; i < DIM; i++) x[i] = 0x1p-149f * (float)(int)(i % 3); /* denormals */
        break;
    case 7:
        for (uint32_t i = 0; i < DIM; i++) x[i] = (float)ldexp(grq_rng_normal(&rng), -21); /* scales near FP16's end */
        break;
    case 8:
        for (uint32_t i = 0; i < DIM; i++) x[i] = (float)ldexp(grq_rng_normal(&rng), -130);
        break;
    default:
        for (uint32_t i = 0; i < DIM; i++) x[i] = (float)ldexp(grq_rng_normal(&rng), -(int)i); /* all magnitudes */
        break;
    }
}
enum { N_HARD = 10 };

static void hard_rows(void **state)
{
    (void)state;
    for (size_t e = 0; e < ARRAY_LEN(NAMES); e++)
        for (uint32_t kind = 0; kind < N_HARD; kind++) {
            const grq_encoder *const encoder = encoder_named(NAMES[e]);
            float x[DIM], y[DIM], left[DIM];
            uint8_t codes[N_STAGES * CODE_BYTES];
            uint16_t side[N_STAGES];
            grq_error err = { 0 };
            uint32_t stage;
            make_hard_row(kind, x);
            memset(codes, 0xA5, sizeof codes);
            assert_ok(encoder->encode_row(encoder, x, DIM, N_STAGES, codes, side, &err), &err);
            assert_null(encoder->side_fault(encoder, side, N_STAGES, &stage));
            const uint8_t *const planes[] = { codes, codes + CODE_BYTES, codes + 2 * CODE_BYTES };
            double before = squared(x);
            for (uint32_t k = 0; k < N_STAGES; k++) {
                for (uint32_t i = 0; side[k] == 0 && i < CODE_BYTES; i++) assert_int_equal(planes[k][i], 0);
                encoder->decode_row(encoder, planes, side, DIM, k + 1, y);
                for (uint32_t i = 0; i < DIM; i++) left[i] = x[i] - y[i];
                if (squared(left) > before * (1 + 0x1p-10))
                    fail_msg("%s, row %u, depth %u: the error rises from %g to %g", NAMES[e], kind, k + 1, before,
                             squared(left));
                before = squared(left);
            }
            if (kind < 2 || kind == 6 || kind == 8) assert_true(side[0] == 0 && squared(y) == 0); /* zero rows */
            else assert_true(side[0] != 0);
        }
}

static void what_cannot_be_coded_is_named(void **state)
{
    (void)state;
    for (size_t e = 0; e < ARRAY_LEN(NAMES); e++) {
        const grq_encoder *const encoder = encoder_named(NAMES[e]);
        static const float bad[] = { NAN, HUGE_VALF, -HUGE_VALF };
        float *const table = gaussian_table(3, DIM, 0);
        grq_error err = { 0 };
        grq_codes *codes = NULL;
        for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
            table[DIM + 37] = bad[k];
            assert_refused(grq_codes_encode(encoder, table, 3, DIM, 2, NULL, 1, NULL, &codes, &err), GRQ_E_DATA, &err,
                           "row 1, column 37");
        }
        for (uint32_t i = 0; i < DIM; i++) table[2 * DIM + i] = 3e38f, table[DIM + i] = 0;
        assert_refused(grq_codes_encode(encoder, table, 3, DIM, 1, NULL, 1, NULL, &codes, &err), GRQ_E_DATA, &err,
                       "set exp_tab");
        const grq_codes_transform smaller = { .exp_tab = 100 };
        for (uint32_t i = 0; i < 2 * DIM; i++) table[i] = 0x1p100f * (float)grq_rng_normal(&rng);
        assert_refused(grq_codes_encode_transformed(encoder, &smaller, table, 3, DIM, 1, NULL, 1, NULL, &codes, &err),
                       GRQ_E_DATA, &err, "row 2: the scale of stage 1");
        assert_refused(grq_codes_encode(encoder, table, 1, DIM + 4, 1, NULL, 1, NULL, &codes, &err), GRQ_E_DATA, &err,
                       encoder->kind == GRQ_KIND_PQ ? "a multiple of 8" : "a multiple of 32");
        free(table);
    }
}

/* ---- transforms ---- */

/* A table-wide power of two changes nothing but the range; a rotation, the error of rows that are no Gaussian ones. */
static void transforms(void **state)
{
    (void)state;
    enum { ROWS = 200 };
    float *const table = gaussian_table(ROWS, DIM, 0), *const larger = malloc(ROWS * DIM * sizeof *larger), a[DIM],
                 b[DIM];
    assert_non_null(larger);
    for (size_t e = 0; e < ARRAY_LEN(NAMES); e++) {
        grq_error err = { 0 };
        grq_codes *scaled = NULL, *turned = NULL, *read = NULL;
        grq_distortion raw_error, turned_error;
        for (size_t i = 0; i < ROWS * DIM; i++) larger[i] = 0x1p40f * table[i];
        const grq_codes_transform power = { .exp_tab = 40 }, rotation = { .rotate = true, .rotation_seed = UINT64_MAX };
        grq_codes *const plain = encode(encoder_named(NAMES[e]), table, ROWS, DIM, 3, 1);
        assert_ok(grq_codes_encode_transformed(encoder_named(NAMES[e]), &power, larger, ROWS, DIM, 3, NULL, 1, NULL,
                                               &scaled, &err),
                  &err);
        for (uint64_t r = 0; r < ROWS; r++) {
            grq_codes_decode(plain, r, 3, a);
            grq_codes_decode(scaled, r, 3, b);
            for (uint32_t i = 0; i < DIM; i++) assert_true(b[i] == 0x1p40f * a[i]);
        }
        grq_codes_close(plain);
        grq_codes_close(scaled);
        /* Rows with eight large values in a row. */
        for (size_t i = 0; i < ROWS * DIM; i++) larger[i] = table[i] * (i % DIM < 8 ? 10 : 1);
        grq_codes *const raw = encode(encoder_named(NAMES[e]), larger, ROWS, DIM, 3, 1);
        assert_ok(grq_codes_encode_transformed(encoder_named(NAMES[e]), &rotation, larger, ROWS, DIM, 3, NULL, 1, NULL,
                                               &turned, &err),
                  &err);
        assert_ok(grq_codes_save(turned, test_path("turned.safetensors"), &err), &err);
        assert_ok(grq_codes_open(test_path("turned.safetensors"), &read, &err), &err);
        assert_true(grq_codes_transform_of(read)->rotate && grq_codes_transform_of(read)->rotation_seed == UINT64_MAX);
        assert_ok(distortion_of(raw, larger, ROWS, DIM, &raw_error, &err), &err);
        assert_ok(distortion_of(read, larger, ROWS, DIM, &turned_error, &err), &err);
        if (!(turned_error.relative_mse[2] < 0.8 * raw_error.relative_mse[2]))
            fail_msg("%s: relative MSE %.4f rotated, %.4f not", NAMES[e], turned_error.relative_mse[2],
                     raw_error.relative_mse[2]);
        grq_codes_close(raw);
        grq_codes_close(turned);
        grq_codes_close(read);
    }
    free(table);
    free(larger);
}

/* ---- files ---- */

enum { FILE_ROWS = 4 };

/* Writes a coded table again with one metadata key changed (value NULL: removed), or a side word of row 2. */
static const char *changed_file(const char *encoder, const char *key, const char *value, uint32_t stage, int side)
{
    static float table[FILE_ROWS * DIM];
    grq_metadata metadata[32];
    grq_tensor tensors[12];
    uint16_t words[FILE_ROWS];
    grq_error err = { 0 };
    grq_safetensors *file = NULL;
    size_t n_metadata = 0, n_tensors = 0;
    for (uint32_t i = 0; i < FILE_ROWS * DIM; i++) table[i] = sinf((float)(i * i % 1013));
    grq_codes *const codes = encode(encoder_named(encoder), table, FILE_ROWS, DIM, 2, 1);
    assert_ok(grq_codes_save(codes, test_path("whole.safetensors"), &err), &err);
    grq_codes_close(codes);
    assert_ok(grq_safetensors_open(test_path("whole.safetensors"), &file, &err), &err);
    static const char *const keys[] = {
        "format",   "family",          "layer",      "encoder",    "scale_rule",    "rows",
        "row_dim",  "stages",          "exp_tab",    "source",     "source_digest", "tcq.format",
        "tcq.code", "tcq.window_bits", "tcq.masks",  "tcq.levels", "tcq.warm_up",   "tcq.search_scale",
        "pq.book",  "pq.book_crc32",   "block_rows", "digest"
    };
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const bool here = key && !strcmp(key, keys[i]);
        const char *const text = here ? value : grq_safetensors_metadata(file, keys[i]);
        if (here) assert_non_null(grq_safetensors_metadata(file, keys[i]));
        if (text) metadata[n_metadata++] = (grq_metadata){ keys[i], text };
    }
    for (; n_tensors < grq_safetensors_count(file); n_tensors++) {
        tensors[n_tensors] = *grq_safetensors_at(file, n_tensors);
        char name[32];
        snprintf(name, sizeof name, "stage%u.%s", stage + 1, encoder_named(encoder)->side_words ? "side" : "scale");
        if (side < 0 || strcmp(tensors[n_tensors].name, name)) continue;
        memcpy(words, tensors[n_tensors].data, sizeof words);
        words[2] = (uint16_t)side;
        tensors[n_tensors].data = words;
    }
    assert_ok(grq_safetensors_write(test_path("changed.safetensors"), tensors, n_tensors, metadata, n_metadata, &err),
              &err);
    grq_safetensors_close(file);
    return test_path("changed.safetensors");
}

static void expect_refused(const char *path, const char *text)
{
    grq_error err = { 0 };
    grq_codes *codes = NULL;
    assert_refused(grq_codes_open(path, &codes, &err), GRQ_E_DATA, &err, text);
    assert_null(codes);
    if (!strstr(err.message, "changed.safetensors")) fail_msg("the message does not name the file: %s", err.message);
}

static void metadata_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *encoder, *key, *value, *text;
    } cases[] = {
        { "tcq", "tcq.window_bits", "17", "tcq.window_bits" },
        { "tcq", "tcq.window_bits", "1", "tcq.window_bits" },
        { "tcq", "tcq.window_bits", NULL, "tcq.window_bits" },
        { "tcq", "tcq.window_bits", "11", "tcq.masks" },
        { "tcq", "tcq.masks", "0x329 0x48E 0x602 0xD35 0x001", "tcq.masks" },
        { "tcq", "tcq.masks", "0x329 0x48E 0x602", "tcq.levels" },
        { "tcq", "tcq.masks", "0x329 0x48E 0x602 0xD36", "code T12" },
        { "tcq", "tcq.masks", "0x329 0x48E 0x602 0x1D35", "tcq.masks" },
        { "tcq", "tcq.masks", "0x329  0x48E 0x602 0xD35", "tcq.masks" },
        { "tcq", "tcq.masks", "0x329 0x48E 0x602 0", "tcq.masks" },
        { "tcq", "tcq.masks", "", "tcq.masks" },
        { "tcq", "tcq.masks", NULL, "tcq.masks" },
        { "tcq", "tcq.code", "T10", "code T10" },
        { "tcq", "tcq.code", NULL, "tcq.code" },
        { "tcq", "tcq.levels", "-128 -85 -62 -51 -38 -29 -18 -9 9 18 29 38 51 62 85 127", "tcq.levels" },
        { "tcq", "tcq.levels", "-127 -85 -62 -51 -38 -29 -18 -9 9 18 29 38 51 62 85 128", "tcq.levels" },
        { "tcq", "tcq.levels", "-127 -85 -62 -51 -38 -29 -18 -9 9 18 29 38 51 62 85", "tcq.levels" },
        { "tcq", "tcq.levels", "-127 -85 -62 -51 -38 -29 -18 -9 9 18 29 38 51 62 85 127 128", "tcq.levels" },
        { "tcq", "tcq.levels", "-127 -85 -62 -51 -38 -29 -18 -9 9 18 29 38 51 62 85 1x", "tcq.levels" },
        { "tcq", "tcq.format", "B", "tcq.format" },
        { "tcq", "tcq.format", "AB", "tcq.format" },
        { "tcq-b", "tcq.format", "A", "tcq.format" },
        { "tcq-b", "encoder", "tcq", "tcq.format" },
        { "tcq", "encoder", "tcq-b", "tcq.format" },
        { "tcq", "encoder", "pq", "pq.book" },
        { "pq", "encoder", "tcq", "tcq.format" },
        { "pq", "pq.book", "E9-256", "E9-256" },
        { "pq", "pq.book_crc32", "349365cf", "349365cf" },
        { "pq", "pq.book_crc32", NULL, "pq.book_crc32" },
        { "tcq", "row_dim", "72", "a multiple of 32" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refused(changed_file(cases[i].encoder, cases[i].key, cases[i].value, 0, -1), cases[i].text);
}

static void side_words_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *encoder;
        uint32_t stage;
        int word;
        const char *text;
    } cases[] = {
        { "tcq", 0, 0x7C00, "stage1.scale, row 2" },  { "tcq", 1, 0x8000, "stage2.scale, row 2" },
        { "pq", 1, 0xFFFF, "stage2.scale, row 2" },   { "tcq-b", 0, 0x1201, "stage1.side, row 2" },
        { "tcq-b", 0, 0x1207, "stage1.side, row 2" }, { "tcq-b", 0, 0x1200, "stage1.side, row 2" },
        { "tcq-b", 0, 0x0000, "stage2.side, row 2" }, /* a stage after a zero one */
        { "tcq-b", 1, 0x0001, "stage2.side, row 2" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refused(changed_file(cases[i].encoder, NULL, NULL, cases[i].stage, cases[i].word), cases[i].text);
}

static void decode_all(const char *path, float *out)
{
    grq_error err = { 0 };
    grq_codes *codes = NULL;
    assert_ok(grq_codes_open(path, &codes, &err), &err);
    for (uint64_t r = 0; r < FILE_ROWS; r++) grq_codes_decode(codes, r, 2, out + r * DIM);
    assert_ok(grq_codes_save(codes, test_path("again.safetensors"), &err), &err);
    grq_codes_close(codes);
}

/* A file of other levels, or of a code without a known name, decodes by what it says; saved again, it says the same. */
static void the_file_says_how_to_decode(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
    } changes[] = { { "tcq.levels", "-126 -85 -62 -51 -38 -29 -18 -9 9 18 29 38 51 62 85 126" },
                    { "tcq.code", "mine" } };
    float want[FILE_ROWS * DIM], got[FILE_ROWS * DIM], again[FILE_ROWS * DIM];
    decode_all(changed_file("tcq", NULL, NULL, 0, -1), want);
    for (size_t k = 0; k < ARRAY_LEN(changes); k++) {
        uint32_t n_other = 0;
        decode_all(changed_file("tcq", changes[k].key, changes[k].value, 0, -1), got);
        for (uint32_t i = 0; i < FILE_ROWS * DIM; i++) n_other += got[i] != want[i];
        if (k == 0) assert_true(n_other > 0 && n_other < FILE_ROWS * DIM); /* only the largest levels changed */
        else assert_int_equal(n_other, 0);
        decode_all(test_path("again.safetensors"), again);
        assert_memory_equal(got, again, sizeof got);
    }
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_are_summed_in_order),
        cmocka_unit_test(the_complement_negates),
        cmocka_unit_test(the_seam_is_as_good_as_the_rest),
        cmocka_unit_test(hard_rows),
        cmocka_unit_test(what_cannot_be_coded_is_named),
        cmocka_unit_test(transforms),
        cmocka_unit_test(metadata_is_checked),
        cmocka_unit_test(side_words_are_checked),
        cmocka_unit_test(the_file_says_how_to_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
