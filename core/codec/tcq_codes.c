/* The built-in trellis codes. The tables `part` follow from the masks and are checked against them by the twins test.
 */
#include <string.h>

#include "tcq.h"

/* Bits 0-3 of an index from four window bits x = 0..15 at position 4k: parities of mask[j] >> 4k & x. */
#define PARITY(x) (0x6996 >> ((x)&15) & 1)
#define ENTRY(m0, m1, m2, m3, k, x)                                                                                    \
    (PARITY((m0) >> 4 * (k) & (x)) | PARITY((m1) >> 4 * (k) & (x)) << 1 | PARITY((m2) >> 4 * (k) & (x)) << 2 |         \
     PARITY((m3) >> 4 * (k) & (x)) << 3)
#define PART(m0, m1, m2, m3, k)                                                                                        \
    {                                                                                                                  \
        ENTRY(m0, m1, m2, m3, k, 0), ENTRY(m0, m1, m2, m3, k, 1), ENTRY(m0, m1, m2, m3, k, 2),                         \
            ENTRY(m0, m1, m2, m3, k, 3), ENTRY(m0, m1, m2, m3, k, 4), ENTRY(m0, m1, m2, m3, k, 5),                     \
            ENTRY(m0, m1, m2, m3, k, 6), ENTRY(m0, m1, m2, m3, k, 7), ENTRY(m0, m1, m2, m3, k, 8),                     \
            ENTRY(m0, m1, m2, m3, k, 9), ENTRY(m0, m1, m2, m3, k, 10), ENTRY(m0, m1, m2, m3, k, 11),                   \
            ENTRY(m0, m1, m2, m3, k, 12), ENTRY(m0, m1, m2, m3, k, 13), ENTRY(m0, m1, m2, m3, k, 14),                  \
            ENTRY(m0, m1, m2, m3, k, 15)                                                                               \
    }
#define MASKS(m0, m1, m2, m3)                                                                                          \
    .mask = { m0, m1, m2, m3 },                                                                                        \
    .part = { PART(m0, m1, m2, m3, 0), PART(m0, m1, m2, m3, 1), PART(m0, m1, m2, m3, 2), PART(m0, m1, m2, m3, 3) }

const grq_tcq_code grq_tcq_t12 = {
    .id = "T12",
    .n_bits = 12,
    .n_masks = 4,
    MASKS(0x329, 0x48E, 0x602, 0xD35),
    .level = { -127, -85, -62, -51, -38, -29, -18, -9, 9, 18, 29, 38, 51, 62, 85, 127 },
};
const grq_tcq_code grq_tcq_t10 = {
    .id = "T10",
    .n_bits = 10,
    .n_masks = 4,
    MASKS(0x017, 0x0AA, 0x1A6, 0x3D9),
    .level = { -126, -85, -64, -52, -39, -29, -17, -11, 11, 17, 29, 39, 52, 64, 85, 126 },
};
const grq_tcq_code grq_tcq_t8 = {
    .id = "T8",
    .n_bits = 8,
    .n_masks = 3,
    MASKS(0x46, 0x72, 0x95, 0),
    .level = { -109, -56, -35, -16, 16, 35, 56, 109 },
};

const grq_tcq_code *grq_tcq_code_find(const char *id)
{
    static const grq_tcq_code *const codes[] = { &grq_tcq_t12, &grq_tcq_t10, &grq_tcq_t8 };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(codes[i]->id, id)) return codes[i];
    return NULL;
}
