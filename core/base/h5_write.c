/* Datasets that grow by rows, and dimension scales. */
#include <hdf5_hl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/h5_internal.h"

enum {
    CHUNK_BYTES = 64 * 1024, /* fits HDF5's chunk cache of 1 MiB many times, and is still large enough to compress */
    DEFLATE_LEVEL = 4
};

static const struct {
    const char *name;
    size_t n_bytes;
} types[] = {
    [GRQ_H5_U8] = { "uint8", 1 },  [GRQ_H5_I32] = { "int32", 4 },  [GRQ_H5_U32] = { "uint32", 4 },
    [GRQ_H5_I64] = { "int64", 8 }, [GRQ_H5_U64] = { "uint64", 8 }, [GRQ_H5_F32] = { "float32", 4 },
};

size_t grq_h5_type_bytes(grq_h5_type type)
{
    return types[type].n_bytes;
}

const char *grq_h5_type_name(grq_h5_type type)
{
    return types[type].name;
}

hid_t grq_h5_native(grq_h5_type type)
{
    switch (type) { /* not a table: HDF5's names are function calls */
    case GRQ_H5_U8: return H5T_NATIVE_UINT8;
    case GRQ_H5_I32: return H5T_NATIVE_INT32;
    case GRQ_H5_U32: return H5T_NATIVE_UINT32;
    case GRQ_H5_I64: return H5T_NATIVE_INT64;
    case GRQ_H5_U64: return H5T_NATIVE_UINT64;
    case GRQ_H5_F32: return H5T_NATIVE_FLOAT;
    }
    return H5I_INVALID_HID;
}

/* Little-endian on every machine, so that files do not depend on where they were made. */
static hid_t stored_type(grq_h5_type type)
{
    switch (type) {
    case GRQ_H5_U8: return H5T_STD_U8LE;
    case GRQ_H5_I32: return H5T_STD_I32LE;
    case GRQ_H5_U32: return H5T_STD_U32LE;
    case GRQ_H5_I64: return H5T_STD_I64LE;
    case GRQ_H5_U64: return H5T_STD_U64LE;
    case GRQ_H5_F32: return H5T_IEEE_F32LE;
    }
    return H5I_INVALID_HID;
}

static grq_status check_spec(const grq_h5 *file, const grq_h5_spec *spec, grq_error *err)
{
    bool good =
        spec->rank >= 1 && spec->rank <= GRQ_H5_MAX_RANK && spec->name[0] == '/' && spec->units && spec->description;
    for (uint32_t i = 1; good && i < spec->rank; i++) good = spec->shape[i] >= 1 && spec->shape[i] <= UINT32_MAX;
    if (good) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA,
                    "%s: %s: needs an absolute name, 1 to %d axes of length 1 or more, units and a description",
                    file->path, spec->name, GRQ_H5_MAX_RANK);
}

/* Chunked by rows, shuffled (bytes of one weight together), deflated, without times. */
static hid_t creation_list(const grq_h5_spec *spec)
{
    hsize_t chunk[GRQ_H5_MAX_RANK];
    uint64_t row_bytes = grq_h5_type_bytes(spec->type);
    for (uint32_t i = 1; i < spec->rank; i++) {
        chunk[i] = spec->shape[i];
        row_bytes = row_bytes < CHUNK_BYTES ? row_bytes * spec->shape[i] : row_bytes; /* only its order matters */
    }
    chunk[0] = spec->chunk_rows ? spec->chunk_rows : row_bytes < CHUNK_BYTES ? CHUNK_BYTES / row_bytes : 1;
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (list < 0) return list;
    if (H5Pset_obj_track_times(list, false) < 0 || H5Pset_chunk(list, (int)spec->rank, chunk) < 0 ||
        H5Pset_shuffle(list) < 0 || H5Pset_deflate(list, DEFLATE_LEVEL) < 0) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}

