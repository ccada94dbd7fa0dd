/* lm/real.h - the type of the trainer's numbers.
 *
 * ops.c, attention.c, memory.c, batch.c, pass.c and gradient.c are written for `grq_real`. The library compiles them
 * with float; the gradient check (tests/unit/test_gradient.c) includes the same files with LM_REAL_IS_DOUBLE, which
 * also gives every function another name, so that both versions live in one program. A name missing from the list is a
 * duplicate at link time. */
#ifndef GATERQ_LM_REAL_H
#define GATERQ_LM_REAL_H

#include <math.h>

#include "gaterq/blas.h"

#ifndef LM_REAL_IS_DOUBLE

#include "shared/expf.h"

typedef float grq_real;
#define LM_EXP(x) grq_expf(x)
#define LM_SQRT(x) sqrtf(x)
#define LM_GEMM grq_sgemm

#else

typedef double grq_real;
#define LM_EXP(x) exp(x)
#define LM_SQRT(x) sqrt(x)
#define LM_GEMM grq_dgemm

#define lm_project lm_project_f64
#define lm_project_backward lm_project_backward_f64
#define lm_read_norm lm_read_norm_f64
#define lm_read_norm_backward lm_read_norm_backward_f64
#define lm_write_mix lm_write_mix_f64
#define lm_write_mix_backward lm_write_mix_backward_f64
#define lm_relu lm_relu_f64
#define lm_relu_backward lm_relu_backward_f64
#define lm_cross_entropy lm_cross_entropy_f64
#define lm_attention lm_attention_f64
#define lm_attention_backward lm_attention_backward_f64
#define lm_attention_cached lm_attention_cached_f64
#define lm_memory_forward lm_memory_forward_f64
#define lm_memory_backward lm_memory_backward_f64
#define lm_batch_new lm_batch_new_f64
#define lm_batch_free lm_batch_free_f64
#define lm_batch_load lm_batch_load_f64
#define lm_batch_part lm_batch_part_f64
#define lm_pass_new lm_pass_new_f64
#define lm_pass_free lm_pass_free_f64
#define lm_pass_forward lm_pass_forward_f64
#define lm_pass_backward lm_pass_backward_f64
#define lm_gradient lm_gradient_f64

#endif
#endif
