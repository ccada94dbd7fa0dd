/* Coded tables: what must hold for any rows, any number of threads, and any file, damaged ones included. */
#include "codec_support.h"

#include "gaterq/safetensors.h"
#include "shared/number.h"

static void every_thread_count_writes_the_same_file(void **state)
{
    (void)state;
    enum { MOST_ROWS = 9001, DIM = 32 }; /* three blocks of rows, the last one not full; two where coding is slow */
    float *const table = gaussian_table(MOST_ROWS, DIM, 1);
    grq_error err = { 0 };
    for (size_t e = 0; grq_encoder_at(e); e++) {
        char *want = NULL;
        size_t n_want = 0;
        const bool slow = grq_encoder_at(e)->kind == GRQ_KIND_TCQ;
        for (uint32_t n_threads = 1; n_threads <= 5; n_threads += slow ? 2 : 1) {
            grq_codes *const codes = encode(grq_encoder_at(e), table, slow ? 4500 : MOST_ROWS, DIM, 3, n_threads);
            assert_ok(grq_codes_save(codes, test_path("threads.safetensors"), &err), &err);
            grq_codes_close(codes);
            size_t n;
            char *const bytes = file_bytes(test_path("threads.safetensors"), &n);
            if (!want) {
                want = bytes, n_want = n;
                continue;
            }
            if (n != n_want || memcmp(bytes, want, n))
                fail_msg("%s on %u threads: other bytes than on 1", grq_encoder_at(e)->name, n_threads);
            free(bytes);
        }
        free(want);
    }
    free(table);
}

/* Section 2 once more, value by value: signs of what is left, a scale, and the running sum. */
static void decoding_is_the_running_sum(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        const uint32_t dim = between(1, 200);
        const bool rms = grq_rng_below(&rng, 2);
        const grq_encoder *encoder = NULL;
        grq_error err = { 0 };
        assert_ok(grq_encoder_find(rms ? "integer-rms" : "integer", &encoder, &err), &err);
        float *const x = gaussian_table(1, dim, 2), left[200], y[200] = { 0 }, got[200];
        if (round % 7 == 0)
            for (uint32_t i = 0; i < dim; i++) x[i] = grq_rng_below(&rng, 2) ? 0.0f : -0.0f; /* the zero row */
        if (round % 7 == 1)
            for (uint32_t i = 0; i < dim; i++) x[i] *= 0x1p-20f; /* scales among FP16's subnormals, or zero */
        memcpy(left, x, dim * sizeof *left);
        grq_codes *const codes = encode(encoder, x, 1, dim, 3, 1);
        for (uint32_t d = 1; d <= 3; d++) {
            double lane[32] = { 0 };
            for (uint32_t i = 0; i < dim; i++) lane[i % 32] += rms ? (double)left[i] * left[i] : fabs((double)left[i]);
            for (uint32_t h = 16; h > 0; h /= 2)
                for (uint32_t l = 0; l < h; l++) lane[l] += lane[l + h];
            const double scale = rms ? sqrt(lane[0] / dim) : lane[0] / dim;
            const float factor = grq_f32_from_f16(grq_f16_from_f32((float)scale));
            for (uint32_t i = 0; i < dim; i++) {
                const float step = left[i] >= 0 ? factor : -factor;
                left[i] -= step;
                y[i] += step;
            }
            grq_codes_decode(codes, 0, d, got);
            for (uint32_t i = 0; i < dim; i++)
                if (memcmp(&got[i], &y[i], sizeof *y))
                    fail_msg("round %d, %u values, depth %u, value %u: %a instead of %a", round, dim, d, i,
                             (double)got[i], (double)y[i]);
        }
        grq_codes_close(codes);
        free(x);
    }
}

