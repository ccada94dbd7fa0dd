/* The safetensors reader: an accepted file hands out tensors that lie inside it, behind each other, without holes. */
#include "gaterq/safetensors.h"

#include <string.h>

#include "fuzz.h"
#include "safetensors_mutator.h"

/* By name, with the right and with a wrong dtype and shape. */
static void get(const grq_safetensors *file, const grq_tensor *t)
{
    const grq_tensor *found;
    grq_error err;
    const grq_status st = grq_safetensors_get(file, t->name, t->dtype, t->rank, t->shape, &found, &err);
    const uintptr_t misaligned = (uintptr_t)t->data % grq_dtype_bytes(t->dtype);
    if (st == GRQ_OK) fuzz_require(found == t, "a name leads to another tensor");
    else fuzz_refused(st, &err);
    fuzz_require((st == GRQ_OK) == (t->n_bytes == 0 || misaligned == 0), "only a misaligned tensor may be refused");
    const uint64_t other[GRQ_MAX_RANK] = { UINT64_MAX };
    const grq_status wrong =
        grq_safetensors_get(file, t->name, t->dtype == GRQ_F32 ? GRQ_I8 : GRQ_F32, 1, other, &found, &err);
    fuzz_require(wrong == GRQ_E_DATA && !found, "a wrong dtype is accepted");
    fuzz_refused(wrong, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    grq_safetensors *file;
    grq_error err;
    const grq_status st = grq_safetensors_open(fuzz_file(data, size), &file, &err);
    if (st != GRQ_OK) {
        fuzz_refused(st, &err);
        fuzz_require(!file, "a refused file is handed out");
        return 0;
    }
    fuzz_accepted = 1;
    uint64_t n_header = 0, n_data = 0;
    memcpy(&n_header, data, sizeof n_header);
    const char *next = NULL;
    for (size_t i = 0; i < grq_safetensors_count(file); i++) {
        const grq_tensor *const t = grq_safetensors_at(file, i);
        if (next) fuzz_require((const char *)t->data == next, "a tensor does not follow the one before it");
        next = (const char *)t->data + t->n_bytes;
        fuzz_touch_ends(t->data, t->n_bytes);
        if (t->n_bytes)
            fuzz_require(!memcmp(t->data, data + 8 + n_header + n_data, t->n_bytes), "a tensor's bytes are others");
        n_data += t->n_bytes;
        fuzz_require(grq_safetensors_find(file, t->name) == t, "a tensor is not found by its name");
        get(file, t);
    }
    fuzz_require(8 + n_header + n_data == size, "tensors and header are not the whole file");
    fuzz_require(!grq_safetensors_at(file, grq_safetensors_count(file)), "a tensor behind the last");
    static const char *const keys[] = { "format", "a", "", "missing" };
    for (int i = 0; i < 4; i++) {
        const char *const value = grq_safetensors_metadata(file, keys[i]);
        if (value) fuzz_touch(value, strlen(value) + 1);
    }
    fuzz_touch(grq_safetensors_path(file), 1);
    grq_safetensors_close(file);
    return 0;
}
