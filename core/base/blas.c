#include "gaterq/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CBLAS's own enumeration values. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

typedef void sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void dgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                            const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sgemm_function *sgemm;
static dgemm_function *dgemm;
static char description[256] = "no BLAS loaded";
static grq_error failure;

/* The kernels that this processor can run and that 0.3.21 has; NULL: let the library choose. */
static const char *best_core(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return "SKYLAKEX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "HASWELL";
#endif
    return NULL;
}

/* Sets a variable while the library starts, and puts back what was there. */
static void with_variable(const char *name, const char *value, char **before)
{
    const char *old = getenv(name);
    *before = old ? strdup(old) : NULL;
    setenv(name, value, 1);
}

static void restore_variable(const char *name, char *before)
{
    if (before) setenv(name, before, 1);
    else unsetenv(name);
    free(before);
}

static void *open_library(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    return library ? library : dlopen("libopenblas.so", RTLD_NOW | RTLD_LOCAL);
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found && failure.status == GRQ_OK)
        grq_fail(&failure, GRQ_E_DEVICE, "the OpenBLAS found here has no %s; install libopenblas0-pthread", name);
    return found;
}

static void describe(void *library, bool chosen)
{
    char *(*core)(void) = (char *(*)(void))dlsym(library, "openblas_get_corename");
    char *(*config)(void) = (char *(*)(void))dlsym(library, "openblas_get_config");
    const char *text = config ? config() : "", *at = strstr(text, "OpenBLAS ");
    char version[48] = "";
    if (at) snprintf(version, sizeof version, "%.*s", (int)strcspn(at + 9, " "), at + 9);
    snprintf(description, sizeof description, "OpenBLAS %s, kernel %s (%s), 1 thread per call", version,
             core ? core() : "unknown", chosen ? "chosen by gaterq" : "OPENBLAS_CORETYPE or the library's choice");
}

static void load(void)
{
    char *core_before = NULL, *threads_before = NULL;
    const char *core = getenv("OPENBLAS_CORETYPE") ? NULL : best_core();
    if (core) with_variable("OPENBLAS_CORETYPE", core, &core_before);
    with_variable("OPENBLAS_NUM_THREADS", "1", &threads_before);
    void *library = open_library();
    if (core) restore_variable("OPENBLAS_CORETYPE", core_before);
    restore_variable("OPENBLAS_NUM_THREADS", threads_before);
    if (!library) {
        grq_fail(&failure, GRQ_E_DEVICE,
                 "OpenBLAS cannot be opened (%s); install it with: apt-get install libopenblas0-pthread", dlerror());
        return;
    }
    sgemm = (sgemm_function *)symbol(library, "cblas_sgemm");
    dgemm = (dgemm_function *)symbol(library, "cblas_dgemm");
    void (*set_threads)(int) = (void (*)(int))symbol(library, "openblas_set_num_threads");
    if (failure.status != GRQ_OK) return;
    set_threads(1);
    describe(library, core != NULL);
}

grq_status grq_blas_init(grq_error *err)
{
    pthread_once(&once, load);
    return failure.status == GRQ_OK ? GRQ_OK : grq_fail(err, failure.status, "%s", failure.message);
}

const char *grq_blas_description(void)
{
    return description;
}

void grq_sgemm(bool transpose_a, bool transpose_b, int m, int n, int k, const float *a, int lda, const float *b,
               int ldb, float beta, float *c, int ldc)
{
    sgemm(ROW_MAJOR, transpose_a ? TRANSPOSE : NO_TRANSPOSE, transpose_b ? TRANSPOSE : NO_TRANSPOSE, m, n, k, 1.0f, a,
          lda, b, ldb, beta, c, ldc);
}

void grq_dgemm(bool transpose_a, bool transpose_b, int m, int n, int k, const double *a, int lda, const double *b,
               int ldb, double beta, double *c, int ldc)
{
    dgemm(ROW_MAJOR, transpose_a ? TRANSPOSE : NO_TRANSPOSE, transpose_b ? TRANSPOSE : NO_TRANSPOSE, m, n, k, 1.0, a,
          lda, b, ldb, beta, c, ldc);
}
