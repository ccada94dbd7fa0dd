/* Which table of kernels runs: decided by the processor and GATERQ_CPU (cpu_level.h). */
#include "cpu/kernels.h"

const grq_kernels *grq_cpu_kernels_at(size_t index)
{
    return index == 0 ? &grq_kernels_ref : NULL;
}

const grq_kernels *grq_cpu_kernels(void)
{
    return &grq_kernels_ref;
}
