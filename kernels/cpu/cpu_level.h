/* kernels/cpu/cpu_level.h - which instruction set the hand-written kernels use, chosen once at start.
 *
 * The level is the least of what the processor has, what this build holds and what the environment variable GATERQ_CPU
 * (ref, avx2 or avx512) allows. Every level gives the same bits. */
#ifndef GATERQ_CPU_LEVEL_H
#define GATERQ_CPU_LEVEL_H

#include "gaterq/status.h"

enum {
    GRQ_CPU_REF,   /* plain C */
    GRQ_CPU_AVX2,  /* AVX2 and F16C */
    GRQ_CPU_AVX512 /* AVX-512 F, BW, VL, DQ and VBMI */
};

int grq_cpu_level(void);
int grq_cpu_level_of_processor(void); /* the same without GATERQ_CPU */
const char *grq_cpu_level_name(int level);

/* For the tool: a GATERQ_CPU that is unknown, or that this processor cannot run, is bad usage. Where nobody asks,
 * grq_cpu_level() takes an unknown value for none and a level too high for the processor's. */
grq_status grq_cpu_level_check(grq_error *err);

#endif
