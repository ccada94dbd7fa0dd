/* Every integer case of encoders.json: code bytes, scales, decoded bits, checksum and error of every stage. */
#include "support.h"

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

static void check_values(const char *name, uint32_t stage, grq_json_node *golden, const float *x, const float *y,
                         uint32_t n)
{
    grq_json_node *const list = grq_json_find(golden, "y");
    for (size_t i = 0; list && i < grq_json_count(list); i++)
        if (grq_bits_from_float(y[i]) != hex(grq_json_at(list, i)))
            fail_msg("%s, depth %u, value %zu: %a instead of 0x%08X", name, stage, i, (double)y[i],
                     hex(grq_json_at(list, i)));
    const uint32_t crc = crc32_of(y, n * sizeof *y), want_crc = hex(test_walk(golden, "y_crc32"));
    if (crc != want_crc) fail_msg("%s, depth %u: checksum %08x instead of %08x", name, stage, crc, want_crc);
    double error = 0, energy = 0;
    for (uint32_t i = 0; i < n; i++) {
        error += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        energy += (double)x[i] * x[i];
    }
    /* The file holds nine digits; a zero row counts as no error. */
    const double relative = energy > 0 ? error / energy : 0, want = test_f64(test_walk(golden, "rel_mse"));
    if (fabs(relative - want) > 1e-8 * want)
        fail_msg("%s, depth %u: relative MSE %.9g instead of %.9g", name, stage, relative, want);
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
    uint8_t codes[GRQ_MAX_STAGES * MAX_DIM / 8];
    uint16_t side[GRQ_MAX_STAGES];
    assert_in_range(n, 1, MAX_DIM);
    assert_in_range(n_stages, 1, GRQ_MAX_STAGES);
    read_row(test_case, n, x);
    assert_ok(encoder->encode_row(encoder, x, n, n_stages, codes, side, &err), &err);
    const uint8_t *planes[GRQ_MAX_STAGES];
    for (uint32_t k = 0; k < n_stages; k++) {
        grq_json_node *const golden = grq_json_at(stages, k);
        planes[k] = codes + k * n_bytes;
        check_code(name, k + 1, test_string(test_walk(golden, "code")), planes[k], n_bytes);
        if (side[k] != hex(test_walk(golden, "scale_f16")))
            fail_msg("%s, stage %u: scale 0x%04X instead of 0x%04X", name, k + 1, side[k],
                     hex(test_walk(golden, "scale_f16")));
        encoder->decode_row(encoder, planes, side, n, k + 1, y);
        check_values(name, k + 1, golden, x, y, n);
    }
}

static void every_integer_case(void **state)
{
    (void)state;
    grq_json *const document = test_golden("encoders.json");
    grq_json_node *const cases = test_walk(grq_json_root(document), "cases");
    grq_error err = { 0 };
    size_t n_checked = 0;
    for (size_t i = 0; i < grq_json_count(cases); i++) {
        const char *const which = test_string(test_walk(grq_json_at(cases, i), "encoder"));
        const grq_encoder *encoder = NULL;
        if (strncmp(which, "INT/", 4)) continue;
        assert_ok(grq_encoder_find(!strcmp(which, "INT/RMS") ? "integer-rms" : "integer", &encoder, &err), &err);
        check_case(grq_json_at(cases, i), encoder);
        n_checked++;
    }
    assert_int_equal(n_checked, 10);
    grq_json_close(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_integer_case) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
