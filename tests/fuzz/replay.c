/* Runs one target over the files of its corpus, without libFuzzer: `replay FOLDER...`. Files named valid-* must be
 * accepted by the reader, so that the corpus does not rot when a format changes. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gaterq/file.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data, (void)max_size;
    return size; /* nothing is mutated here */
}

/* In memory of this very size: a sanitizer sees a read past its end. */
static void run(const char *bytes, size_t n_bytes)
{
    uint8_t *const exact = calloc(1, n_bytes ? n_bytes : 1);
    if (!exact) fuzz_broken(__FILE__, __LINE__, "no memory");
    memcpy(exact, bytes, n_bytes);
    fuzz_accepted = 0;
    LLVMFuzzerTestOneInput(exact, n_bytes);
    free(exact);
}

static int run_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    char *bytes;
    size_t n_bytes;
    grq_error err;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) return 1;
    if (grq_file_read(path, 0, &bytes, &n_bytes, &err) != GRQ_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    fprintf(stderr, "%s\n", path); /* before it runs: the last line names the file that crashed */
    run(bytes, n_bytes);
    free(bytes);
    if (strncmp(name, "valid-", 6) != 0 || fuzz_accepted) return 0;
    fprintf(stderr, "%s: is refused, but is called valid\n", path);
    return 1;
}

int main(int argc, char **argv)
{
    int failed = 0, n = 0;
    run("", 0);
    for (int i = 1; i < argc; i++) {
        struct dirent **entries;
        const int n_entries = scandir(argv[i], &entries, NULL, alphasort);
        if (n_entries < 0) fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
        for (int e = 0; e < n_entries; e++) {
            if (entries[e]->d_name[0] != '.') {
                failed += run_file(argv[i], entries[e]->d_name);
                n++;
            }
            free(entries[e]);
        }
        if (n_entries >= 0) free(entries);
    }
    printf("%d corpus files, %d of them wrong\n", n, failed);
    return failed || n == 0;
}
