/* tests/fuzz/fuzz.h - what the fuzz targets share.
 *
 * A target is one file fuzz_<name>.c with LLVMFuzzerTestOneInput. clang links it with libFuzzer (make fuzz); gcc links
 * it with replay.c, which runs the corpus as an ordinary test. A target aborts when a property does not hold. */
#ifndef GATERQ_TESTS_FUZZ_H
#define GATERQ_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "gaterq/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libFuzzer's own mutations, for targets that repair afterwards what every mutation would break. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* Set to 1 by a target when the input is a valid file; replay.c asks this of corpus files named valid-*. */
extern int fuzz_accepted;

/* A file in memory with these bytes; its path, until the next call. Aborts where the system refuses. */
const char *fuzz_file(const void *bytes, size_t n_bytes);
/* The path of an ordinary file in $TMPDIR (else /dev/shm or /tmp), the same at each call, for libraries that insist on
 * one. Removed at exit, not at a crash. */
const char *fuzz_path(void);

/* Reads the first and the last byte, so that a sanitizer sees an address that is none. */
void fuzz_touch_ends(const void *bytes, size_t n_bytes);
void fuzz_touch(const void *bytes, size_t n_bytes); /* all of them */

/* A failure must be one that a reader of files may have, and carry a message: anything else aborts. */
void fuzz_refused(grq_status status, const grq_error *err);

/* Aborts with the sentence. */
#define fuzz_require(condition, sentence)                                                                              \
    do {                                                                                                               \
        if (!(condition)) fuzz_broken(__FILE__, __LINE__, sentence);                                                   \
    } while (0)
void fuzz_broken(const char *file, int line, const char *sentence) __attribute__((noreturn));

#endif
