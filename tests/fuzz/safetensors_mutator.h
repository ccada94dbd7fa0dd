/* Mutations of safetensors files that keep the header's length right, else nothing behind it is ever reached. */
#ifndef GATERQ_TESTS_FUZZ_SAFETENSORS_MUTATOR_H
#define GATERQ_TESTS_FUZZ_SAFETENSORS_MUTATOR_H

#include <string.h>

#include "fuzz.h"

/* Behind the closing brace that belongs to the first one, and the spaces that follow; SIZE_MAX where there is none. */
static size_t header_end(const uint8_t *data, size_t size)
{
    int depth = 0, in_string = 0;
    for (size_t i = 8; i < size; i++) {
        const uint8_t c = data[i];
        if (in_string) {
            if (c == '\\') i++;
            else in_string = c != '"';
            continue;
        }
        in_string = c == '"';
        depth += (c == '{') - (c == '}');
        if (c != '}' || depth > 0) continue;
        do i++;
        while (i < size && data[i] == ' ');
        return i;
    }
    return SIZE_MAX;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 == 0) return size; /* lengths that are wrong must be seen too */
    const size_t end = header_end(data, size);
    if (end == SIZE_MAX) return size;
    for (int i = 0; i < 8; i++) data[i] = (uint8_t)((uint64_t)(end - 8) >> 8 * i);
    return size;
}

#endif