static hid_t create_dataset(const grq_h5 *file, const grq_h5_spec *spec)
{
    hsize_t shape[GRQ_H5_MAX_RANK] = { 0 }, limit[GRQ_H5_MAX_RANK] = { H5S_UNLIMITED };
    for (uint32_t i = 1; i < spec->rank; i++) shape[i] = limit[i] = spec->shape[i];
    const hid_t list = creation_list(spec), space = H5Screate_simple((int)spec->rank, shape, limit);
    hid_t id = H5I_INVALID_HID;
    if (list >= 0 && space >= 0)
        id = H5Dcreate2(file->id, spec->name, stored_type(spec->type), space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (space >= 0) H5Sclose(space);
    if (list >= 0) H5Pclose(list);
    return id;
}

static grq_status make_groups_above(grq_h5 *file, const char *name, grq_error *err)
{
    char *const parent = strdup(name);
    if (!parent) return grq_fail(err, GRQ_E_NOMEM, "%s: %s: no memory for the name", file->path, name);
    *strrchr(parent, '/') = '\0';
    const grq_status st = *parent ? grq_h5_group(file, parent, err) : GRQ_OK;
    free(parent);
    return st;
}

grq_status grq_h5_dataset_create(grq_h5 *file, const grq_h5_spec *spec, grq_h5_dataset **out, grq_error *err)
{
    if (out) *out = NULL;
    grq_status st = check_spec(file, spec, err);
    if (st == GRQ_OK) st = make_groups_above(file, spec->name, err);
    if (st != GRQ_OK) return st;
    grq_h5_dataset *d = calloc(1, sizeof *d);
    if (!d || !(d->name = strdup(spec->name))) {
        free(d);
        return grq_fail(err, GRQ_E_NOMEM, "%s: %s: no memory for a dataset", file->path, spec->name);
    }
    d->file = file;
    d->type = spec->type;
    d->rank = spec->rank;
    for (uint32_t i = 1; i < spec->rank; i++) d->shape[i] = spec->shape[i];
    d->id = create_dataset(file, spec);
    if (d->id < 0) {
        st = grq_h5_fail(file, spec->name, "cannot be created", err);
        free(d->name);
        free(d);
        return st;
    }
    d->next = file->datasets; /* the file owns it from here */
    file->datasets = d;
    st = grq_h5_put_string(file, spec->name, "units", spec->units, err);
    if (st == GRQ_OK) st = grq_h5_put_string(file, spec->name, "description", spec->description, err);
    if (st == GRQ_OK && out) *out = d;
    return st;
}

grq_status grq_h5_append(grq_h5_dataset *d, uint64_t n_rows, const void *rows, grq_error *err)
{
    if (n_rows == 0) return GRQ_OK;
    hsize_t first[GRQ_H5_MAX_RANK] = { d->shape[0] }, count[GRQ_H5_MAX_RANK], shape[GRQ_H5_MAX_RANK];
    memcpy(shape, d->shape, sizeof shape);
    memcpy(count, d->shape, sizeof count);
    shape[0] += n_rows;
    count[0] = n_rows;
    hid_t memory = H5I_INVALID_HID, target = H5I_INVALID_HID;
    bool good = H5Dset_extent(d->id, shape) >= 0;
    if (good) memory = H5Screate_simple((int)d->rank, count, NULL);
    if (good) target = H5Dget_space(d->id);
    good = memory >= 0 && target >= 0 && H5Sselect_hyperslab(target, H5S_SELECT_SET, first, NULL, count, NULL) >= 0 &&
           H5Dwrite(d->id, grq_h5_native(d->type), memory, target, H5P_DEFAULT, rows) >= 0 && d->file->write_error == 0;
    const grq_status st = good ? GRQ_OK : grq_h5_fail(d->file, d->name, "rows cannot be appended", err);
    if (good) d->shape[0] = shape[0];
    if (target >= 0) H5Sclose(target);
    if (memory >= 0) H5Sclose(memory);
    return st;
}

grq_status grq_h5_write(grq_h5 *file, const grq_h5_spec *spec, uint64_t n_rows, const void *rows, grq_h5_dataset **out,
                        grq_error *err)
{
    grq_h5_dataset *d;
    grq_status st = grq_h5_dataset_create(file, spec, &d, err);
    if (st == GRQ_OK) st = grq_h5_append(d, n_rows, rows, err);
    if (out) *out = st == GRQ_OK ? d : NULL;
    return st;
}

grq_status grq_h5_make_scale(grq_h5_dataset *d, const char *axis_name, grq_error *err)
{
    if (d->rank != 1) return grq_fail(err, GRQ_E_DATA, "%s: %s: a scale has one axis", d->file->path, d->name);
    if (H5DSset_scale(d->id, axis_name) < 0 || d->file->write_error)
        return grq_h5_fail(d->file, d->name, "cannot be made a dimension scale", err);
    free(d->axis_name);
    d->axis_name = strdup(axis_name);
    return d->axis_name ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "%s: %s: no memory for a name", d->file->path, d->name);
}

grq_status grq_h5_attach_scale(grq_h5_dataset *d, uint32_t axis, grq_h5_dataset *scale, grq_error *err)
{
    if (!scale->axis_name || axis >= d->rank)
        return grq_fail(err, GRQ_E_DATA, "%s: %s: %s cannot be the scale of axis %" PRIu32, d->file->path, d->name,
                        scale->name, axis);
    if (H5DSattach_scale(d->id, scale->id, axis) < 0 || H5DSset_label(d->id, axis, scale->axis_name) < 0 ||
        d->file->write_error)
        return grq_h5_fail(d->file, d->name, "a dimension scale cannot be attached", err);
    return GRQ_OK;
}