/* A stage's codes do not depend on how many stages follow. */
static void fewer_stages_are_a_prefix(void **state)
{
    (void)state;
    enum { ROWS = 50, DIM = 64 };
    float *const table = gaussian_table(ROWS, DIM, 1), a[DIM], b[DIM];
    for (size_t e = 0; grq_encoder_at(e); e++)
        for (uint32_t k = 1; k < GRQ_MAX_STAGES; k++) {
            grq_codes *const few = encode(grq_encoder_at(e), table, ROWS, DIM, k, 2);
            grq_codes *const all = encode(grq_encoder_at(e), table, ROWS, DIM, GRQ_MAX_STAGES, 2);
            for (uint64_t r = 0; r < ROWS; r++)
                for (uint32_t d = 1; d <= k; d++) {
                    grq_codes_decode(few, r, d, a);
                    grq_codes_decode(all, r, d, b);
                    assert_memory_equal(a, b, sizeof a);
                }
            grq_codes_close(few);
            grq_codes_close(all);
        }
    free(table);
}

static void rows_are_coded_alone(void **state)
{
    (void)state;
    enum { ROWS = 300, DIM = 32 };
    float *const table = gaussian_table(ROWS, DIM, 1), *const shuffled = malloc(ROWS * DIM * sizeof *shuffled), a[DIM],
                 b[DIM];
    uint64_t order[ROWS];
    assert_non_null(shuffled);
    for (uint64_t r = 0; r < ROWS; r++) order[r] = r;
    grq_rng_shuffle(&rng, order, ROWS, sizeof *order);
    for (uint64_t r = 0; r < ROWS; r++) memcpy(shuffled + r * DIM, table + order[r] * DIM, sizeof a);
    for (size_t e = 0; grq_encoder_at(e); e++) {
        grq_codes *const before = encode(grq_encoder_at(e), table, ROWS, DIM, 3, 1), *const after = encode(
                                                                                         grq_encoder_at(e), shuffled,
                                                                                         ROWS, DIM, 3, 1);
        for (uint64_t r = 0; r < ROWS; r++) {
            grq_codes_decode(before, order[r], 3, a);
            grq_codes_decode(after, r, 3, b);
            assert_memory_equal(a, b, sizeof a);
        }
        grq_codes_close(before);
        grq_codes_close(after);
    }
    free(table);
    free(shuffled);
}

/* Twice the row has twice the scales and the same codes, while scales stay normal in FP16. */
static void powers_of_two_scale_along(void **state)
{
    (void)state;
    enum { ROWS = 100, DIM = 64 };
    float *const table = gaussian_table(ROWS, DIM, 0), *const larger = malloc(ROWS * DIM * sizeof *larger), a[DIM],
                 b[DIM];
    assert_non_null(larger);
    for (size_t i = 0; i < ROWS * DIM; i++) larger[i] = 8 * table[i];
    for (size_t e = 0; grq_encoder_at(e); e++) {
        grq_codes *const one = encode(grq_encoder_at(e), table, ROWS, DIM, 3, 1), *const eight =
                                                                                      encode(grq_encoder_at(e), larger,
                                                                                             ROWS, DIM, 3, 1);
        for (uint64_t r = 0; r < ROWS; r++) {
            grq_codes_decode(one, r, 3, a);
            grq_codes_decode(eight, r, 3, b);
            for (uint32_t i = 0; i < DIM; i++) assert_true(b[i] == 8 * a[i]);
        }
        grq_codes_close(one);
        grq_codes_close(eight);
    }
    free(table);
    free(larger);
}

/* Relative errors of Gaussian rows: at most the specification's bounds, and not more than 4 % below them, which would
 * mean a wrong denominator. 2000 rows of a fixed seed: at 32 values the lower bound is within three standard errors. */
