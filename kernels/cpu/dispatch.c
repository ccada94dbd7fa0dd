/* Which table of kernels runs: decided by the processor and GATERQ_CPU (cpu_level.h). */
#include "cpu/cpu_level.h"
#include "cpu/kernels.h"

static const grq_kernels *const tables[] = {
    [GRQ_CPU_REF] = &grq_kernels_ref,
#if defined(__x86_64__)
    [GRQ_CPU_AVX2] = &grq_kernels_avx2,
    [GRQ_CPU_AVX512] = &grq_kernels_avx512,
#endif
};

const grq_kernels *grq_cpu_kernels_at(size_t index)
{
    return index <= (size_t)grq_cpu_level_of_processor() ? tables[index] : NULL;
}

const grq_kernels *grq_cpu_kernels(void)
{
    return tables[grq_cpu_level()];
}
