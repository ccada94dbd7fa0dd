/* Files, groups and attributes. */
#include "base/h5.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/h5_internal.h"
#include "gaterq/file.h"

enum { MAX_STRING_BYTES = 1 << 26, DETAIL_BYTES = GRQ_ERROR_BYTES / 2 };

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* Of a failed system call HDF5 tells half a page, time of day included; the system's own words are enough. */
static herr_t copy_first(unsigned n, const H5E_error2_t *entry, void *text)
{
    (void)n;
    static const char mark[] = "error message = '";
    const char *const desc = entry->desc ? entry->desc : "";
    const char *const words = strstr(desc, mark);
    if (words)
        snprintf(text, DETAIL_BYTES, ": %.*s", (int)strcspn(words + sizeof mark - 1, "'"), words + sizeof mark - 1);
    else if (*desc) snprintf(text, DETAIL_BYTES, ": %.*s", (int)strcspn(desc, "\n"), desc);
    return 1; /* stop: the first one is the most specific */
}

grq_status grq_h5_fail(const grq_h5 *file, const char *object, const char *what, grq_error *err)
{
    char detail[DETAIL_BYTES] = "";
    if (file->write_error) snprintf(detail, sizeof detail, ": %s", strerror(file->write_error));
    else H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, copy_first, detail);
    return grq_fail(err, GRQ_E_IO, "%s: %s: %s%s", file->path, object, what, detail);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static grq_status new_file(const char *path, grq_h5 **out, grq_error *err)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* else it prints to stderr itself */
    *out = calloc(1, sizeof **out);
    if (*out) (*out)->id = H5I_INVALID_HID;
    if (*out && ((*out)->path = strdup(path))) return GRQ_OK;
    free(*out);
    *out = NULL;
    return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for an HDF5 file", path);
}

/* One format whatever the library's version; ids left open must not keep the file open; locks are optional, since some
 * network file systems have none. */
