/* Datasets read back, with every claim of the file checked before memory is asked for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/h5_internal.h"

/* Deflate cannot shrink by more than about 1032; a dataset that says it holds more is lying. */
enum { MAX_COMPRESSION = 1100, SPARE_BYTES = 1 << 16 };

typedef struct {
    hid_t id, space;
    uint64_t shape[GRQ_H5_MAX_RANK];
    size_t n_bytes, row_bytes;
} opened;

static void close_opened(const opened *d)
{
    if (d->space >= 0) H5Sclose(d->space);
    if (d->id >= 0) H5Dclose(d->id);
}

/* "(4096, any)" */
static void print_shape(const uint64_t *shape, uint32_t rank, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "(");
    for (uint32_t i = 0; i < rank && n < room; i++) {
        const char *const between = i ? ", " : "";
        n += (size_t)(shape && shape[i] != GRQ_H5_ANY ? snprintf(text + n, room - n, "%s%" PRIu64, between, shape[i])
                                                      : snprintf(text + n, room - n, "%sany", between));
    }
    if (n < room) snprintf(text + n, room - n, ")");
}

static grq_status check_type(const grq_h5 *file, const char *name, hid_t id, grq_h5_type type, grq_error *err)
{
    const hid_t have = H5Dget_type(id);
    if (have < 0) return grq_h5_fail(file, name, "has no type that can be read", err);
    const H5T_class_t kind = H5Tget_class(have);
    const size_t n_bytes = H5Tget_size(have);
    const bool is_signed = kind == H5T_INTEGER && H5Tget_sign(have) == H5T_SGN_2;
    H5Tclose(have);
    const bool want_float = type == GRQ_H5_F32, want_signed = type == GRQ_H5_I32 || type == GRQ_H5_I64;
    const bool right = n_bytes == grq_h5_type_bytes(type) &&
                       (want_float ? kind == H5T_FLOAT : kind == H5T_INTEGER && is_signed == want_signed);
    if (right) return GRQ_OK;
    char found[32] = "of another kind";
    if (kind == H5T_FLOAT || kind == H5T_INTEGER)
        snprintf(found, sizeof found, "%s%zu", kind == H5T_FLOAT ? "float" : is_signed ? "int" : "uint", n_bytes * 8);
    return grq_fail(err, GRQ_E_DATA, "%s: %s: must be %s, is %s", file->path, name, grq_h5_type_name(type), found);
}

static grq_status check_shape(const grq_h5 *file, const char *name, uint32_t rank, const uint64_t *expected, opened *d,
                              grq_error *err)
{
    hsize_t shape[H5S_MAX_RANK];
    const bool simple = H5Sget_simple_extent_type(d->space) == H5S_SIMPLE;
    const int have = simple ? H5Sget_simple_extent_dims(d->space, shape, NULL) : -1;
    bool right = have == (int)rank;
    for (uint32_t i = 0; right && i < rank; i++) {
        d->shape[i] = shape[i];
        right = !expected || expected[i] == GRQ_H5_ANY || expected[i] == shape[i];
    }
    if (right) return GRQ_OK;
    char want[160], found[160] = "no array";
    print_shape(expected, rank, want, sizeof want);
    uint64_t listed[H5S_MAX_RANK];
    for (int i = 0; i < have; i++) listed[i] = shape[i];
    if (have >= 0) print_shape(listed, (uint32_t)have, found, sizeof found);
    return grq_fail(err, GRQ_E_DATA, "%s: %s: must have the shape %s, has %s", file->path, name, want, found);
}

static grq_status check_bytes(const grq_h5 *file, const char *name, grq_h5_type type, uint32_t rank, opened *d,
                              grq_error *err)
{
    bool fits = true;
    d->row_bytes = grq_h5_type_bytes(type);
    for (uint32_t i = 1; i < rank; i++)
        fits = fits && !__builtin_mul_overflow(d->row_bytes, d->shape[i], &d->row_bytes);
    fits = fits && !__builtin_mul_overflow(d->row_bytes, d->shape[0], &d->n_bytes);
    const uint64_t stored = H5Dget_storage_size(d->id);
    if (fits && d->n_bytes / MAX_COMPRESSION <= stored + SPARE_BYTES) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "%s: %s: its shape needs more data than the %" PRIu64 " bytes stored can hold",
                    file->path, name, stored);
}

/* Values must lie in this file. A virtual dataset takes them from others; HDF5 1.10 recurses until the stack ends where
 * one leads back to itself. External storage would read whatever file the file names. */
