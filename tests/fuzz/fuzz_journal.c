/* Journals of the streaming encoder: whatever a file holds, only whole records of this job with a sound check are
 * taken. */
#include <string.h>

#include "codec/journal.h"
#include "fuzz.h"

enum { BLOCKS = 300, RECORD_BYTES = 80, HEADING_BYTES = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    grq_block_list list;
    grq_error err;
    bool busy;
    uint8_t job[GRQ_SHA256_BYTES] = { 0 };
    /* The job is the file's own, so that its records are looked at. */
    if (size >= HEADING_BYTES) memcpy(job, data + HEADING_BYTES - sizeof job, sizeof job);
    fuzz_require(grq_block_list_new(BLOCKS, &list, &err) == GRQ_OK, "no memory");
    const grq_status st = grq_journal_peek(fuzz_file(data, size), job, &list, &busy, &err);
    const uint64_t n_done = grq_block_list_n_done(&list);
    if (st != GRQ_OK) fuzz_refused(st, &err);
    fuzz_accepted = st == GRQ_OK && n_done > 0;
    fuzz_require(n_done * RECORD_BYTES <= size, "more blocks than records");
    for (uint64_t b = 0; b < BLOCKS; b++)
        fuzz_require(!list.done[b] || memmem(data, size, list.coded[b], sizeof list.coded[b]), "a digest from nowhere");
    grq_block_list_free(&list);
    return 0;
}