static void gaussian_rows_have_the_known_error(void **state)
{
    (void)state;
    static const struct {
        const char *encoder;
        uint32_t dim;
        double bound[3];
    } known[] = {
        { "integer", 256, { 0.3640, 0.1305, 0.0585 } },
        { "integer", 160, { 0.3630, 0.1300, 0.0585 } },
        { "integer", 32, { 0.355, 0.1245, 0.0545 } },
        { "integer-rms", 256, { 0.4050, 0.1275, 0.0477 } },
        { "integer-rms", 160, { 0.4040, 0.1270, 0.0472 } },
        { "integer-rms", 32, { 0.395, 0.1200, 0.0428 } },
        { "pq", 256, { 0.3200, 0.1032, 0.0350 } },
        { "pq", 160, { 0.3190, 0.1025, 0.0345 } },
        { "pq", 32, { 0.311, 0.0970, 0.0310 } },
        { "tcq", 256, { 0.2670, 0.0716, 0.0193 } },
        { "tcq", 160, { 0.2695, 0.0728, 0.0198 } },
        { "tcq-t10", 256, { 0.2710, 0.0735, 0.0201 } },
        { "tcq-t10", 160, { 0.2720, 0.0742, 0.0203 } },
        { "tcq-t8", 256, { 0.2775, 0.0777, 0.0221 } },
        { "tcq-t8", 160, { 0.2777, 0.0778, 0.0221 } },
        { "tcq-t8", 64, { 0.2800, 0.0790, 0.0224 } },
        { "tcq-t8", 32, { 0.309, 0.0965, 0.0303 } },
        { "tcq-b", 256, { 0.2592, 0.0666, 0.0173 } },
        { "tcq-b", 160, { 0.2545, 0.0638, 0.0162 } },
        { "tcq-b", 64, { 0.2345, 0.0522, 0.0118 } },
        { "tcq-b", 32, { 0.204, 0.0365, 0.0067 } },
    };
    const grq_rng saved = rng;
    grq_rng_seed(&rng, 1);
    for (size_t k = 0; k < ARRAY_LEN(known); k++) {
        const grq_encoder *encoder = NULL;
        grq_error err = { 0 };
        grq_distortion d;
        float *const table = gaussian_table(2001, known[k].dim, 0);
        memset(table + 7 * known[k].dim, 0, known[k].dim * sizeof *table); /* a zero row is left out */
        assert_ok(grq_encoder_find(known[k].encoder, &encoder, &err), &err);
        grq_codes *const codes = encode(encoder, table, 2001, known[k].dim, 3, 2);
        assert_ok(distortion_of(codes, table, 2001, known[k].dim, &d, &err), &err);
        assert_true(d.n_rows == 2001 && d.n_zero_rows == 1);
        fprintf(stderr, "%-11s n %3u: %.4f %.4f %.4f\n", known[k].encoder, known[k].dim, d.relative_mse[0],
                d.relative_mse[1], d.relative_mse[2]);
        /* Bounds of short rows in format B are of two digits and some 5 % above the mean. */
        const double lowest = !strcmp(known[k].encoder, "tcq-b") && known[k].dim <= 64 ? 0.91 : 0.96;
        for (int depth = 0; depth < 3; depth++)
            if (d.relative_mse[depth] > known[k].bound[depth] || d.relative_mse[depth] < lowest * known[k].bound[depth])
                fail_msg("%s, %u values, depth %d: %.5f, bound %.5f", known[k].encoder, known[k].dim, depth + 1,
                         d.relative_mse[depth], known[k].bound[depth]);
        grq_codes_close(codes);
        free(table);
    }
    rng = saved;
}

/* With the mean-magnitude rule a further stage never makes a row worse. FP16's rounding of the scale costs at most
 * 2^-22 of the energy that is left, and half a subnormal step a value. */
static void residual_energy_never_rises(void **state)
{
    (void)state;
    enum { ROWS = 300, DIM = 64 };
    float *const table = gaussian_table(ROWS, DIM, 1), y[DIM]; /* format B's scales end at 240 */
    for (uint32_t r = 0; r < ROWS; r += 5)                     /* codes do badly on rows of few large values */
        for (uint32_t i = 0; i < DIM; i++) table[r * DIM + i] *= i % 16 ? 0x1p-9f : 1;
    for (size_t e = 0; grq_encoder_at(e); e++) {
        if (!strcmp(grq_encoder_at(e)->scale_rule, "rms")) continue;
        grq_codes *const codes = encode(grq_encoder_at(e), table, ROWS, DIM, 3, 2);
        for (uint64_t r = 0; r < ROWS; r++) {
            double before = 0;
            for (uint32_t i = 0; i < DIM; i++) before += (double)table[r * DIM + i] * table[r * DIM + i];
            for (uint32_t d = 1; d <= 3; d++) {
                double after = 0;
                grq_codes_decode(codes, r, d, y);
                for (uint32_t i = 0; i < DIM; i++)
                    after += ((double)table[r * DIM + i] - y[i]) * ((double)table[r * DIM + i] - y[i]);
                if (after > before * (1 + 0x1p-22) + DIM * 0x1p-50)
                    fail_msg("%s, row %" PRIu64 ", depth %u: %.9g after %.9g", grq_encoder_at(e)->name, r, d, after,
                             before);
                before = after;
            }
        }
        grq_codes_close(codes);
    }
    free(table);
}

