/* The files that test_layer.sh works with, made and compared:
 *     layer_files checkpoint KIND DIR [CODES DEPTH]   a small checkpoint; its table as CODES have it, in F32
 *     layer_files input X.h5 KIND FIRST N [FAULT]     tokens FIRST to FIRST + N - 1 of one random text, or spoilt
 *     layer_files compare A.h5 B.h5 LIMIT [FIRST]     /hidden and /gates of B against those of A from row FIRST on:
 *                                                     |a - b| at most LIMIT (1 + |a|); prints the largest such quotient
 *     layer_files shift T.h5 BY                       adds BY to every number in a trace's /positions/position
 */
#include "checkpoint_kinds.h"

#include <hdf5.h>

#include "base/h5.h"
#include "gaterq/codec.h"

static grq_error err;

enum { TEXT = 300 };

static void stop(const char *what)
{
    fprintf(stderr, "layer_files: %s: %s\n", what, err.message);
    exit(2);
}

/* ---- checkpoint ---- */

static bool is_table(const char *name)
{
    return strstr(name, "embed.weight") || strstr(name, "shard_") || !strcmp(name, "memory.1.table");
}

/* Rows in the order of the file's tensors, which is that of the pieces; other layers' tables stay. */
static void put_decoded(test_checkpoint *c, const char *path, uint32_t depth)
{
    grq_codes *codes;
    if (grq_codes_open(path, &codes, &err) != GRQ_OK) stop(path);
    const uint32_t dim = grq_codes_row_dim(codes);
    float *const row = malloc(dim * sizeof *row);
    uint64_t done = 0;
    for (size_t i = 0; i < c->n_tensors; i++) {
        test_tensor *const t = &c->tensors[i];
        if (!is_table(t->name) || strstr(t->name, "layers.3.")) continue;
        char name[160];
        snprintf(name, sizeof name, "%s", t->name);
        test_reshape(c, name, GRQ_F32, 2, t->shape);
        for (uint64_t r = 0; r < t->shape[0]; r++) {
            grq_codes_decode(codes, done++, depth, row);
            for (uint32_t k = 0; k < dim; k++) test_set_number(t, r * dim + k, row[k]);
        }
    }
    if (done != grq_codes_n_rows(codes)) stop("the codes have another number of rows");
    free(row);
    grq_codes_close(codes);
}

static int make_checkpoint(int argc, char **argv)
{
    test_checkpoint c = { 0 };
    const char *const kind = argv[0];
    snprintf(c.folder, sizeof c.folder, "%s", argv[1]);
    if (mkdir(c.folder, 0777) != 0) stop(c.folder);
    grq_rng_seed(&c.rng, 7);
    if (!strcmp(kind, "deepseek")) kind_deepseek(&c);
    else if (!strcmp(kind, "qwen")) kind_qwen(&c, GRQ_BF16, 0);
    else if (!strcmp(kind, "qwen-fp8")) kind_qwen(&c, GRQ_F8_E4M3, 1);
    else if (!strcmp(kind, "own")) kind_own(&c, GRQ_F32, GRQ_BF16);
    else if (!strcmp(kind, "own-fp8")) kind_own(&c, GRQ_F8_E4M3, GRQ_F8_E4M3);
    else stop(kind);
    if (argc > 3) put_decoded(&c, argv[2], (uint32_t)atoi(argv[3]));
    test_save(&c);
    test_checkpoint_free(&c);
    return 0;
}

/* ---- input ---- */

static void put(grq_h5 *file, const char *name, grq_h5_type type, uint32_t rank, uint64_t a, uint64_t b, uint64_t n,
                const void *rows)
{
    const grq_h5_spec spec = {
        .name = name, .type = type, .rank = rank, .shape = { 0, a, b }, .units = "1", .description = "random"
    };
    if (grq_h5_write(file, &spec, n, rows, NULL, &err) != GRQ_OK) stop(name);
}

