/* gaterq/shards.h - the tensors of a checkpoint that lies in one safetensors file or in many.
 *
 * A folder with model.safetensors.index.json is read through it: a file is opened when one of its tensors is first
 * asked for, so that two of 48 shards are enough for what they hold. A folder without one must hold safetensors files
 * only of this checkpoint; all are opened at once. Files are taken in the order of the numbers in their names (2 before
 * 10). */
#ifndef GATERQ_SHARDS_H
#define GATERQ_SHARDS_H

#include "gaterq/safetensors.h"

typedef struct grq_shards grq_shards;

/* `path`: a folder, or one safetensors file. Refused: an index that names files outside the folder, a tensor name in
 * two files, a folder without safetensors files. Not safe for threads until every tensor needed has been asked for. */
grq_status grq_shards_open(const char *path, grq_shards **out, grq_error *err);
void grq_shards_close(grq_shards *shards); /* takes NULL; ends all tensors */
const char *grq_shards_path(const grq_shards *shards);

size_t grq_shards_count(const grq_shards *shards);                   /* tensors */
const char *grq_shards_name(const grq_shards *shards, size_t index); /* of tensor `index`; NULL past the end */

/* *tensor is NULL when no shard has `name`. An index that names a file which is missing, cut short, or without the
 * tensor is an error that names both. *file (may be NULL) is the path of the file, for messages. */
grq_status grq_shards_find(grq_shards *shards, const char *name, const grq_tensor **tensor, const char **file,
                           grq_error *err);
/* As grq_safetensors_get, but of any alignment: fails by name when missing or of another dtype or shape. */
grq_status grq_shards_get(grq_shards *shards, const char *name, grq_dtype dtype, uint32_t rank, const uint64_t *shape,
                          const grq_tensor **out, grq_error *err);
/* The metadata `key` of the only file there is; NULL when there are several files or no such key. */
const char *grq_shards_metadata(const grq_shards *shards, const char *key);

#endif
