/* base/h5_internal.h - what the h5*.c files share; no other file includes hdf5.h. */
#ifndef GATERQ_BASE_H5_INTERNAL_H
#define GATERQ_BASE_H5_INTERNAL_H

#include <hdf5.h>

#include "base/h5.h"

struct grq_h5_dataset {
    grq_h5_dataset *next; /* the file's list */
    grq_h5 *file;
    char *name;
    char *axis_name; /* once it is a scale */
    hid_t id;
    grq_h5_type type;
    uint32_t rank;
    hsize_t shape[GRQ_H5_MAX_RANK];
};

struct grq_h5 {
    char *path;      /* as given; for messages */
    char *temporary; /* NULL when reading */
    hid_t id;
    int write_error; /* errno of the first write that failed; 0 if none did. HDF5 itself is not told: h5_driver.c */
    grq_h5_dataset *datasets;
};

/* The type in this machine's memory. */
hid_t grq_h5_native(grq_h5_type type);
/* Makes files written through this access list note their first error in *reason; false if HDF5 refuses. */
bool grq_h5_use_driver(hid_t access, int *reason);
/* "path: object: what: the write error, or HDF5's own most specific complaint" */
grq_status grq_h5_fail(const grq_h5 *file, const char *object, const char *what, grq_error *err);

#endif