/* The text has two sequences, 0 to 99 and 100 on; DeepSeek's has positions that are no text. */
static int make_input(int argc, char **argv)
{
    static int32_t ids[TEXT], sequences[TEXT];
    static float h[TEXT][KIND_BRANCHES][KIND_WIDTH];
    static int64_t wide[TEXT];
    const size_t first = strtoul(argv[2], NULL, 10), n = strtoul(argv[3], NULL, 10);
    const char *const fault = argc > 4 ? argv[4] : "";
    if (first + n > TEXT) stop("the text is shorter");
    grq_rng rng;
    grq_rng_seed(&rng, 11);
    for (size_t t = 0; t < TEXT; t++) {
        ids[t] = (int32_t)grq_rng_below(&rng, KIND_IDS);
        if (!strcmp(argv[1], "deepseek") && t % 17 == 5) ids[t] = -1;
        sequences[t] = t >= 100;
        wide[t] = ids[t];
        for (size_t i = 0; i < KIND_CHANNELS; i++) h[t][i / KIND_WIDTH][i % KIND_WIDTH] = (float)grq_rng_normal(&rng);
    }
    if (!strcmp(fault, "id")) ids[first + 9] = KIND_IDS;
    if (!strcmp(fault, "negative")) ids[first + 9] = -2;
    if (!strcmp(fault, "dead")) ids[first + 9] = -1;
    if (!strcmp(fault, "nan")) h[first + 9][1][4] = NAN;
    if (!strcmp(fault, "large")) h[first + 7][0][2] = 3.4e38f; /* infinite in BF16 */
    if (!strcmp(fault, "infinite")) h[first + n - 1][0][23] = -HUGE_VALF;
    grq_h5 *file;
    if (grq_h5_create(argv[0], &file, &err) != GRQ_OK) stop(argv[0]);
    if (!strcmp(fault, "wide-ids")) put(file, "/ids", GRQ_H5_I64, 1, 0, 0, n, wide + first);
    else if (!strcmp(fault, "square-ids")) put(file, "/ids", GRQ_H5_I32, 2, 1, 0, n, ids + first);
    else if (strcmp(fault, "no-ids")) put(file, "/ids", GRQ_H5_I32, 1, 0, 0, n, ids + first);
    if (!strcmp(fault, "flat")) put(file, "/hidden", GRQ_H5_F32, 2, KIND_CHANNELS, 0, n, h[first]);
    else if (!strcmp(fault, "swapped")) put(file, "/hidden", GRQ_H5_F32, 3, KIND_WIDTH, KIND_BRANCHES, n, h[first]);
    else if (!strcmp(fault, "short")) put(file, "/hidden", GRQ_H5_F32, 3, KIND_BRANCHES, KIND_WIDTH, n - 1, h[first]);
    else if (!strcmp(fault, "integers")) put(file, "/hidden", GRQ_H5_I32, 3, KIND_BRANCHES, KIND_WIDTH, n, h[first]);
    else if (strcmp(fault, "no-hidden")) put(file, "/hidden", GRQ_H5_F32, 3, KIND_BRANCHES, KIND_WIDTH, n, h[first]);
    if (!strcmp(fault, "sequences")) put(file, "/sequence", GRQ_H5_I32, 1, 0, 0, n, sequences + first);
    if (!strcmp(fault, "short-sequences")) put(file, "/sequence", GRQ_H5_I32, 1, 0, 0, n - 1, sequences + first);
    if (grq_h5_commit(file, &err) != GRQ_OK) stop(argv[0]);
    return 0;
}

/* ---- compare ---- */

static float *read_floats(const char *path, const char *name, uint32_t rank, uint64_t *n, size_t *n_row)
{
    grq_h5 *file;
    uint64_t shape[3] = { 0, 1, 1 };
    void *data;
    if (grq_h5_open(path, &file, &err) != GRQ_OK) stop(path);
    if (grq_h5_read(file, name, GRQ_H5_F32, rank, NULL, shape, &data, &err) != GRQ_OK) stop(path);
    grq_h5_close(file);
    *n = shape[0];
    *n_row = shape[1] * shape[2];
    return data;
}

static int compare(int argc, char **argv)
{
    static const char *const names[] = { "/gates", "/hidden" };
    const double limit = strtod(argv[2], NULL);
    const size_t first = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    double most = 0;
    for (uint32_t d = 0; d < 2; d++) {
        uint64_t n_a, n_b;
        size_t row_a, row_b;
        float *const a = read_floats(argv[0], names[d], d + 2, &n_a, &row_a);
        float *const b = read_floats(argv[1], names[d], d + 2, &n_b, &row_b);
        if (row_a != row_b || first + n_b > n_a) stop("the files have other shapes");
        for (size_t i = 0; i < n_b * row_b; i++) {
            const double x = (double)a[first * row_a + i], y = (double)b[i], off = fabs(x - y) / (1 + fabs(x));
            if (!isfinite(x) || !isfinite(y)) stop("a number that is none");
            if (off > most) most = off;
        }
        free(a);
        free(b);
    }
    printf("%.3g\n", most);
    return most <= limit ? 0 : 1;
}

/* ---- shift ---- */

static int shift_positions(int argc, char **argv)
{
    (void)argc;
    const hid_t file = H5Fopen(argv[0], H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t dataset = H5Dopen(file, "/positions/position", H5P_DEFAULT), space = H5Dget_space(dataset);
    const size_t n = (size_t)H5Sget_simple_extent_npoints(space);
    uint32_t *const positions = malloc(n * sizeof *positions);
    bool good = H5Dread(dataset, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, positions) >= 0;
    for (size_t i = 0; i < n; i++) positions[i] += (uint32_t)strtoul(argv[1], NULL, 10);
    good = good && H5Dwrite(dataset, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, positions) >= 0;
    free(positions);
    H5Sclose(space);
    H5Dclose(dataset);
    return H5Fclose(file) >= 0 && good ? 0 : 2;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int n_least;
        int (*run)(int argc, char **argv);
    } commands[] = { { "checkpoint", 2, make_checkpoint },
                     { "input", 4, make_input },
                     { "compare", 3, compare },
                     { "shift", 2, shift_positions } };
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (argc > 1 && !strcmp(argv[1], commands[i].name) && argc - 2 >= commands[i].n_least)
            return commands[i].run(argc - 2, argv + 2);
    fprintf(stderr, "usage: layer_files checkpoint|input|compare|shift ...\n");
    return 2;
}