static grq_status check_layout(const grq_h5 *file, const char *name, hid_t id, grq_error *err)
{
    const hid_t list = H5Dget_create_plist(id);
    const H5D_layout_t layout = list >= 0 ? H5Pget_layout(list) : H5D_LAYOUT_ERROR;
    const int n_external = list >= 0 ? H5Pget_external_count(list) : -1;
    if (list >= 0) H5Pclose(list);
    if (layout == H5D_LAYOUT_ERROR || n_external < 0)
        return grq_h5_fail(file, name, "has no layout that can be read", err);
    if (layout != H5D_VIRTUAL && n_external == 0) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA, "%s: %s: is %s dataset; only values stored in the file itself are read",
                    file->path, name, layout == H5D_VIRTUAL ? "a virtual" : "an external");
}

static grq_status open_dataset(grq_h5 *file, const char *name, grq_h5_type type, uint32_t rank,
                               const uint64_t *expected, opened *d, grq_error *err)
{
    *d = (opened){ .id = H5I_INVALID_HID, .space = H5I_INVALID_HID };
    if (rank < 1 || rank > GRQ_H5_MAX_RANK)
        return grq_fail(err, GRQ_E_DATA, "%s: %s: datasets of %" PRIu32 " axes are not read", file->path, name, rank);
    if (!grq_h5_exists(file, name))
        return grq_fail(err, GRQ_E_DATA, "%s: %s: the dataset (%s) is missing", file->path, name,
                        grq_h5_type_name(type));
    grq_status st = GRQ_OK;
    d->id = H5Dopen2(file->id, name, H5P_DEFAULT);
    if (d->id >= 0) d->space = H5Dget_space(d->id);
    if (d->space < 0) {
        st = grq_h5_fail(file, name, "is not a dataset that can be opened", err);
    }
    if (st == GRQ_OK) st = check_layout(file, name, d->id, err);
    if (st == GRQ_OK) st = check_type(file, name, d->id, type, err);
    if (st == GRQ_OK) st = check_shape(file, name, rank, expected, d, err);
    if (st == GRQ_OK) st = check_bytes(file, name, type, rank, d, err);
    if (st != GRQ_OK) close_opened(d);
    return st;
}

grq_status grq_h5_shape(grq_h5 *file, const char *name, grq_h5_type type, uint32_t rank, const uint64_t *expected,
                        uint64_t *shape, grq_error *err)
{
    opened d;
    const grq_status st = open_dataset(file, name, type, rank, expected, &d, err);
    if (st != GRQ_OK) return st;
    memcpy(shape, d.shape, rank * sizeof *shape);
    close_opened(&d);
    return GRQ_OK;
}

grq_status grq_h5_read(grq_h5 *file, const char *name, grq_h5_type type, uint32_t rank, const uint64_t *expected,
                       uint64_t *shape, void **data, grq_error *err)
{
    *data = NULL;
    opened d;
    grq_status st = open_dataset(file, name, type, rank, expected, &d, err);
    if (st != GRQ_OK) return st;
    void *bytes = malloc(d.n_bytes ? d.n_bytes : 1);
    if (!bytes) st = grq_fail(err, GRQ_E_NOMEM, "%s: %s: no memory for %zu bytes", file->path, name, d.n_bytes);
    else if (d.n_bytes && H5Dread(d.id, grq_h5_native(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) < 0)
        st = grq_h5_fail(file, name, "cannot be read", err);
    if (st == GRQ_OK) {
        *data = bytes;
        if (shape) memcpy(shape, d.shape, rank * sizeof *shape);
    } else {
        free(bytes);
    }
    close_opened(&d);
    return st;
}

grq_status grq_h5_read_rows(grq_h5 *file, const char *name, grq_h5_type type, uint32_t rank, const uint64_t *expected,
                            uint64_t first, uint64_t n_rows, void *rows, grq_error *err)
{
    opened d;
    grq_status st = open_dataset(file, name, type, rank, expected, &d, err);
    if (st != GRQ_OK) return st;
    if (first > d.shape[0] || n_rows > d.shape[0] - first) {
        st = grq_fail(err, GRQ_E_DATA, "%s: %s: has %" PRIu64 " rows; %" PRIu64 " from row %" PRIu64 " were asked for",
                      file->path, name, d.shape[0], n_rows, first);
    } else if (n_rows > 0 && d.row_bytes > 0) {
        hsize_t start[GRQ_H5_MAX_RANK] = { first }, count[GRQ_H5_MAX_RANK] = { n_rows };
        for (uint32_t i = 1; i < rank; i++) count[i] = d.shape[i];
        const hid_t memory = H5Screate_simple((int)rank, count, NULL);
        if (memory < 0 || H5Sselect_hyperslab(d.space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
            H5Dread(d.id, grq_h5_native(type), memory, d.space, H5P_DEFAULT, rows) < 0)
            st = grq_h5_fail(file, name, "cannot be read", err);
        if (memory >= 0) H5Sclose(memory);
    }
    close_opened(&d);
    return st;
}
