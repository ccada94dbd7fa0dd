/* The only file that knows OpenBLAS. */
#include "gaterq/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CBLAS's own values; declared here because the library is not linked. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

typedef void sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void dgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a,
                            int lda, const double *b, int ldb, double beta, double *c, int ldc);

/* Written once under `once`, read-only afterwards. */
static struct {
    sgemm_function *sgemm;
    dgemm_function *dgemm;
    grq_status status;
    char failure[512];
    char description[256];
} blas;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char install_hint[] = "install it with: apt-get install libopenblas0-pthread";

/* The core whose kernels suit this CPU, by feature bits rather than by model; NULL leaves it to OpenBLAS. */
static const char *suitable_core(void)
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

/* Sets a variable and returns a copy of what it was (NULL: unset, or no memory to remember it). */
static char *exchange_variable(const char *name, const char *value)
{
    const char *const old = getenv(name);
    char *const copy = old ? strdup(old) : NULL;
    setenv(name, value, 1);
    return copy;
}

static void restore_variable(const char *name, char *old)
{
    if (old) setenv(name, old, 1);
    else unsetenv(name);
    free(old);
}

static void *open_library(void)
{
    void *const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    return library ? library : dlopen("libopenblas.so", RTLD_NOW | RTLD_LOCAL);
}

static void fail(const char *reason)
{
    blas.status = GRQ_E_IO;
    snprintf(blas.failure, sizeof blas.failure, "OpenBLAS (Debian package libopenblas0-pthread) cannot be used: %s; %s",
             reason, install_hint);
}

static void describe(void *library, const char *who_chose)
{
    /* ISO C has no cast from object to function pointers; POSIX guarantees that these bits are one. */
    char *(*config)(void) = NULL, *(*core)(void) = NULL;
    *(void **)&config = dlsym(library, "openblas_get_config");
    *(void **)&core = dlsym(library, "openblas_get_corename");
    char version[64] = "OpenBLAS";
    const char *const text = config ? config() : "";
    const size_t n_name = strcspn(text, " "); /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." */
    if (text[n_name])
        snprintf(version, sizeof version, "%.*s", (int)(n_name + 1 + strcspn(text + n_name + 1, " ")), text);
    snprintf(blas.description, sizeof blas.description, "%s, kernel %s (chosen by %s), 1 thread per call", version,
             core ? core() : "unknown", who_chose);
}

static void load(void)
{
    const char *const users = getenv("OPENBLAS_CORETYPE");
    const bool by_user = users && *users;
    const char *const core = by_user ? NULL : suitable_core();
    /* OpenBLAS reads both while it starts; nothing else should see them. */
    char *const old_core = core ? exchange_variable("OPENBLAS_CORETYPE", core) : NULL;
    char *const old_threads = exchange_variable("OPENBLAS_NUM_THREADS", "1");
    void *const library = open_library();
    if (core) restore_variable("OPENBLAS_CORETYPE", old_core);
    restore_variable("OPENBLAS_NUM_THREADS", old_threads);
    if (!library) {
        const char *const reason = dlerror();
        fail(reason ? reason : "it was not found");
        return;
    }
    void (*set_threads)(int) = NULL;
    *(void **)&blas.sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&blas.dgemm = dlsym(library, "cblas_dgemm");
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (!blas.sgemm || !blas.dgemm || !set_threads) {
        fail("it lacks cblas_sgemm, cblas_dgemm or openblas_set_num_threads");
        return;
    }
    set_threads(1);
    describe(library, by_user ? "OPENBLAS_CORETYPE" : core ? "gaterq" : "OpenBLAS");
}

grq_status grq_blas_init(grq_error *err)
{
    pthread_once(&once, load);
    return blas.status == GRQ_OK ? GRQ_OK : grq_fail(err, blas.status, "%s", blas.failure);
}

const char *grq_blas_description(void)
{
    return blas.description;
}

static int operation(bool transpose)
{
    return transpose ? TRANSPOSE : NO_TRANSPOSE;
}

void grq_sgemm(bool transpose_a, bool transpose_b, int m, int n, int k, const float *a, int lda, const float *b,
               int ldb, float beta, float *c, int ldc)
{
    blas.sgemm(ROW_MAJOR, operation(transpose_a), operation(transpose_b), m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

void grq_dgemm(bool transpose_a, bool transpose_b, int m, int n, int k, const double *a, int lda, const double *b,
               int ldb, double beta, double *c, int ldc)
{
    blas.dgemm(ROW_MAJOR, operation(transpose_a), operation(transpose_b), m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}