static void what_cannot_be_coded_is_named(void **state)
{
    (void)state;
    enum { ROWS = 9000, DIM = 8 };
    static float table[ROWS * DIM];
    const grq_encoder *const encoder = grq_encoder_at(0);
    grq_error err = { 0 };
    grq_codes *codes = NULL;
    static const float bad[] = { NAN, HUGE_VALF, -HUGE_VALF };
    for (size_t k = 0; k < ARRAY_LEN(bad); k++)
        for (uint32_t n_threads = 1; n_threads <= 3; n_threads++) {
            /* The first one is named, though another thread meets the one that follows it sooner: blocks are of 4096.
             */
            table[8192 * DIM + 1] = table[8191 * DIM + 3] = table[8190 * DIM + 6] = bad[k];
            assert_refused(grq_codes_encode(encoder, table, ROWS, DIM, 2, NULL, n_threads, NULL, &codes, &err),
                           GRQ_E_DATA, &err, "row 8190, column 6");
            assert_null(codes);
        }
    memset(table, 0, sizeof table);
    for (uint32_t i = 0; i < DIM; i++) table[17 * DIM + i] = 65520;
    assert_refused(grq_codes_encode(encoder, table, ROWS, DIM, 1, NULL, 1, NULL, &codes, &err), GRQ_E_DATA, &err,
                   "row 17: the scale of stage 1");
    for (uint32_t i = 0; i < DIM; i++) table[17 * DIM + i] = 65519;
    codes = encode(encoder, table, ROWS, DIM, 1, 1);
    grq_codes_close(codes);
    for (uint32_t i = 0; i < DIM; i++) table[17 * DIM + i] = 3.4028235e38f;
    assert_refused(grq_codes_encode(encoder, table, ROWS, DIM, 3, NULL, 1, NULL, &codes, &err), GRQ_E_DATA, &err,
                   "FP16");
    assert_refused(grq_codes_encode(encoder, table, ROWS, DIM, 0, NULL, 1, NULL, &codes, &err), GRQ_E_USAGE, &err,
                   "0 stages");
    assert_refused(grq_codes_encode(encoder, table, ROWS, DIM, 4, NULL, 1, NULL, &codes, &err), GRQ_E_USAGE, &err,
                   "4 stages");
    assert_refused(grq_codes_encode(encoder, table, 0, DIM, 1, NULL, 1, NULL, &codes, &err), GRQ_E_DATA, &err,
                   "0 rows");
    const grq_encoder *found;
    assert_refused(grq_encoder_find("tcq9", &found, &err), GRQ_E_USAGE, &err, "integer-rms");
}

static int stop_at_once(void *context)
{
    ++*(int *)context;
    return 1;
}

static void encoding_can_be_interrupted(void **state)
{
    (void)state;
    enum { ROWS = 30000, DIM = 8 };
    float *const table = gaussian_table(ROWS, DIM, 0);
    int n_asked = 0;
    const grq_progress progress = { .stop_requested = stop_at_once, .context = &n_asked };
    grq_error err = { 0 };
    grq_codes *codes = NULL;
    assert_int_equal(grq_codes_encode(grq_encoder_at(0), table, ROWS, DIM, 1, NULL, 2, &progress, &codes, &err),
                     GRQ_E_INTERRUPTED);
    assert_null(codes);
    assert_true(n_asked > 0);
    free(table);
}

/* ---- files ---- */

/* Mappings start at a page, so a pointer tells the place in the file. */
static void check_alignment(const char *path)
{
    grq_error err = { 0 };
    grq_safetensors *file = NULL;
    assert_ok(grq_safetensors_open(path, &file, &err), &err);
    for (size_t i = 0; i < grq_safetensors_count(file); i++) {
        const grq_tensor *const t = grq_safetensors_at(file, i);
        if (!strstr(t->name, ".pad") && (uintptr_t)t->data % 64) fail_msg("%s starts at %p", t->name, t->data);
    }
    grq_safetensors_close(file);
}

