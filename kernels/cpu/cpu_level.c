#include <stdlib.h>
#include <string.h>

#include "cpu_level.h"

static const char *const names[] = { "ref", "avx2", "avx512" };

const char *grq_cpu_level_name(int level)
{
    return names[level];
}

int grq_cpu_level_of_processor(void)
{
#if defined(__x86_64__)
    /* Also asks whether the operating system saves the wide registers. */
    if (!__builtin_cpu_supports("avx2")) return GRQ_CPU_REF; /* no processor has AVX2 without F16C */
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi"))
        return GRQ_CPU_AVX512;
    return GRQ_CPU_AVX2;
#else
    return GRQ_CPU_REF;
#endif
}

/* -1 when GATERQ_CPU is not set, or empty; -2 when it is not known. */
static int level_asked_for(const char **text)
{
    *text = getenv("GATERQ_CPU");
    if (!*text || !**text) return -1;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (!strcmp(*text, names[i])) return i;
    return -2;
}

int grq_cpu_level(void)
{
    static int chosen = -1; /* threads that race here store the same number */
    int level = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (level >= 0) return level;
    const char *text;
    const int asked = level_asked_for(&text), most = grq_cpu_level_of_processor();
    level = asked >= 0 && asked < most ? asked : most;
    __atomic_store_n(&chosen, level, __ATOMIC_RELAXED);
    return level;
}

grq_status grq_cpu_level_check(grq_error *err)
{
    const char *text;
    const int asked = level_asked_for(&text), most = grq_cpu_level_of_processor();
    if (asked == -2) return grq_fail(err, GRQ_E_USAGE, "GATERQ_CPU is \"%.40s\"; known: ref, avx2, avx512", text);
    if (asked > most)
        return grq_fail(err, GRQ_E_USAGE, "GATERQ_CPU is %s, but this processor has no more than %s", text,
                        names[most]);
    return GRQ_OK;
}
