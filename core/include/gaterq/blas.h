/* gaterq/blas.h - matrix products, through OpenBLAS loaded at run time.
 *
 * Debian's OpenBLAS 0.3.21 does not know recent Xeons and falls back to SSE3 kernels, over four times slower, unless
 * OPENBLAS_CORETYPE names a core before the library starts. So it is opened with dlopen after that variable has been
 * set from the CPU's own feature bits (a value set by the user wins). It runs on one thread: our threads each call it
 * on their own part, so that results do not depend on the number of threads. docs/decisions.md has the measurements
 * against BLIS. */
#ifndef GATERQ_BLAS_H
#define GATERQ_BLAS_H

#include <stdbool.h>

#include "gaterq/status.h"

/* Loads the library once; safe from any thread. Every other function here must come after it. */
grq_status grq_blas_init(grq_error *err);
const char *grq_blas_description(void); /* "OpenBLAS 0.3.21, kernel Haswell (chosen by gaterq), 1 thread per call" */

/* Row-major C (m,n) = op(A) (m,k) * op(B) (k,n) + beta * C; lda, ldb, ldc are row strides of the stored matrices. */
void grq_sgemm(bool transpose_a, bool transpose_b, int m, int n, int k, const float *a, int lda, const float *b,
               int ldb, float beta, float *c, int ldc);
void grq_dgemm(bool transpose_a, bool transpose_b, int m, int n, int k, const double *a, int lda, const double *b,
               int ldb, double beta, double *c, int ldc);

#endif
