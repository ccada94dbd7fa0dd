/* tests/checkpoint_support.h - tiny checkpoint folders, put together tensor by tensor and spoilt at will. */
#ifndef GATERQ_TESTS_CHECKPOINT_SUPPORT_H
#define GATERQ_TESTS_CHECKPOINT_SUPPORT_H

#include "support.h"

#include "gaterq/rng.h"
#include "gaterq/safetensors.h"
#include "shared/number.h"

enum { TEST_MAX_TENSORS = 96 };

typedef struct {
    char name[160], file[64]; /* of the tensor, and of the file that holds it */
    grq_dtype dtype;
    uint32_t rank;
    uint64_t shape[4], n_bytes;
    uint8_t *bytes;
} test_tensor;

typedef struct {
    char folder[PATH_MAX], config_name[64], config[2048]; /* no config when config_name is "" */
    test_tensor tensors[TEST_MAX_TENSORS];
    size_t n_tensors;
    bool index; /* save with model.safetensors.index.json */
    grq_rng rng;
} test_checkpoint;

static inline void test_checkpoint_new(test_checkpoint *c, const char *name)
{
    *c = (test_checkpoint){ 0 };
    snprintf(c->folder, sizeof c->folder, "%s", test_path(name));
    nftw(c->folder, test_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (mkdir(c->folder, 0700) != 0) fail_msg("%s: %s", c->folder, strerror(errno));
    grq_rng_seed(&c->rng, 7);
}

static inline void test_checkpoint_free(test_checkpoint *c)
{
    for (size_t i = 0; i < c->n_tensors; i++) free(c->tensors[i].bytes);
}

/* ---- tensors ---- */

static inline uint64_t test_elements(const test_tensor *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) n *= t->shape[i];
    return n;
}

static inline void test_set(test_tensor *t, uint64_t i, const void *element)
{
    const size_t size = grq_dtype_bytes(t->dtype);
    if (i >= test_elements(t)) fail_msg("%s has no element %" PRIu64, t->name, i);
    memcpy(t->bytes + i * size, element, size);
}

/* Stores x as the nearest number of the tensor's dtype. */
static inline void test_set_number(test_tensor *t, uint64_t i, float x)
{
    const uint16_t bf16 = grq_bf16_from_f32(x), f16 = grq_f16_from_f32(x);
    const uint8_t e4m3 = grq_e4m3_from_f32(x);
    test_set(t, i,
             t->dtype == GRQ_F32    ? (const void *)&x
             : t->dtype == GRQ_BF16 ? &bf16
             : t->dtype == GRQ_F16  ? &f16
                                    : (const void *)&e4m3);
}

/* The number that is stored, without any scale. */
static inline float test_number(const test_tensor *t, uint64_t i)
{
    uint16_t half;
    float single;
    switch (t->dtype) {
    case GRQ_F32: memcpy(&single, t->bytes + 4 * i, 4); return single;
    case GRQ_BF16: memcpy(&half, t->bytes + 2 * i, 2); return grq_f32_from_bf16(half);
    case GRQ_F16: memcpy(&half, t->bytes + 2 * i, 2); return grq_f32_from_f16(half);
    case GRQ_F8_E4M3: return grq_f32_from_e4m3(t->bytes[i]);
    case GRQ_F8_E8M0: return grq_f32_from_e8m0(t->bytes[i]);
    default: fail_msg("%s: %s holds no real numbers", t->name, grq_dtype_name(t->dtype)); return 0;
    }
}

/* Appends a tensor of random numbers: normal around 0 with this deviation, scales from 2^-9 to 2^-5, integers 0. */
static inline test_tensor *test_add(test_checkpoint *c, const char *file, const char *name, grq_dtype dtype,
                                    uint32_t rank, const uint64_t *shape, double deviation)
{
    assert_true(c->n_tensors < TEST_MAX_TENSORS);
    test_tensor *const t = &c->tensors[c->n_tensors++];
    *t = (test_tensor){ .dtype = dtype, .rank = rank };
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->file, sizeof t->file, "%s", file);
    for (uint32_t i = 0; i < rank; i++) t->shape[i] = shape[i];
    const uint64_t n = test_elements(t);
    t->n_bytes = n * grq_dtype_bytes(dtype);
    t->bytes = calloc(1, t->n_bytes + 1);
    for (uint64_t i = 0; i < n; i++) {
        if (dtype == GRQ_F8_E8M0) t->bytes[i] = (uint8_t)(118 + grq_rng_below(&c->rng, 5));
        else if (dtype == GRQ_F32 || dtype == GRQ_BF16 || dtype == GRQ_F16 || dtype == GRQ_F8_E4M3)
            test_set_number(t, i, (float)(deviation * grq_rng_normal(&c->rng)));
    }
    return t;
}

