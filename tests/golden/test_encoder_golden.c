/* Every case of encoders.json: code tables, decoding of given bits, rows through each encoder with all their stages,
 * rotations. Code bytes, side words, integers, decoded bits, checksums and errors. */
#include "support.h"

#include "codec/codec_internal.h"
#include "codec/pq.h"
#include "cpu/tcq_decode.h"
#include "gaterq/codec.h"
#include "shared/number.h"

enum { MAX_DIM = 256 };

/* CRC-32 with polynomial 0xEDB88320, bit by bit. */
static uint32_t crc32_of(const void *bytes, size_t n)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (const unsigned char *p = bytes; n-- > 0; p++) {
        crc ^= *p;
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static uint32_t hex(grq_json_node *node)
{
    return (uint32_t)strtoul(test_string(node), NULL, 16);
}

static void expect_crc(const char *name, uint32_t depth, const float *y, uint32_t n, grq_json_node *want)
{
    const uint32_t crc = crc32_of(y, n * sizeof *y);
    if (crc != hex(want)) fail_msg("%s, depth %u: checksum %08x instead of %08x", name, depth, crc, hex(want));
}

static void expect_integers(const char *name, uint32_t stage, grq_json_node *want, const int8_t *c)
{
    for (size_t i = 0; i < grq_json_count(want); i++)
        if (c[i] != test_i64(grq_json_at(want, i)))
            fail_msg("%s, stage %u, integer %zu: %d instead of %d", name, stage, i, c[i],
                     (int)test_i64(grq_json_at(want, i)));
}

static void expect_floats(const char *name, uint32_t depth, grq_json_node *want, const float *y)
{
    for (size_t i = 0; i < grq_json_count(want); i++)
        if (grq_bits_from_float(y[i]) != hex(grq_json_at(want, i)))
            fail_msg("%s, depth %u, value %zu: %a instead of 0x%08X", name, depth, i, (double)y[i],
                     hex(grq_json_at(want, i)));
}

/* ---- encoders by the golden file's names ---- */

/* "TCQ-A/T12", "TCQ-A-RMS/T12", "TCQ-A-Wn/T8", "TCQ-B/T10": any format with any code, which the tool does not offer. */
static grq_encoder tcq_encoder(const char *name, grq_tcq_coding *coding)
{
    const char *const slash = strchr(name, '/');
    assert_non_null(slash);
    *coding = (grq_tcq_coding){ .code = grq_tcq_code_find(slash + 1), .format = name[4], .warm_up = 1 };
    assert_non_null(coding->code);
    if (!strncmp(name, "TCQ-A-RMS/", 10)) coding->rms = true;
    else if (!strncmp(name, "TCQ-A-Wn/", 9)) coding->warm_up = 2;
    else if (strncmp(name, "TCQ-A/", 6) && strncmp(name, "TCQ-B/", 6)) fail_msg("encoder %s is not known", name);
    grq_encoder encoder = name[4] == 'A' ? grq_encoder_tcq : grq_encoder_tcq_b;
    encoder.detail = coding;
    return encoder;
}

static grq_encoder encoder_of(const char *name, grq_tcq_coding *coding)
{
    if (!strcmp(name, "INT/OPT")) return grq_encoder_integer;
    if (!strcmp(name, "INT/RMS")) return grq_encoder_integer_rms;
    if (!strcmp(name, "PQ/E8-256")) return grq_encoder_pq;
    return tcq_encoder(name, coding);
}

/* Where the tool offers the very encoder of a case, its result is the case's too. */
static const grq_encoder *offered(const char *name, uint32_t n)
{
    static const struct {
        const char *golden, *name;
        uint32_t min_n, max_n;
    } same[] = { { "TCQ-A/T12", "tcq", 0, MAX_DIM },
                 { "TCQ-B/T12", "tcq-b", 0, MAX_DIM },
                 { "TCQ-A/T10", "tcq-t10", 0, MAX_DIM },
                 { "TCQ-A/T8", "tcq-t8", 128, MAX_DIM },
                 { "TCQ-A-Wn/T8", "tcq-t8", 0, 127 } };
    const grq_encoder *encoder = NULL;
    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        if (!strcmp(same[i].golden, name) && n >= same[i].min_n && n <= same[i].max_n)
            assert_int_equal(grq_encoder_find(same[i].name, &encoder, NULL), GRQ_OK);
    return encoder;
}

/* ---- cases ---- */

/* A row is given as binary32 bits, or as integers over a divisor. */
static void read_row(grq_json_node *test_case, uint32_t n, float *x)
{
    grq_json_node *const bits = grq_json_find(test_case, "x_f32");
    grq_json_node *const list = bits ? bits : test_walk(test_case, "x_int");
    assert_int_equal(grq_json_count(list), n);
    for (uint32_t i = 0; i < n; i++)
        x[i] = bits ? grq_float_from_bits(hex(grq_json_at(list, i)))
                    : (float)test_i64(grq_json_at(list, i)) / (float)test_f64(test_walk(test_case, "x_div"));
}

static void check_code(const char *name, uint32_t stage, const char *want, const uint8_t *code, size_t n_bytes)
{
    char got[2 * MAX_DIM / 8 + 1];
    for (size_t i = 0; i < n_bytes; i++) sprintf(got + 2 * i, "%02x", code[i]);
    if (strcmp(got, want)) fail_msg("%s, stage %u: code %s instead of %s", name, stage, got, want);
}

static void check_error(const char *name, uint32_t depth, double want, const float *x, const float *y, uint32_t n)
{
    double error = 0, energy = 0;
    for (uint32_t i = 0; i < n; i++) {
        error += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        energy += (double)x[i] * x[i];
    }
    /* The file holds nine digits; a zero row counts as no error. */
    const double relative = energy > 0 ? error / energy : 0;
    if (fabs(relative - want) > 1e-8 * want)
        fail_msg("%s, depth %u: relative MSE %.9g instead of %.9g", name, depth, relative, want);
}

/* The integers c[i] of a stage, as the code bytes and side words of the stages so far say. */
static void integers_of(const grq_encoder *encoder, const uint8_t *code, const uint16_t *side, uint32_t stage,
                        uint32_t n, int8_t *c)
{
    const grq_tcq_coding *const coding = encoder->detail;
    double scale[GRQ_MAX_STAGES];
    uint32_t tail[GRQ_MAX_STAGES] = { 0 }, bad;
    memset(c, 0, n);
    if (side[stage] == 0) return; /* a zero stage */
    switch (encoder->kind) {
    case GRQ_KIND_INTEGER:
        for (uint32_t i = 0; i < n; i++) c[i] = code[i / 8] >> i % 8 & 1 ? 1 : -1;
        break;
    case GRQ_KIND_PQ:
        for (uint32_t s = 0; s < n / GRQ_PQ_DIM; s++) memcpy(c + 8 * s, grq_pq_book_e8()->vector[code[s]], 8);
        break;
    case GRQ_KIND_TCQ:
        if (coding->format == 'A') tail[stage] = grq_tcq_wrapped(code);
        else assert_true(grq_tcq_b_sides(coding->code, side, stage + 1, scale, tail, &bad));
        grq_tcq_decoder_of_cpu()->values(coding->code, code, tail[stage], n, c);
        break;
    }
}

static void check_case(grq_json_node *test_case, const grq_encoder *encoder)
{
    grq_error err = { 0 };
    const char *const name = test_string(test_walk(test_case, "name"));
    const uint32_t n = (uint32_t)test_u64(test_walk(test_case, "n"));
    grq_json_node *const stages = test_walk(test_case, "stages");
    const uint32_t n_stages = (uint32_t)grq_json_count(stages);
    const size_t n_bytes = grq_code_bytes(n);
    float x[MAX_DIM], y[MAX_DIM];
    int8_t c[MAX_DIM];
    uint8_t codes[GRQ_MAX_STAGES * MAX_DIM / 8];
    uint16_t side[GRQ_MAX_STAGES];
    assert_in_range(n, 1, MAX_DIM);
    assert_in_range(n_stages, 1, GRQ_MAX_STAGES);
    read_row(test_case, n, x);
    assert_ok(encoder->encode_row(encoder, x, n, n_stages, codes, side, &err), &err);
    uint32_t bad;
    if (encoder->side_fault(encoder, side, n_stages, &bad)) fail_msg("%s: side words are refused", name);
    const uint8_t *planes[GRQ_MAX_STAGES];
    for (uint32_t k = 0; k < n_stages; k++) {
        grq_json_node *const golden = grq_json_at(stages, k);
        const char *const side_key = encoder->side_words ? "side" : "scale_f16";
        planes[k] = codes + k * n_bytes;
        check_code(name, k + 1, test_string(test_walk(golden, "code")), planes[k], n_bytes);
        if (side[k] != hex(test_walk(golden, side_key)))
            fail_msg("%s, stage %u: %s 0x%04X instead of 0x%04X", name, k + 1, side_key, side[k],
                     hex(test_walk(golden, side_key)));
        integers_of(encoder, planes[k], side, k, n, c);
        expect_integers(name, k + 1, test_walk(golden, "c_first"), c);
        encoder->decode_row(encoder, planes, side, n, k + 1, y);
        expect_floats(name, k + 1, test_walk(golden, grq_json_find(golden, "y") ? "y" : "y_first8"), y);
        expect_crc(name, k + 1, y, n, test_walk(golden, "y_crc32"));
        check_error(name, k + 1, test_f64(test_walk(golden, "rel_mse")), x, y, n);
    }
}

static void every_case(void **state)
{
    (void)state;
    grq_json *const document = test_golden("encoders.json");
    grq_json_node *const cases = test_walk(grq_json_root(document), "cases");
    const size_t n = grq_json_count(cases);
    for (size_t i = 0; i < n; i++) {
        grq_json_node *const test_case = grq_json_at(cases, i);
        const char *const which = test_string(test_walk(test_case, "encoder"));
        grq_tcq_coding coding;
        const grq_encoder encoder = encoder_of(which, &coding);
        check_case(test_case, &encoder);
        const grq_encoder *const tool = offered(which, (uint32_t)test_u64(test_walk(test_case, "n")));
        if (tool) check_case(test_case, tool);
    }
    assert_int_equal(n, 42);
    grq_json_close(document);
}

/* ---- code tables ---- */

static void the_built_in_tables(void **state)
{
    (void)state;
    static const char *const ids[] = { "T12", "T10", "T8" };
    grq_json *const document = test_golden("encoders.json");
    for (size_t k = 0; k < ARRAY_LEN(ids); k++) {
        grq_json_node *const golden = test_walk(test_walk(grq_json_root(document), "codes"), ids[k]);
        const grq_tcq_code *const code = grq_tcq_code_find(ids[k]);
        assert_int_equal(code->n_bits, test_u64(test_walk(golden, "L")));
        assert_int_equal(code->n_masks, grq_json_count(test_walk(golden, "masks")));
        assert_int_equal(1u << code->n_masks, grq_json_count(test_walk(golden, "levels")));
        for (uint32_t j = 0; j < code->n_masks; j++)
            assert_int_equal(code->mask[j], test_u64(grq_json_at(test_walk(golden, "masks"), j)));
        expect_integers(ids[k], 0, test_walk(golden, "levels"), code->level);
        for (uint32_t w = 0; w < 1u << code->n_bits; w++)
            assert_int_equal(grq_tcq_index(code, w), grq_tcq_index_by_masks(code, w));
    }
    const grq_pq_book *const book = grq_pq_book_e8();
    assert_int_equal(book->crc32, hex(test_walk(grq_json_root(document), "pq_E8_256_crc32")));
    assert_int_equal(crc32_of(book->vector, sizeof book->vector), book->crc32);
    grq_json_close(document);
}

/* ---- decoding of given bits ---- */

static void read_code(grq_json_node *node, uint32_t n, uint8_t *code)
{
    const char *const text = test_string(node);
    assert_int_equal(strlen(text), 2 * n / 8);
    for (uint32_t i = 0; i < n / 8; i++) {
        unsigned byte;
        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        code[i] = (uint8_t)byte;
    }
}

static void check_given_a(grq_json_node *golden, const grq_encoder *encoder, const uint8_t *code, uint32_t n)
{
    const grq_tcq_coding *const coding = encoder->detail;
    const char *const name = test_string(test_walk(golden, "bits"));
    const uint8_t *const planes[] = { code };
    const uint16_t side[] = { (uint16_t)hex(test_walk(golden, "scale_f16")) };
    int8_t c[MAX_DIM];
    float y[MAX_DIM];
    grq_tcq_decoder_of_cpu()->values(coding->code, code, grq_tcq_wrapped(code), n, c);
    expect_integers(name, 1, test_walk(golden, "c_first16"), c);
    expect_integers(name, 1, test_walk(golden, "c_last16"), c + n - 16);
    encoder->decode_row(encoder, planes, side, n, 1, y);
    expect_crc(name, 1, y, n, test_walk(golden, "y_crc32"));
}

static void check_given_b(grq_json_node *golden, const grq_encoder *encoder, const uint8_t *code, uint32_t n)
{
    const uint8_t *const planes[] = { code, code, code };
    uint16_t side[GRQ_MAX_STAGES];
    float y[MAX_DIM];
    for (uint32_t k = 0; k < GRQ_MAX_STAGES; k++) side[k] = (uint16_t)hex(grq_json_at(test_walk(golden, "sides"), k));
    for (uint32_t k = 0; k < GRQ_MAX_STAGES; k++) {
        encoder->decode_row(encoder, planes, side, n, k + 1, y);
        expect_crc("B", k + 1, y, n, grq_json_at(test_walk(golden, "y_crc32_by_depth"), k));
    }
    expect_floats("B", GRQ_MAX_STAGES, test_walk(golden, "y_last4"), y + n - 4);
}

static void decoding_of_given_bits(void **state)
{
    (void)state;
    grq_json *const document = test_golden("encoders.json");
    grq_json_node *const list = test_walk(grq_json_root(document), "decode_only");
    for (size_t i = 0; i < grq_json_count(list); i++) {
        grq_json_node *const golden = grq_json_at(list, i);
        const uint32_t n = (uint32_t)test_u64(test_walk(golden, "n"));
        grq_tcq_coding coding;
        const grq_encoder encoder = tcq_encoder(test_string(test_walk(golden, "encoder")), &coding);
        uint8_t code[MAX_DIM / 8];
        read_code(test_walk(golden, "code"), n, code);
        if (coding.format == 'A') check_given_a(golden, &encoder, code, n);
        else check_given_b(golden, &encoder, code, n);
    }
    assert_int_equal(grq_json_count(list), 19);
    grq_json_close(document);
}

/* ---- rotation ---- */

static void rotations(void **state)
{
    (void)state;
    grq_json *const document = test_golden("encoders.json");
    grq_json_node *const root = grq_json_root(document), *const list = test_walk(root, "rotation");
    for (size_t i = 0; i < grq_json_count(list); i++) {
        grq_json_node *const golden = grq_json_at(list, i);
        const uint32_t n = (uint32_t)test_u64(test_walk(golden, "n"));
        char source[32];
        float x[MAX_DIM], y[MAX_DIM];
        snprintf(source, sizeof source, "n%u_T12", n);
        for (size_t k = 0; k < grq_json_count(test_walk(root, "cases")); k++) {
            grq_json_node *const test_case = grq_json_at(test_walk(root, "cases"), k);
            if (!strcmp(test_string(test_walk(test_case, "name")), source)) read_row(test_case, n, x);
        }
        memcpy(y, x, n * sizeof *y);
        grq_rotate(y, n, strtoull(test_string(test_walk(golden, "seed")), NULL, 0));
        expect_floats(source, 0, test_walk(golden, "y_first8"), y);
        expect_crc(source, 0, y, n, test_walk(golden, "y_crc32"));
        grq_unrotate(y, n, strtoull(test_string(test_walk(golden, "seed")), NULL, 0));
        for (uint32_t j = 0; j < n; j++) assert_true(fabs((double)x[j] - (double)y[j]) < 1e-5);
    }
    assert_int_equal(grq_json_count(list), 2);
    grq_json_close(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(the_built_in_tables),
        cmocka_unit_test(decoding_of_given_bits),
        cmocka_unit_test(rotations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
