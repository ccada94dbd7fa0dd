/* kernels/shared/simd.h - compile a hot loop for several instruction sets, chosen once by the loader.
 *
 * GRQ_SIMD before a function makes gcc emit clones for AVX-512, AVX2 and the base set. All clones compute the same
 * bits: fused multiply-add is off (-ffp-contract=off) and a sum is only vectorised where the source itself keeps lanes
 * apart (GRQ_LANES partial sums folded by halves), never by reassociation. Sanitizer builds use the base set only. */
#ifndef GATERQ_SIMD_H
#define GATERQ_SIMD_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define GRQ_SIMD __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define GRQ_SIMD
#endif

enum { GRQ_LANES = 16 };

/* GRQ_LANES floats side by side; gcc splits them where registers are narrower. Unaligned by declaration. */
typedef float grq_lanes __attribute__((vector_size(GRQ_LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

#endif