/* The tensor whose name ends in `suffix`; fails the test when there is none. */
static inline test_tensor *test_tensor_of(test_checkpoint *c, const char *suffix)
{
    for (size_t i = 0; i < c->n_tensors; i++) {
        const size_t n = strlen(c->tensors[i].name), n_suffix = strlen(suffix);
        if (n >= n_suffix && !strcmp(c->tensors[i].name + n - n_suffix, suffix)) return &c->tensors[i];
    }
    fail_msg("the checkpoint has no tensor ...%s", suffix);
    return NULL;
}

static inline void test_drop(test_checkpoint *c, const char *suffix)
{
    test_tensor *const t = test_tensor_of(c, suffix);
    free(t->bytes);
    const size_t after = (size_t)(c->tensors + c->n_tensors - (t + 1));
    memmove(t, t + 1, after * sizeof *t);
    c->n_tensors--;
}

/* Another dtype and shape for the same name; zeros. */
static inline void test_reshape(test_checkpoint *c, const char *suffix, grq_dtype dtype, uint32_t rank,
                                const uint64_t *shape)
{
    test_tensor *const t = test_tensor_of(c, suffix);
    t->dtype = dtype;
    t->rank = rank;
    for (uint32_t i = 0; i < rank; i++) t->shape[i] = shape[i];
    free(t->bytes);
    t->n_bytes = test_elements(t) * grq_dtype_bytes(dtype);
    t->bytes = calloc(1, t->n_bytes + 1);
}

/* ---- the configuration's text ---- */

static inline void test_replace(test_checkpoint *c, const char *from, const char *to)
{
    char *const at = strstr(c->config, from);
    if (!at) fail_msg("the config has no %s: %s", from, c->config);
    char rest[sizeof c->config];
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    snprintf(at, sizeof c->config - (size_t)(at - c->config), "%s%s", to, rest);
}

/* ---- on disk ---- */

static inline void test_save_file(const test_checkpoint *c, const char *file)
{
    grq_tensor tensors[TEST_MAX_TENSORS];
    size_t n = 0;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const test_tensor *const t = &c->tensors[i];
        if (strcmp(t->file, file)) continue;
        tensors[n] = (grq_tensor){
            .name = t->name, .dtype = t->dtype, .rank = t->rank, .n_bytes = t->n_bytes, .data = t->bytes
        };
        memcpy(tensors[n++].shape, t->shape, sizeof t->shape);
    }
    char path[PATH_MAX + 80];
    grq_error err = { 0 };
    snprintf(path, sizeof path, "%s/%s", c->folder, file);
    assert_ok(grq_safetensors_write(path, tensors, n, NULL, 0, &err), &err);
}

static inline void test_save_text(const test_checkpoint *c, const char *name, const char *text)
{
    char path[PATH_MAX + 80];
    snprintf(path, sizeof path, "%s/%s", c->folder, name);
    FILE *const f = fopen(path, "wb");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) fail_msg("%s: %s", path, strerror(errno));
}

/* Config, safetensors files and, where wanted, their index; returns the folder. */
static inline const char *test_save(const test_checkpoint *c)
{
    char *const index = calloc(TEST_MAX_TENSORS, 256);
    size_t used = (size_t)sprintf(index, "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {");
    for (size_t i = 0; i < c->n_tensors; i++) {
        size_t before = 0;
        while (strcmp(c->tensors[before].file, c->tensors[i].file)) before++;
        if (before == i) test_save_file(c, c->tensors[i].file);
        used +=
            (size_t)sprintf(index + used, "%s\"%s\": \"%s\"", i ? ", " : "", c->tensors[i].name, c->tensors[i].file);
    }
    sprintf(index + used, "}}");
    if (c->index) test_save_text(c, "model.safetensors.index.json", index);
    if (c->config_name[0]) test_save_text(c, c->config_name, c->config);
    free(index);
    return c->folder;
}

#endif
