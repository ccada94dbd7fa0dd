/* gaterq/file.h - whole files in, and files out that appear under their name only when they are complete. */
#ifndef GATERQ_FILE_H
#define GATERQ_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gaterq/status.h"

/* Reads a whole file. On GRQ_OK the caller frees *bytes, which is followed by a NUL not counted in *n_bytes.
 * Files above `max_bytes` are refused by name (0: no limit), and so is a pipe that nobody opens for writing within two
 * seconds, or that ends without a byte. */
grq_status grq_file_read(const char *path, size_t max_bytes, char **bytes, size_t *n_bytes, grq_error *err);

/* A file being written under "<path>.tmp-<pid>-<n>". Commit flushes, fsyncs and renames it to `path`; discard removes
 * it. Both end the object and take NULL. A full disk, or any other short write, is an error of commit, which then
 * leaves nothing behind. A `path` that is a folder, a device or a pipe is refused; a link to a file is followed. */
typedef struct grq_outfile grq_outfile;
grq_status grq_outfile_open(const char *path, grq_outfile **out, grq_error *err);
FILE *grq_outfile_stream(grq_outfile *file);                /* borrowed; do not close */
const char *grq_outfile_temporary(const grq_outfile *file); /* the temporary name, for libraries that open by name */
grq_status grq_outfile_commit(grq_outfile *file, grq_error *err);
void grq_outfile_discard(grq_outfile *file);

/* The same for libraries that insist on opening by name (HDF5): names a temporary beside `path` (caller frees), and
 * later renames it into place after fsync. When that fails the temporary is removed. */
grq_status grq_temporary_name(const char *path, char **temporary, grq_error *err);
grq_status grq_rename_into_place(const char *temporary, const char *path, grq_error *err);

/* The parts of the above, for files that are made over many runs: the file that writing to `path` would make or replace
 * (caller frees *target; refused as above), and a rename that is on disk when it returns. A temporary that could not be
 * renamed stays. */
grq_status grq_output_name(const char *path, char **target, grq_error *err);
grq_status grq_rename_synced(const char *temporary, const char *target, grq_error *err);

bool grq_file_exists(const char *path);
grq_status grq_make_directories(const char *path, grq_error *err); /* like mkdir -p */
char *grq_path_join(const char *folder, const char *name);         /* caller frees; NULL when out of memory */

#endif
