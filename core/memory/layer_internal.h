/* memory/layer_internal.h - what the files of a memory layer share. */
#ifndef GATERQ_MEMORY_LAYER_INTERNAL_H
#define GATERQ_MEMORY_LAYER_INTERNAL_H

#include "gaterq/geometry.h"

/* The gate from the kernel's three sums over a branch (kernels/cpu/kernels.h), in binary32. */
float grq_layer_gate_of_sums(const grq_geometry *geometry, const float sums[3]);
/* The gate of a score that is a BF16 number, as Qwen3.8's BF16 code computes it. */
float grq_layer_gate_of_score_qwen38(const grq_geometry *geometry, float score);

#endif
