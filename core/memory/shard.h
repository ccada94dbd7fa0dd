/* memory/shard.h - all owners of a sharded table in one process: what a run over several does, for checks. */
#ifndef GATERQ_MEMORY_SHARD_H
#define GATERQ_MEMORY_SHARD_H

#include "gaterq/table.h"

/* As grq_table_fetch, by n_shards owners one after another; n_shards 1 is grq_table_fetch. */
grq_status grq_table_fetch_sharded(const grq_table *table, uint32_t n_shards, size_t n_positions, uint32_t n_columns,
                                   const int64_t *rows, float *out, grq_error *err);

#endif