static hid_t access_list(void)
{
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (list < 0) return list;
    if (H5Pset_libver_bounds(list, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0 ||
        H5Pset_fclose_degree(list, H5F_CLOSE_STRONG) < 0 || H5Pset_file_locking(list, 1, 1) < 0) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}

grq_status grq_h5_create(const char *path, grq_h5 **out, grq_error *err)
{
    *out = NULL;
    grq_h5 *file;
    grq_status st = new_file(path, &file, err);
    if (st != GRQ_OK) return st;
    st = grq_temporary_name(path, &file->temporary, err);
    if (st == GRQ_OK) {
        const hid_t access = access_list(), create = H5Pcreate(H5P_FILE_CREATE);
        if (access >= 0 && create >= 0 && H5Pset_obj_track_times(create, false) >= 0 &&
            grq_h5_use_driver(access, &file->write_error))
            file->id = H5Fcreate(file->temporary, H5F_ACC_TRUNC, create, access);
        if (file->id < 0 || file->write_error) st = grq_h5_fail(file, "/", "cannot be created", err);
        if (access >= 0) H5Pclose(access);
        if (create >= 0) H5Pclose(create);
    }
    if (st == GRQ_OK) *out = file;
    else grq_h5_close(file);
    return st;
}

grq_status grq_h5_open(const char *path, grq_h5 **out, grq_error *err)
{
    *out = NULL;
    grq_h5 *file;
    grq_status st = new_file(path, &file, err);
    if (st != GRQ_OK) return st;
    struct stat info; /* HDF5 would wait for ever at a pipe, and says little about what is wrong */
    if (stat(path, &info) != 0 || access(path, R_OK) != 0)
        st = grq_fail(err, GRQ_E_IO, "%s: %s", path, errno == ENOENT ? "no such file" : strerror(errno));
    else if (!S_ISREG(info.st_mode)) st = grq_fail(err, GRQ_E_IO, "%s: is not a regular file", path);
    if (st == GRQ_OK) {
        const hid_t access = access_list();
        if (access >= 0) file->id = H5Fopen(path, H5F_ACC_RDONLY, access);
        if (file->id < 0) {
            st = grq_h5_fail(file, "/", "cannot be opened as HDF5", err);
            if (access >= 0 && H5Fis_hdf5(path) == 0) st = grq_fail(err, GRQ_E_DATA, "%s: is not an HDF5 file", path);
        }
        if (access >= 0) H5Pclose(access);
    }
    if (st == GRQ_OK) *out = file;
    else grq_h5_close(file);
    return st;
}

/* Closes everything inside HDF5; false if something could not be written. */
static bool close_inside(grq_h5 *file)
{
    bool good = true;
    for (grq_h5_dataset *d = file->datasets, *next; d; d = next) {
        next = d->next;
        good &= H5Dclose(d->id) >= 0;
        free(d->axis_name);
        free(d->name);
        free(d);
    }
    file->datasets = NULL;
    if (file->id >= 0) good &= H5Fclose(file->id) >= 0;
    file->id = H5I_INVALID_HID;
    return good;
}

static void free_file(grq_h5 *file)
{
    free(file->temporary);
    free(file->path);
    free(file);
}

grq_status grq_h5_commit(grq_h5 *file, grq_error *err)
{
    if (!file) return GRQ_OK;
    const bool closed = close_inside(file);
    grq_status st = closed && file->write_error == 0 ? GRQ_OK : grq_h5_fail(file, "/", "cannot be written", err);
    if (st == GRQ_OK) st = grq_rename_into_place(file->temporary, file->path, err);
    else unlink(file->temporary);
    free_file(file);
    return st;
}

void grq_h5_close(grq_h5 *file)
{
    if (!file) return;
    close_inside(file); /* nothing of a discarded file is worth a complaint */
    if (file->temporary) unlink(file->temporary);
    free_file(file);
}

const char *grq_h5_path(const grq_h5 *file)
{
    return file->path;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* Like H5Lexists, but also true for "/", and false rather than an error where a group on the way is missing. */
bool grq_h5_exists(grq_h5 *file, const char *name)
{
    char *const part = strdup(name);
    if (!part) return false;
    bool exists = true;
    for (char *at = part; exists && at && at[1];) {
        char *const slash = strchr(at + 1, '/');
        if (slash) *slash = '\0';
        exists = H5Lexists(file->id, part, H5P_DEFAULT) > 0;
        if (slash) *slash = '/';
        at = slash;
    }
    free(part);
    return exists;
}

static grq_status make_one_group(grq_h5 *file, const char *name, grq_error *err)
{
    if (grq_h5_exists(file, name)) return GRQ_OK;
    /* HDF5 can make the groups on the way itself, but those would carry the time of day. */
    const hid_t create = H5Pcreate(H5P_GROUP_CREATE);
    hid_t group = H5I_INVALID_HID;
    if (create >= 0 && H5Pset_obj_track_times(create, false) >= 0)
        group = H5Gcreate2(file->id, name, H5P_DEFAULT, create, H5P_DEFAULT);
    const bool good = group >= 0 && file->write_error == 0;
    const grq_status st = good ? GRQ_OK : grq_h5_fail(file, name, "the group cannot be made", err);
    if (group >= 0) H5Gclose(group);
    if (create >= 0) H5Pclose(create);
    return st;
}

grq_status grq_h5_group(grq_h5 *file, const char *name, grq_error *err)
{
    char *part = strdup(name);
    if (!part) return grq_fail(err, GRQ_E_NOMEM, "%s: %s: no memory for the name", file->path, name);
    grq_status st = GRQ_OK;
    for (char *slash = strchr(part + 1, '/'); slash && st == GRQ_OK; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        st = make_one_group(file, part, err);
        *slash = '/';
    }
    if (st == GRQ_OK && part[1]) st = make_one_group(file, part, err);
    free(part);
    return st;
}

void grq_h5_free_names(char **names, size_t n_names)
{
    for (size_t i = 0; names && i < n_names; i++) free(names[i]);
    free(names);
}

static char *member_name(hid_t group, size_t index)
{
    const ssize_t n = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, NULL, 0, H5P_DEFAULT);
    char *const name = n < 0 ? NULL : malloc((size_t)n + 1);
    if (name) H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, name, (size_t)n + 1, H5P_DEFAULT);
    return name;
}

