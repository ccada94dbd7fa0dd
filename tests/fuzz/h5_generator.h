/* tests/fuzz/h5_generator.h - HDF5 files that are whole as files, but hold what our readers do not expect.
 *
 * libhdf5 1.10 itself crashes on some malformed files, which is not ours to fuzz. So the fuzzer's bytes do not damage a
 * file: they describe one. Bytes 1 to 3 choose what is in the file (byte 0 is the reader's); then each object has four
 * bytes of its own: what is odd about it (0: nothing) and three parameters. Missing bytes are 0, so that the empty
 * description is a valid file.
 */
#ifndef GATERQ_TESTS_FUZZ_H5_GENERATOR_H
#define GATERQ_TESTS_FUZZ_H5_GENERATOR_H

#include <stddef.h>
#include <stdint.h>

enum { H5_POSITIONS = 6, H5_BRANCHES = 2, H5_COLUMNS = 3, H5_WIDTH = 4 };

/* Writes the file at `path`, which exists. */
void h5_generate(const uint8_t *data, size_t size, const char *path);

#endif
