#include "h5_generator.h"

#include <hdf5.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "trace/trace_internal.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof *(array))

/* ---- the description --------------------------------------------------------------------------------------------- */

typedef struct {
    uint8_t kind, a, b, c;
} oddity;

typedef struct {
    const uint8_t *data;
    size_t size, n_taken;
} description;

static oddity take(description *d)
{
    uint8_t bytes[4] = { 0 };
    for (int i = 0; i < 4; i++, d->n_taken++)
        if (d->n_taken < d->size) bytes[i] = d->data[d->n_taken];
    return (oddity){ bytes[0], bytes[1], bytes[2], bytes[3] };
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static hid_t compound_type(void)
{
    const hid_t type = H5Tcreate(H5T_COMPOUND, 12);
    H5Tinsert(type, "x", 0, H5T_IEEE_F32LE);
    H5Tinsert(type, "n", 4, H5T_STD_I64LE);
    return type;
}

static hid_t narrow_integer(hid_t base, size_t bits, size_t offset)
{
    const hid_t type = H5Tcopy(base);
    H5Tset_precision(type, bits);
    H5Tset_offset(type, offset);
    return type;
}

/* 32 bits, but not those of IEEE: 15 of exponent and 16 of mantissa. */
static hid_t wide_exponent(void)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 31, 16, 15, 0, 16);
    H5Tset_ebias(type, 16383);
    return type;
}

static hid_t half_type(void)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_precision(type, 16);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    return type;
}

static hid_t string_type(size_t size, H5T_str_t padding, H5T_cset_t set)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, size);
    H5Tset_strpad(type, padding);
    H5Tset_cset(type, set);
    return type;
}

static hid_t derived_type(uint8_t n)
{
    const hsize_t three = 3;
    switch (n) {
    case 0: return compound_type();
    case 1: return narrow_integer(H5T_STD_I32LE, 12, 5);
    case 2: return narrow_integer(H5T_STD_U8LE, 3, 2);
    case 3: return wide_exponent();
    case 4: return half_type();
    case 5: return string_type(4, H5T_STR_NULLTERM, H5T_CSET_ASCII);
    case 6: return string_type(8, H5T_STR_SPACEPAD, H5T_CSET_UTF8);
    case 7: return string_type(H5T_VARIABLE, H5T_STR_NULLTERM, H5T_CSET_UTF8);
    case 8: return H5Tenum_create(H5T_STD_I32LE);
    case 9: return H5Tarray_create2(H5T_IEEE_F32LE, 1, &three);
    case 10: return H5Tcreate(H5T_OPAQUE, 4);
    case 11: return H5Tvlen_create(H5T_STD_I32LE);
    default: return narrow_integer(H5T_STD_I64BE, 64, 0);
    }
}

enum { N_DERIVED = 13 };

/* The caller closes it. */
static hid_t odd_type(uint8_t n)
{
    const hid_t plain[] = {
        H5T_STD_I8LE,    H5T_STD_U8LE,   H5T_STD_I16LE,  H5T_STD_U16LE,  H5T_STD_I32LE,      H5T_STD_U32LE,
        H5T_STD_I64LE,   H5T_STD_U64LE,  H5T_STD_I32BE,  H5T_STD_U32BE,  H5T_STD_I64BE,      H5T_STD_U64BE,
        H5T_IEEE_F32LE,  H5T_IEEE_F64LE, H5T_IEEE_F32BE, H5T_IEEE_F64BE, H5T_NATIVE_LDOUBLE, H5T_STD_B32LE,
        H5T_STD_REF_OBJ, H5T_STD_B64BE,  H5T_UNIX_D32LE,
    };
    n %= ARRAY_LEN(plain) + N_DERIVED;
    return n < ARRAY_LEN(plain) ? H5Tcopy(plain[n]) : derived_type((uint8_t)(n - ARRAY_LEN(plain)));
}