grq_status grq_h5_list(grq_h5 *file, const char *name, char ***names, size_t *n_names, grq_error *err)
{
    *names = NULL;
    *n_names = 0;
    if (!grq_h5_exists(file, name)) return grq_fail(err, GRQ_E_DATA, "%s: %s: the group is missing", file->path, name);
    const hid_t group = H5Gopen2(file->id, name, H5P_DEFAULT);
    H5G_info_t info;
    if (group < 0 || H5Gget_info(group, &info) < 0) {
        const grq_status st = grq_h5_fail(file, name, "is not a group that can be read", err);
        if (group >= 0) H5Gclose(group);
        return st;
    }
    const size_t n = (size_t)info.nlinks;
    char **list = calloc(n ? n : 1, sizeof *list);
    grq_status st = list ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "%s: %s: no memory for names", file->path, name);
    for (size_t i = 0; st == GRQ_OK && i < n; i++)
        if (!(list[i] = member_name(group, i))) st = grq_h5_fail(file, name, "a name in it cannot be read", err);
    H5Gclose(group);
    if (st != GRQ_OK) {
        grq_h5_free_names(list, n);
        return st;
    }
    *names = list;
    *n_names = n;
    return GRQ_OK;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static grq_status put_attribute(grq_h5 *file, const char *object, const char *name, hid_t stored, hid_t native,
                                const void *value, grq_error *err)
{
    const hid_t owner = H5Oopen(file->id, object, H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5I_INVALID_HID;
    if (owner >= 0 && space >= 0) attribute = H5Acreate2(owner, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    grq_status st = GRQ_OK;
    if (attribute < 0 || H5Awrite(attribute, native, value) < 0 || file->write_error) {
        char what[128];
        snprintf(what, sizeof what, "attribute \"%s\" cannot be written", name);
        st = grq_h5_fail(file, object, what, err);
    }
    if (attribute >= 0) H5Aclose(attribute);
    if (space >= 0) H5Sclose(space);
    if (owner >= 0) H5Oclose(owner);
    return st;
}

grq_status grq_h5_put_string(grq_h5 *file, const char *object, const char *name, const char *value, grq_error *err)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    grq_status st;
    if (type < 0 || H5Tset_size(type, strlen(value) + 1) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)
        st = grq_h5_fail(file, object, "no type for a string", err);
    else st = put_attribute(file, object, name, type, type, value, err);
    if (type >= 0) H5Tclose(type);
    return st;
}

grq_status grq_h5_put_u64(grq_h5 *file, const char *object, const char *name, uint64_t value, grq_error *err)
{
    return put_attribute(file, object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value, err);
}

grq_status grq_h5_put_i64(grq_h5 *file, const char *object, const char *name, int64_t value, grq_error *err)
{
    return put_attribute(file, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value, err);
}

grq_status grq_h5_put_f64(grq_h5 *file, const char *object, const char *name, double value, grq_error *err)
{
    return put_attribute(file, object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value, err);
}

bool grq_h5_has_attribute(grq_h5 *file, const char *object, const char *name)
{
    return grq_h5_exists(file, object) && H5Aexists_by_name(file->id, object, name, H5P_DEFAULT) > 0;
}

typedef struct {
    hid_t id, type;
    H5T_class_t kind;
} attribute;

static void close_attribute(const attribute *a)
{
    if (a->type >= 0) H5Tclose(a->type);
    if (a->id >= 0) H5Aclose(a->id);
}

/* Opens an attribute that must hold one value. On GRQ_OK the caller ends it with close_attribute. */
static grq_status open_attribute(grq_h5 *file, const char *object, const char *name, attribute *out, grq_error *err)
{
    *out = (attribute){ H5I_INVALID_HID, H5I_INVALID_HID, H5T_NO_CLASS };
    if (!grq_h5_has_attribute(file, object, name))
        return grq_fail(err, GRQ_E_DATA, "%s: %s: attribute \"%s\" is missing", file->path, object, name);
    hid_t space = H5I_INVALID_HID;
    out->id = H5Aopen_by_name(file->id, object, name, H5P_DEFAULT, H5P_DEFAULT);
    if (out->id >= 0) out->type = H5Aget_type(out->id);
    if (out->id >= 0) space = H5Aget_space(out->id);
    if (out->type >= 0) out->kind = H5Tget_class(out->type);
    const bool one = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (space >= 0) H5Sclose(space);
    if (out->kind != H5T_NO_CLASS && one) return GRQ_OK;
    close_attribute(out);
    return grq_fail(err, GRQ_E_DATA, "%s: %s: attribute \"%s\" is not one value that can be read", file->path, object,
                    name);
}

static grq_status wrong_attribute(const grq_h5 *file, const char *object, const char *name, const char *wanted,
                                  grq_error *err)
{
    return grq_fail(err, GRQ_E_DATA, "%s: %s: attribute \"%s\" must be %s", file->path, object, name, wanted);
}

/* h5py and others write strings of variable length, we ones of fixed length. */
static char *read_string(const attribute *a)
{
    if (H5Tis_variable_str(a->type) > 0) {
        char *text = NULL;
        const hid_t native = H5Tcopy(H5T_C_S1);
        const bool good = native >= 0 && H5Tset_size(native, H5T_VARIABLE) >= 0 &&
                          H5Tset_cset(native, H5Tget_cset(a->type)) >= 0 && H5Aread(a->id, native, &text) >= 0;
        char *const copy = good ? strdup(text ? text : "") : NULL;
        if (text) H5free_memory(text);
        if (native >= 0) H5Tclose(native);
        return copy;
    }
    const size_t n_bytes = H5Tget_size(a->type);
    char *const text = n_bytes < MAX_STRING_BYTES ? calloc(1, n_bytes + 1) : NULL;
    if (text && H5Aread(a->id, a->type, text) >= 0) return text;
    free(text);
    return NULL;
}

grq_status grq_h5_get_string(grq_h5 *file, const char *object, const char *name, char **value, grq_error *err)
{
    *value = NULL;
    attribute a;
    grq_status st = open_attribute(file, object, name, &a, err);
    if (st != GRQ_OK) return st;
    if (a.kind != H5T_STRING) st = wrong_attribute(file, object, name, "a string", err);
    else if (!(*value = read_string(&a))) st = wrong_attribute(file, object, name, "a string that can be read", err);
    close_attribute(&a);
    return st;
}

/* Sign and magnitude. HDF5 would clamp -1 to 0 on its own when asked for an unsigned number. */
static grq_status read_integer(grq_h5 *file, const char *object, const char *name, bool *negative, uint64_t *bits,
                               grq_error *err)
{
    attribute a;
    grq_status st = open_attribute(file, object, name, &a, err);
    if (st != GRQ_OK) return st;
    const bool is_signed = a.kind == H5T_INTEGER && H5Tget_sign(a.type) == H5T_SGN_2;
    if (a.kind != H5T_INTEGER || H5Tget_size(a.type) > 8 ||
        H5Aread(a.id, is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, bits) < 0)
        st = wrong_attribute(file, object, name, "an integer of at most 64 bits", err);
    else *negative = is_signed && (int64_t)*bits < 0;
    close_attribute(&a);
    return st;
}

grq_status grq_h5_get_u64(grq_h5 *file, const char *object, const char *name, uint64_t *value, grq_error *err)
{
    bool negative = false;
    uint64_t bits = 0;
    grq_status st = read_integer(file, object, name, &negative, &bits, err);
    if (st == GRQ_OK && negative) st = wrong_attribute(file, object, name, "0 or more", err);
    if (st == GRQ_OK) *value = bits;
    return st;
}

grq_status grq_h5_get_i64(grq_h5 *file, const char *object, const char *name, int64_t *value, grq_error *err)
{
    bool negative = false;
    uint64_t bits = 0;
    grq_status st = read_integer(file, object, name, &negative, &bits, err);
    if (st == GRQ_OK && !negative && bits > INT64_MAX) st = wrong_attribute(file, object, name, "below 2^63", err);
    if (st == GRQ_OK) *value = (int64_t)bits;
    return st;
}

grq_status grq_h5_get_f64(grq_h5 *file, const char *object, const char *name, double *value, grq_error *err)
{
    attribute a;
    double read = NAN;
    grq_status st = open_attribute(file, object, name, &a, err);
    if (st != GRQ_OK) return st;
    if ((a.kind != H5T_FLOAT && a.kind != H5T_INTEGER) || H5Aread(a.id, H5T_NATIVE_DOUBLE, &read) < 0)
        st = wrong_attribute(file, object, name, "a number", err);
    close_attribute(&a);
    if (st == GRQ_OK) *value = read;
    return st;
}