static void a_file_reads_back_as_itself(void **state)
{
    (void)state;
    static const uint32_t dims[] = { 1, 2, 7, 8, 31, 32, 33, 160, 256, 32, 64, 96, 128, 160 };
    grq_error err = { 0 };
    for (size_t k = 0; k < ARRAY_LEN(dims); k++)
        for (uint32_t n_stages = 1; n_stages <= 3; n_stages++) {
            const uint64_t rows = between(1, 40);
            float *const table = gaussian_table(rows, dims[k], 1), a[256], b[256];
            const grq_encoder *const encoder = grq_encoder_at((k + n_stages) % 7);
            if (dims[k] % encoder->dim_multiple) {
                free(table);
                continue;
            }
            grq_codes *const made = encode(encoder, table, rows, dims[k], n_stages, 1), *read = NULL;
            assert_ok(grq_codes_save(made, test_path("a.safetensors"), &err), &err);
            check_alignment(test_path("a.safetensors"));
            assert_ok(grq_codes_open(test_path("a.safetensors"), &read, &err), &err);
            assert_true(grq_codes_encoder(read) == encoder && grq_codes_n_rows(read) == rows &&
                        grq_codes_row_dim(read) == dims[k]);
            assert_int_equal(grq_codes_n_stages(read), n_stages);
            assert_string_equal(grq_codes_origin_of(read)->family, "random");
            assert_int_equal(grq_codes_origin_of(read)->layer, 14);
            assert_string_equal(grq_codes_origin_of(read)->source, "table.safetensors:rows");
            assert_int_equal(strlen(grq_codes_origin_of(read)->source_digest), 64);
            for (uint64_t r = 0; r < rows; r++)
                for (uint32_t d = 1; d <= n_stages; d++) {
                    grq_codes_decode(made, r, d, a);
                    grq_codes_decode(read, r, d, b);
                    assert_memory_equal(a, b, dims[k] * sizeof *a);
                }
            /* Saved again, also over the file that is mapped: the same bytes. */
            size_t n1, n2;
            char *const first = file_bytes(test_path("a.safetensors"), &n1);
            assert_ok(grq_codes_save(read, test_path("a.safetensors"), &err), &err);
            char *const second = file_bytes(test_path("a.safetensors"), &n2);
            assert_int_equal(n1, n2);
            assert_memory_equal(first, second, n1);
            free(first);
            free(second);
            grq_codes_close(made);
            grq_codes_close(read);
            free(table);
        }
    assert_int_equal(test_count_files(".tmp-"), 0);
}

/* A valid file of 3 rows of 8 values in one stage, of which a test changes one thing. The order of planes is free; here
 * it needs no padding. */
enum { SCALE, CODE, CODED_DIGESTS, SOURCE_DIGESTS };
typedef struct {
    grq_metadata metadata[16];
    size_t n_metadata;
    grq_tensor tensors[6];
    size_t n_tensors;
    uint8_t codes[64], digests[32];
    uint16_t scales[32];
} parts;