static hid_t stored_type(grq_h5_type type)
{
    switch (type) {
    case GRQ_H5_U8: return H5Tcopy(H5T_STD_U8LE);
    case GRQ_H5_I32: return H5Tcopy(H5T_STD_I32LE);
    case GRQ_H5_U32: return H5Tcopy(H5T_STD_U32LE);
    case GRQ_H5_I64: return H5Tcopy(H5T_STD_I64LE);
    case GRQ_H5_U64: return H5Tcopy(H5T_STD_U64LE);
    default: return H5Tcopy(H5T_IEEE_F32LE);
    }
}

/* ---- one dataset ------------------------------------------------------------------------------------------------- */

typedef struct {
    char path[GRQ_FIELD_PATH_BYTES];
    grq_h5_type type;
    int rank;
    hsize_t shape[3];
} object;

enum { MAX_VALUES = 4096 };

static void fill(unsigned char *bytes, size_t n, const object *o, const oddity *odd)
{
    static const double odd_values[] = { NAN, INFINITY, -INFINITY, -1, 0, 2, 255, 1e30, -1e30, 1e-45, 0.5, 4096 };
    const double odd_value = odd_values[odd->a % ARRAY_LEN(odd_values)];
    for (size_t i = 0; i < n; i++) {
        const bool is_odd = odd->kind == 6 && (i == odd->b || odd->c % 2);
        const uint64_t whole = o->type == GRQ_H5_U8 ? 1 : o->type == GRQ_H5_U32 ? i / 3 : 1 + i % 5;
        const uint64_t odd_whole = odd->a < 128 ? odd->a : UINT64_MAX >> (odd->a % 64);
        const float real = is_odd ? (float)odd_value : 0.25f * (float)(1 + i % 4);
        const uint64_t integer = is_odd ? odd_whole : whole;
        const size_t width = grq_h5_type_bytes(o->type);
        memcpy(bytes + i * width, o->type == GRQ_H5_F32 ? (const void *)&real : (const void *)&integer, width);
    }
}

/* How the values lie in the file. Some of these HDF5 itself refuses for some shapes: then there is no dataset. */
static hid_t storage(uint8_t n, int rank, const hsize_t *shape, size_t n_bytes)
{
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[H5S_MAX_RANK];
    for (int i = 0; i < rank; i++) chunk[i] = shape[i] > 1 ? 2 : 1;
    n %= 12;
    if (n == 1 && n_bytes < 60000) H5Pset_layout(list, H5D_COMPACT);
    if (n >= 2 && n <= 8 && rank > 0) H5Pset_chunk(list, rank, chunk);
    if (n == 3) H5Pset_deflate(list, 6);
    if (n == 4) H5Pset_shuffle(list);
    if (n == 4) H5Pset_deflate(list, 1);
    if (n == 5) H5Pset_fletcher32(list);
    if (n == 6) H5Pset_scaleoffset(list, H5Z_SO_INT, 0);
    if (n == 7) H5Pset_nbit(list);
    if (n == 9) H5Pset_external(list, "missing.raw", 0, H5F_UNLIMITED);
    if (n == 10) H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    if (n == 11) H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    return list;
}

static bool may_be_written(hid_t type)
{
    return H5Tdetect_class(type, H5T_VLEN) <= 0 && H5Tdetect_class(type, H5T_REFERENCE) <= 0 &&
           H5Tis_variable_str(type) <= 0;
}