static void make_parts(parts *p)
{
    *p = (parts){
        .metadata = { { "format", "gaterq-codes-2" },
                      { "family", "f" },
                      { "layer", "1" },
                      { "encoder", "integer" },
                      { "scale_rule", "opt" },
                      { "rows", "3" },
                      { "row_dim", "8" },
                      { "stages", "1" },
                      { "exp_tab", "0" },
                      { "source", "s" },
                      { "source_digest", "d" },
                      { "block_rows", "4096" },
                      { "digest", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" } },
        .n_metadata = 13,
        .tensors = { [SCALE] = { .name = "stage1.scale", .dtype = GRQ_F16, .rank = 1, .shape = { 3 }, .n_bytes = 6 },
                     [CODE] = { .name = "stage1.code", .dtype = GRQ_U8, .rank = 2, .shape = { 3, 1 }, .n_bytes = 3 } },
        .n_tensors = 4,
        .scales = { 0x3C00, 0x0001, 0x7BFF },
    };
    p->tensors[CODED_DIGESTS] = (grq_tensor){
        .name = "blocks.sha256", .dtype = GRQ_U8, .rank = 2, .shape = { 1, 32 }, .n_bytes = 32, .data = p->digests
    };
    p->tensors[SOURCE_DIGESTS] = p->tensors[CODED_DIGESTS];
    p->tensors[SOURCE_DIGESTS].name = "blocks.source_sha256";
    p->tensors[CODE].data = p->codes;
    p->tensors[SCALE].data = p->scales;
}

static void set_metadata(parts *p, const char *key, const char *value)
{
    for (size_t i = 0; i < p->n_metadata; i++)
        if (!strcmp(p->metadata[i].key, key)) {
            p->metadata[i].value = value;
            return;
        }
    fail_msg("no metadata %s", key);
}

static void expect_refused(const parts *p, const char *text)
{
    grq_error err = { 0 };
    grq_codes *codes = NULL;
    const char *const path = test_path("damaged.safetensors");
    assert_ok(grq_safetensors_write(path, p->tensors, p->n_tensors, p->metadata, p->n_metadata, &err), &err);
    assert_refused(grq_codes_open(path, &codes, &err), GRQ_E_DATA, &err, text);
    assert_null(codes);
    if (!strstr(err.message, "damaged.safetensors")) fail_msg("the message does not name the file: %s", err.message);
}

static void damaged_parts_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *text;
    } metadata[] = {
        { "format", "gaterq-codes-1", "encode the table again" },
        { "encoder", "tcq9", "tcq9" },
        { "stages", "0", "stages" },
        { "stages", "4", "stages" },
        { "stages", "2", "stage2.code" },
        { "rows", "4", "stage1.code" },
        { "rows", "0", "rows" },
        { "rows", "-3", "rows" },
        { "rows", "3x", "rows" },
        { "row_dim", "9", "stage1.code" },
        { "row_dim", "0", "row_dim" },
        { "row_dim", "65537", "row_dim" },
        { "exp_tab", "101", "exp_tab" },
        { "exp_tab", "1.5", "exp_tab" },
        { "layer", "4294967296", "layer" },
        { "rows", "99999999999999999999", "rows" },
    };
    grq_error err = { 0 };
    grq_codes *codes = NULL;
    parts p;
    make_parts(&p);
    assert_ok(
        grq_safetensors_write(test_path("good.safetensors"), p.tensors, p.n_tensors, p.metadata, p.n_metadata, &err),
        &err);
    assert_ok(grq_codes_open(test_path("good.safetensors"), &codes, &err), &err);
    grq_codes_close(codes);
    for (size_t i = 0; i < ARRAY_LEN(metadata); i++) {
        make_parts(&p);
        set_metadata(&p, metadata[i].key, metadata[i].value);
        expect_refused(&p, metadata[i].text);
    }
    for (size_t i = 0; i < 13; i++) { /* each key is needed but the rule, which decoding does not ask for */
        make_parts(&p);
        if (!strcmp(p.metadata[i].key, "scale_rule")) continue;
        const char *const missing = p.metadata[i].key;
        p.metadata[i] = p.metadata[--p.n_metadata];
        expect_refused(&p, missing);
    }
    static const uint16_t scales[] = { 0x7C00, 0x7FFF, 0x8000, 0xBC00, 0xFFFF };
    for (size_t i = 0; i < ARRAY_LEN(scales); i++) {
        make_parts(&p);
        p.scales[2] = scales[i];
        expect_refused(&p, "stage1.scale, row 2");
    }
}