/* `way` is how it is stored; values are written unless the dataset is only a promise. */
static void put_dataset(hid_t file, const char *path, const object *o, const oddity *odd, hid_t type, hid_t space,
                        uint8_t way)
{
    hsize_t shape[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_dims(space, shape, NULL);
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    const size_t width = H5Tget_size(type);
    const hid_t list = storage(way, rank, shape, n > 0 ? (size_t)n * width : 0);
    const hid_t dataset = H5Dcreate2(file, path, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (dataset >= 0 && n > 0 && n <= MAX_VALUES && way % 12 < 8 && may_be_written(type)) {
        unsigned char *const bytes = calloc((size_t)n, width > 16 ? width : 16);
        fuzz_require(bytes != NULL, "no memory for values");
        if (width == grq_h5_type_bytes(o->type)) fill(bytes, (size_t)n, o, odd);
        H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
        free(bytes);
    }
    if (dataset >= 0) H5Dclose(dataset);
    H5Pclose(list);
}

/* Part of it, or all, comes from another dataset: of this file, of none, or from itself. */
static void put_virtual(hid_t file, const object *o, const oddity *odd)
{
    static const char *const sources[] = { "/ids", "/missing", "/hidden", "/positions/token" };
    const char *const source = odd->a % 8 == 7 ? o->path : sources[odd->a % ARRAY_LEN(sources)];
    const hid_t type = stored_type(o->type), space = H5Screate_simple(o->rank, o->shape, NULL);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(list, space, odd->b % 2 ? "missing.h5" : ".", source, space);
    const hid_t dataset = H5Dcreate2(file, o->path, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (dataset >= 0) H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
    H5Tclose(type);
}

/* An array that claims more than is there: nothing is written. */
static hid_t huge_space(const object *o, const oddity *odd)
{
    hsize_t shape[3], most[3];
    for (int i = 0; i < o->rank; i++) {
        shape[i] = i == odd->b % o->rank ? (hsize_t)1 << odd->a % 63 : o->shape[i];
        most[i] = H5S_UNLIMITED;
    }
    return H5Screate_simple(o->rank, shape, most);
}

static hid_t odd_space(const object *o, const oddity *odd)
{
    hsize_t shape[8] = { 0 };
    int rank = o->rank;
    memcpy(shape, o->shape, sizeof o->shape);
    switch (odd->kind) {
    case 4:
        rank = odd->a % 8;
        for (int i = 0; i < rank; i++) shape[i] = 1 + (odd->b >> i) % 3;
        return H5Screate_simple(rank, shape, NULL);
    case 5: shape[odd->a % rank] = odd->b; return H5Screate_simple(rank, shape, NULL);
    case 12: return H5Screate(odd->a % 2 ? H5S_NULL : H5S_SCALAR);
    case 13: return huge_space(o, odd);
    default: return H5Screate_simple(rank, shape, NULL);
    }
}

static void put_link(hid_t file, const char *path, const oddity *odd)
{
    static const char *const targets[] = { "/", "/missing", "/ids", "/layers", "/positions/token", "relative/..", "" };
    const char *const target = odd->a % 8 == 7 ? path : targets[odd->a % ARRAY_LEN(targets)];
    if (odd->kind == 9) H5Lcreate_soft(target, file, path, H5P_DEFAULT, H5P_DEFAULT);
    if (odd->kind == 10) H5Lcreate_external("missing.h5", target, file, path, H5P_DEFAULT, H5P_DEFAULT);
    if (odd->kind == 14) H5Lcreate_hard(file, target, file, path, H5P_DEFAULT, H5P_DEFAULT);
}

static void put_group(hid_t file, const char *path)
{
    const hid_t group = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group >= 0) H5Gclose(group);
}

static void put_object(hid_t file, const object *o, const oddity *odd)
{
    char path[GRQ_FIELD_PATH_BYTES + 1];
    snprintf(path, sizeof path, "%s%s", o->path, odd->kind == 2 ? "x" : "");
    switch (odd->kind) {
    case 1: return;
    case 8: put_group(file, path); return;
    case 9:
    case 10:
    case 14: put_link(file, path, odd); return;
    case 15: put_virtual(file, o, odd); return;
    }
    const hid_t type = odd->kind == 3 || odd->kind == 11 ? odd_type(odd->a) : stored_type(o->type);
    if (odd->kind == 11) H5Tcommit2(file, path, type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    else {
        const hid_t space = odd_space(o, odd);
        const uint8_t way = odd->kind == 7 ? odd->a : odd->kind == 13 ? (odd->c % 2 ? 3 : 2) : odd->c;
        if (space >= 0) put_dataset(file, path, o, odd, type, space, way);
        if (space >= 0) H5Sclose(space);
    }
    H5Tclose(type);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static void put_attribute(hid_t file, const char *name, hid_t type, hid_t space, const void *value)
{
    const hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute >= 0 && value) H5Awrite(attribute, type, value);
    if (attribute >= 0) H5Aclose(attribute);
}

static void put_odd_text(hid_t file, const char *name, hid_t space, const oddity *odd)
{
    static const char *const texts[] = { "", GRQ_TRACE_FORMAT, GRQ_TRACE_FORMAT "x", "\xFF\xFE", "gaterq-\ntrace" };
    const char *const text = texts[odd->a % ARRAY_LEN(texts)], *const none = NULL;
    const bool variable = odd->b % 4 == 0;
    const size_t size = variable ? H5T_VARIABLE : odd->b % 4 == 1 ? 1 + odd->c * 16u : strlen(text) + (odd->b % 4 == 3);
    const hid_t type = string_type(size ? size : 1, odd->b / 4 % 3, odd->b / 16 % 2);
    char *const room = calloc(3, 8192);
    fuzz_require(room != NULL, "no memory for a text");
    memcpy(room, text, strlen(text));
    const char *const pointers[] = { odd->c == 255 ? none : text, text, text };
    put_attribute(file, name, type, space, variable ? (const void *)pointers : room);
    free(room);
    H5Tclose(type);
}

/* `text` NULL: the number `value`. */
static void put_root_attribute(hid_t file, const char *name, const char *text, uint64_t value, const oddity *odd)
{
    static const unsigned char odd_bytes[3 * 64] = { 1, 0xFF, 0x80, 7 };
    const hsize_t n = odd->kind == 4 ? odd->a % 4 : 1;
    const hid_t space = odd->kind == 5   ? H5Screate(odd->a % 2 ? H5S_NULL : H5S_SCALAR)
                        : odd->kind == 4 ? H5Screate_simple(1, &n, NULL)
                                         : H5Screate(H5S_SCALAR);
    if (odd->kind == 2) {
        const hid_t type = odd_type(odd->a);
        put_attribute(file, name, type, space,
                      may_be_written(type) ? odd_bytes + (odd->b % 4) * (H5Tget_size(type) <= 32) : NULL);
        H5Tclose(type);
    } else if (odd->kind == 3) {
        put_odd_text(file, name, space, odd);
    } else if (odd->kind != 1 && text) {
        const hid_t type = string_type(strlen(text) + 1, H5T_STR_NULLTERM, H5T_CSET_UTF8);
        char values[4][64] = { "" };
        for (size_t i = 0; i < 4; i++) memcpy(values[0] + i * (strlen(text) + 1), text, strlen(text) + 1);
        put_attribute(file, name, type, space, values);
        H5Tclose(type);
    } else if (odd->kind != 1) {
        if (odd->kind == 6) value = odd->a < 128 ? odd->a : UINT64_MAX >> (odd->a % 64);
        const uint64_t values[4] = { value, value };
        put_attribute(file, name, odd->b % 2 ? H5T_STD_I64LE : H5T_STD_U64LE, space, values);
    }
    H5Sclose(space);
}

/* ---- the whole file ---------------------------------------------------------------------------------------------- */

/* "/layers/1/gates" before "/layers/1/gates/stage1" */
static void put_groups_above(hid_t file, const char *path)
{
    char part[GRQ_FIELD_PATH_BYTES];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (H5Lexists(file, part, H5P_DEFAULT) == 0) put_group(file, part);
        *slash = '/';
    }
}

static void put_field(hid_t file, const grq_trace_field *field, uint32_t layer, description *d)
{
    object o = { .type = field->type,
                 .rank = field->axes == GRQ_AXES_POSITION ? 1 : 2,
                 .shape = { H5_POSITIONS, field->axes == GRQ_AXES_BRANCH ? H5_BRANCHES : H5_COLUMNS } };
    grq_field_path(field, layer, o.path);
    const oddity odd = take(d);
    put_groups_above(file, o.path);
    put_object(file, &o, &odd);
}

static void put_layer(hid_t file, uint32_t layer, description *d)
{
    for (size_t f = 0; f < grq_n_layer_fields; f++) put_field(file, &grq_layer_fields[f], layer, d);
}

/* Members of /layers that are no layers, too many, or not where they seem to be. */
static void put_odd_layers(hid_t file, const oddity *odd)
{
    static const char *const names[] = { "/layers/x",  "/layers/01", "/layers/4294967296", "/layers/-1",
                                         "/layers/ 1", "/layers/+2", "/layers/1x",         "/layers/\xFF\xFE" };
    char long_name[2048];
    switch (odd->kind) {
    case 1: put_group(file, names[odd->a % ARRAY_LEN(names)]); break;
    case 2:
        for (int i = 0; i < odd->a % 16; i++) {
            snprintf(long_name, sizeof long_name, "/layers/%d", 5 + i);
            put_group(file, long_name);
        }
        break;
    case 3:
        memset(long_name, 'n', sizeof long_name);
        memcpy(long_name, "/layers/", 8);
        long_name[8 + odd->a * 4u] = '\0';
        put_group(file, long_name);
        break;
    case 4: H5Lcreate_hard(file, "/layers", file, "/layers/2", H5P_DEFAULT, H5P_DEFAULT); break;
    case 5: H5Lcreate_hard(file, "/layers/1", file, "/layers/2", H5P_DEFAULT, H5P_DEFAULT); break;
    case 6: H5Lcreate_soft("/layers/1", file, "/layers/7", H5P_DEFAULT, H5P_DEFAULT); break;
    }
}

static void put_trace(hid_t file, description *d)
{
    const oddity format = take(d), version = take(d), row_dim = take(d), layers = take(d);
    put_root_attribute(file, "format", GRQ_TRACE_FORMAT, 0, &format);
    put_root_attribute(file, "format_version", NULL, GRQ_TRACE_VERSION, &version);
    put_root_attribute(file, "row_dim", NULL, 32, &row_dim);
    for (size_t f = 0; f < grq_n_position_fields; f++) put_field(file, &grq_position_fields[f], 0, d);
    if (layers.kind == 15) { /* no group at all, or something else of that name */
        const object o = { .path = "/layers", .type = GRQ_H5_I32, .rank = 1, .shape = { 3 } };
        const oddity odd = { layers.a, layers.b, layers.c, 0 };
        put_object(file, &o, &odd);
        return;
    }
    put_layer(file, 1, d);
    if (layers.kind == 14) put_layer(file, 10 + layers.a, d);
    put_odd_layers(file, &layers);
}

static void put_hidden(hid_t file, description *d)
{
    static const object inputs[] = {
        { "/ids", GRQ_H5_I32, 1, { H5_POSITIONS } },
        { "/hidden", GRQ_H5_F32, 3, { H5_POSITIONS, H5_BRANCHES, H5_WIDTH } },
        { "/sequence", GRQ_H5_I32, 1, { H5_POSITIONS } },
    };
    for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
        const oddity odd = take(d);
        put_object(file, &inputs[i], &odd);
    }
}

void h5_generate(const uint8_t *data, size_t size, const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* HDF5 refuses some of what is asked for; that is fine */
    description d = { data, size, 0 };
    const oddity what = take(&d);
    static const H5F_libver_t versions[] = { H5F_LIBVER_V18, H5F_LIBVER_EARLIEST, H5F_LIBVER_V110 };
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_libver_bounds(access, versions[what.b % ARRAY_LEN(versions)], H5F_LIBVER_LATEST);
    if (what.c % 4 == 1) H5Pset_userblock(create, 512);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    fuzz_require(file >= 0, "HDF5 makes no file");
    if (what.a % 4 != 1) put_hidden(file, &d);
    if (what.a % 4 != 2) put_trace(file, &d);
    fuzz_require(H5Fclose(file) >= 0, "HDF5 cannot write the file");
    H5Pclose(create);
    H5Pclose(access);
}