static void damaged_planes_are_named(void **state)
{
    (void)state;
    parts p;
    make_parts(&p);
    p.tensors[CODE].shape[0] = 4, p.tensors[CODE].n_bytes = 4;
    expect_refused(&p, "stage1.code");
    make_parts(&p);
    p.tensors[SCALE].shape[0] = 2, p.tensors[SCALE].n_bytes = 4;
    expect_refused(&p, "stage1.scale");
    make_parts(&p);
    p.tensors[SCALE].dtype = GRQ_U16;
    expect_refused(&p, "stage1.scale");
    make_parts(&p);
    p.tensors[CODE].rank = 1;
    p.tensors[CODE].shape[0] = 3;
    expect_refused(&p, "stage1.code");
    make_parts(&p);
    p.tensors[CODE].name = "stage9.code";
    expect_refused(&p, "stage9.code");
    make_parts(&p);
    p.tensors[p.n_tensors++] =
        (grq_tensor){ .name = "more", .dtype = GRQ_U8, .rank = 1, .shape = { 2 }, .n_bytes = 2, .data = p.codes };
    expect_refused(&p, "\"more\"");
    make_parts(&p);
    p.codes[8] = 1; /* padding is zero */
    p.tensors[p.n_tensors++] = (grq_tensor){
        .name = "stage1.scale.pad", .dtype = GRQ_U8, .rank = 1, .shape = { 9 }, .n_bytes = 9, .data = p.codes
    };
    expect_refused(&p, "stage1.scale.pad");
}

/* Truncated anywhere, or with one byte flipped anywhere: an error or a table of the same shape, never a crash. */
static void torn_and_flipped_files(void **state)
{
    (void)state;
    float *const table = gaussian_table(5, 12, 0), y[12];
    grq_error err = { 0 };
    grq_codes *codes = encode(grq_encoder_at(0), table, 5, 12, 2, 1);
    assert_ok(grq_codes_save(codes, test_path("whole.safetensors"), &err), &err);
    grq_codes_close(codes);
    size_t n;
    char *const bytes = file_bytes(test_path("whole.safetensors"), &n);
    for (size_t cut = 0; cut < n; cut++) {
        test_write("torn.safetensors", bytes, cut);
        if (grq_codes_open(test_path("torn.safetensors"), &codes, &err) == GRQ_OK)
            fail_msg("the first %zu of %zu bytes were accepted", cut, n);
    }
    for (size_t i = 0; i < n; i++) {
        const char kept = bytes[i];
        bytes[i] ^= (char)(1 << grq_rng_below(&rng, 8));
        test_write("flipped.safetensors", bytes, n);
        if (grq_codes_open(test_path("flipped.safetensors"), &codes, &err) == GRQ_OK) {
            for (uint64_t r = 0; r < grq_codes_n_rows(codes); r++)
                if (grq_codes_row_dim(codes) <= 12) grq_codes_decode(codes, r, grq_codes_n_stages(codes), y);
            grq_codes_close(codes);
        }
        bytes[i] = kept;
    }
    free(bytes);
    free(table);
    assert_refused(grq_codes_open(test_path("absent.safetensors"), &codes, &err), GRQ_E_IO, &err, "absent.safetensors");
}

static void distortion_checks_its_table(void **state)
{
    (void)state;
    float *const table = gaussian_table(4, 16, 0);
    grq_codes *const codes = encode(grq_encoder_at(0), table, 4, 16, 2, 1);
    grq_error err = { 0 };
    grq_distortion d;
    assert_refused(distortion_of(codes, table, 3, 16, &d, &err), GRQ_E_DATA, &err, "3 of 16");
    assert_refused(distortion_of(codes, table, 4, 8, &d, &err), GRQ_E_DATA, &err, "4 of 8");
    table[2 * 16 + 5] = NAN;
    assert_refused(distortion_of(codes, table, 4, 16, &d, &err), GRQ_E_DATA, &err, "row 2, column 5");
    grq_codes_close(codes);
    free(table);
}

int main(void)
{
    grq_rng_seed(&rng, test_seed());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_count_writes_the_same_file),
        cmocka_unit_test(decoding_is_the_running_sum),
        cmocka_unit_test(fewer_stages_are_a_prefix),
        cmocka_unit_test(rows_are_coded_alone),
        cmocka_unit_test(powers_of_two_scale_along),
        cmocka_unit_test(gaussian_rows_have_the_known_error),
        cmocka_unit_test(residual_energy_never_rises),
        cmocka_unit_test(what_cannot_be_coded_is_named),
        cmocka_unit_test(encoding_can_be_interrupted),
        cmocka_unit_test(a_file_reads_back_as_itself),
        cmocka_unit_test(damaged_parts_are_named),
        cmocka_unit_test(damaged_planes_are_named),
        cmocka_unit_test(torn_and_flipped_files),
        cmocka_unit_test(distortion_checks_its_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
