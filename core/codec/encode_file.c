/* Coding a table into a file that grows over any number of interrupted runs. */
#include "gaterq/encode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "block_run.h"
#include "gaterq/file.h"
#include "partial.h"

typedef struct {
    const grq_table *table;
    const grq_encode_job *job;
    uint32_t n_ranks;
    grq_codes *shape; /* of the file */
    grq_partial file;
    grq_block_list list; /* of all ranks, as far as known */
    grq_journal *journal;
    char *path, *journal_path; /* of the file, and of this rank's journal */
    uint8_t id[GRQ_SHA256_BYTES];
    bool ended; /* the file is there already */
} run;

/* ---- what is to be done ---- */

static grq_status check_range(const grq_table *table, const grq_encode_job *job, uint64_t *n_rows, grq_error *err)
{
    const uint64_t all = grq_table_n_rows(table), first = job->first_row;
    if (first >= all)
        return grq_fail(err, GRQ_E_USAGE, "row %" PRIu64 " is not in %s, which has %" PRIu64 " rows", first,
                        grq_table_name(table), all);
    *n_rows = job->n_rows ? job->n_rows : all - first;
    if (*n_rows > all - first)
        return grq_fail(err, GRQ_E_USAGE, "rows %" PRIu64 " to %" PRIu64 ": %s has %" PRIu64 " rows", first,
                        first + *n_rows - 1, grq_table_name(table), all);
    if (first % GRQ_CODE_BLOCK_ROWS || (first + *n_rows < all && *n_rows % GRQ_CODE_BLOCK_ROWS))
        return grq_fail(err, GRQ_E_USAGE,
                        "rows %" PRIu64 " to %" PRIu64 ": a part begins at a multiple of %d rows, and ends before one "
                        "or at the table's end",
                        first, first + *n_rows - 1, GRQ_CODE_BLOCK_ROWS);
    if (job->n_ranks && job->rank >= job->n_ranks)
        return grq_fail(err, GRQ_E_USAGE, "rank %u of %u: ranks count from 0", job->rank, job->n_ranks);
    return GRQ_OK;
}

/* Of settings and of three blocks of the source: what must be the same when a run goes on. */
static grq_status identify(run *r, grq_error *err)
{
    grq_code_metadata metadata;
    grq_sha256_stream *stream;
    const uint64_t n_blocks = grq_n_blocks(r->shape->n_rows), probes[] = { 0, n_blocks / 2, n_blocks - 1 };
    grq_status st = grq_code_metadata_make(r->shape, &metadata, err);
    if (st == GRQ_OK) st = grq_sha256_start(&stream, err);
    if (st != GRQ_OK) return st;
    for (size_t i = 0; i < metadata.n; i++) {
        grq_sha256_add(stream, metadata.items[i].key, strlen(metadata.items[i].key) + 1);
        grq_sha256_add(stream, metadata.items[i].value, strlen(metadata.items[i].value) + 1);
    }
    grq_sha256_add(stream, &r->n_ranks, sizeof r->n_ranks);
    for (int i = 0; st == GRQ_OK && i < 3; i++) {
        uint8_t digest[GRQ_SHA256_BYTES];
        st = grq_digest_stored_rows(r->table, r->shape->first_row + probes[i] * GRQ_CODE_BLOCK_ROWS,
                                    grq_block_rows(r->shape->n_rows, probes[i]), digest, err);
        if (st == GRQ_OK) grq_sha256_add(stream, digest, sizeof digest);
    }
    if (st == GRQ_OK) return grq_sha256_finish(stream, r->id, err);
    grq_sha256_abandon(stream);
    return st;
}

static char *journal_name(const run *r, uint32_t rank)
{
    char *name;
    const int n = r->n_ranks == 1 ? asprintf(&name, "%s.journal", r->path)
                                  : asprintf(&name, "%s.journal-%u-of-%u", r->path, rank, r->n_ranks);
    return n < 0 ? NULL : name;
}

/* Blocks are dealt out in turn, so that ranks move through the table side by side. */
static bool is_own(const run *r, uint64_t block)
{
    return block % r->n_ranks == r->job->rank;
}

/* ---- scratch of a thread ---- */

typedef struct {
    float *rows;
    uint8_t *planes, *code[GRQ_MAX_STAGES], *side[GRQ_MAX_STAGES];
} scratch;

static grq_status scratch_new(const grq_codes *c, scratch *s, grq_error *err)
{
    const size_t code = GRQ_CODE_BLOCK_ROWS * c->code_bytes, side = GRQ_CODE_BLOCK_ROWS * sizeof(uint16_t);
    s->rows = malloc(GRQ_CODE_BLOCK_ROWS * (size_t)c->row_dim * sizeof *s->rows);
    s->planes = malloc(c->n_stages * (code + side));
    for (uint32_t k = 0; s->planes && k < c->n_stages; k++) {
        s->code[k] = s->planes + k * (code + side);
        s->side[k] = s->code[k] + code;
    }
    return s->rows && s->planes ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "no memory for a block of rows");
}

static void scratch_free(scratch *s)
{
    free(s->rows);
    free(s->planes);
}

/* ---- blocks ---- */

static grq_status digest_block(const run *r, const scratch *s, uint64_t n, uint8_t digest[GRQ_SHA256_BYTES],
                               grq_error *err)
{
    return grq_digest_coded_rows((const uint8_t *const *)s->code, (const uint8_t *const *)s->side, r->shape->n_stages,
                                 r->shape->code_bytes, n, digest, err);
}

static grq_status code_block(run *r, scratch *s, uint64_t block, grq_error *err)
{
    const uint64_t first = r->shape->first_row + block * GRQ_CODE_BLOCK_ROWS,
                   n = grq_block_rows(r->shape->n_rows, block);
    grq_status st = grq_encode_block(r->shape, r->table, first, n, s->rows, s->code, s->side, err);
    if (st == GRQ_OK) st = digest_block(r, s, n, r->list.coded[block], err);
    if (st == GRQ_OK) st = grq_digest_stored_rows(r->table, first, n, r->list.source[block], err);
    if (st == GRQ_OK)
        st = grq_partial_write(&r->file, block, (const uint8_t *const *)s->code, (const uint8_t *const *)s->side, err);
    return st;
}

/* A block that the journal has: done if its bytes are what the journal says. A machine that lost power may have kept
 * the one and not the other. */
static grq_status recheck_block(run *r, scratch *s, uint64_t block, grq_error *err)
{
    uint8_t digest[GRQ_SHA256_BYTES];
    grq_status st = grq_partial_read(&r->file, block, s->code, s->side, err);
    if (st == GRQ_OK) st = digest_block(r, s, grq_block_rows(r->shape->n_rows, block), digest, err);
    if (st == GRQ_OK && memcmp(digest, r->list.coded[block], sizeof digest)) r->list.done[block] = 0;
    return st;
}

typedef grq_status block_work(run *r, scratch *s, uint64_t block, grq_error *err);

/* Does `work` on every own block whose `done` is `wanted`; blocks of code_block are entered in the journal. */
static grq_status for_own_blocks(run *r, const char *stage, block_work *work, uint8_t wanted, grq_error *err)
{
    const uint64_t n_blocks = r->list.n_blocks;
    uint64_t n_rows = 0;
    for (uint64_t b = 0; b < n_blocks; b++)
        if (is_own(r, b) && r->list.done[b] == wanted) n_rows += grq_block_rows(r->shape->n_rows, b);
    if (!n_rows) return GRQ_OK;
    grq_block_run blocks = grq_block_run_of(n_blocks, n_rows, stage, r->job->progress);
#pragma omp parallel num_threads(r->job->n_threads ? r->job->n_threads : 1)
    {
        grq_error own = { .status = GRQ_OK };
        scratch s;
        const grq_status ready = scratch_new(r->shape, &s, &own);
#pragma omp for schedule(dynamic, 1)
        for (uint64_t b = 0; b < n_blocks; b++) {
            if (!is_own(r, b) || r->list.done[b] != wanted || grq_block_run_over(&blocks, b)) continue;
            grq_status st = ready == GRQ_OK ? work(r, &s, b, &own) : ready;
#pragma omp critical(grq_encode_journal)
            if (st == GRQ_OK && !wanted) {
                r->list.done[b] = 1;
                st = grq_journal_append(r->journal, &r->list, b, &own);
            }
            grq_block_run_ended(&blocks, b, grq_block_rows(r->shape->n_rows, b), st, &own);
        }
        scratch_free(&s);
    }
    return grq_block_run_status(&blocks, err);
}

static uint64_t own_rows_done(const run *r)
{
    uint64_t n = 0;
    for (uint64_t b = 0; b < r->list.n_blocks; b++)
        if (is_own(r, b) && r->list.done[b]) n += grq_block_rows(r->shape->n_rows, b);
    return n;
}

/* ---- other ranks ---- */

/* Takes in what the journals of the others hold by now, and says whether one that lacks blocks is still written. */
static grq_status peek_others(run *r, uint32_t *idle_rank, grq_error *err)
{
    grq_status st = GRQ_OK;
    *idle_rank = 0;
    for (uint32_t rank = 1; st == GRQ_OK && rank < r->n_ranks; rank++) {
        char *const name = journal_name(r, rank);
        bool busy = false, lacks = false;
        if (!name) return grq_fail(err, GRQ_E_NOMEM, "no memory for a name");
        st = grq_journal_peek(name, r->id, &r->list, &busy, err);
        free(name);
        for (uint64_t b = rank; !lacks && b < r->list.n_blocks; b += r->n_ranks) lacks = !r->list.done[b];
        if (lacks && !busy) *idle_rank = rank;
    }
    return st;
}

enum { POLL_MS = 200, PATIENCE_MS = 60 * 1000 };

static grq_status wait_for_others(run *r, grq_error *err)
{
    const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
    for (uint32_t idle_ms = 0;;) {
        uint32_t idle_rank;
        grq_status st = peek_others(r, &idle_rank, err);
        if (st != GRQ_OK) return st;
        const uint64_t n_done = grq_block_list_n_done(&r->list);
        if (n_done == r->list.n_blocks) return GRQ_OK;
        st = grq_progress_step(r->job->progress, "wait for other ranks", n_done, r->list.n_blocks, "blocks", NULL, err);
        if (st != GRQ_OK) return st;
        idle_ms = idle_rank ? idle_ms + POLL_MS : 0;
        if (idle_ms >= PATIENCE_MS)
            return grq_fail(err, GRQ_E_IO,
                            "%s: rank %u of %u lacks blocks, and nobody works on them; repeat the command on all ranks",
                            r->file.path, idle_rank, r->n_ranks);
        nanosleep(&pause, NULL);
    }
}

/* ---- a run ---- */

/* A run that was killed after the file got its name: the journal is full, and the file has what it says. */
static bool was_ended(run *r)
{
    grq_codes *c = NULL;
    char *partial = NULL;
    uint32_t idle_rank;
    const bool named = asprintf(&partial, "%s.partial", r->path) >= 0 && !grq_file_exists(partial);
    free(partial);
    if (!named || grq_block_list_n_done(&r->list) == 0 || grq_codes_open_part(r->path, &c, NULL) != GRQ_OK)
        return false;
    bool ended = c->n_rows == r->shape->n_rows && (r->job->rank > 0 || peek_others(r, &idle_rank, NULL) == GRQ_OK);
    for (uint64_t b = 0; ended && b < r->list.n_blocks; b++) {
        if (r->job->rank > 0 && !is_own(r, b)) continue;
        const uint64_t at = b * GRQ_SHA256_BYTES;
        ended = r->list.done[b] && !memcmp(r->list.coded[b], c->coded_digests + at, GRQ_SHA256_BYTES) &&
                !memcmp(r->list.source[b], c->source_digests + at, GRQ_SHA256_BYTES);
    }
    if (ended) memcpy(r->shape->digest, c->digest, sizeof c->digest);
    grq_codes_close(c);
    return ended;
}

static grq_status begin(run *r, const char *path, grq_error *err)
{
    uint64_t n_rows = 0;
    const grq_encode_job *const job = r->job;
    grq_status st = check_range(r->table, job, &n_rows, err);
    if (st == GRQ_OK)
        st = grq_codes_new(job->encoder, job->transform, n_rows, grq_table_row_dim(r->table), job->n_stages,
                           job->origin, &r->shape, err);
    if (st != GRQ_OK) return st;
    r->shape->first_row = job->first_row;
    r->shape->table_rows = grq_table_n_rows(r->table);
    st = identify(r, err);
    if (st == GRQ_OK) st = grq_block_list_new(grq_n_blocks(n_rows), &r->list, err);
    if (st == GRQ_OK) st = grq_output_name(path, &r->path, err);
    if (st == GRQ_OK && !(r->journal_path = journal_name(r, job->rank)))
        st = grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a name", path);
    /* The journal first: the partial file of another encoding is not touched. */
    if (st == GRQ_OK) st = grq_journal_open(r->journal_path, r->id, &r->list, &r->journal, err);
    if (st != GRQ_OK || (r->ended = was_ended(r))) return st;
    st = grq_partial_open(r->path, r->shape, &r->file, err);
    if (st != GRQ_OK && grq_block_list_n_done(&r->list) == 0) unlink(r->journal_path);
    return st;
}

/* Rank 0: the file under its name, and no journals. */
static grq_status end(run *r, grq_error *err)
{
    grq_status st = r->n_ranks > 1 && !r->ended ? wait_for_others(r, err) : GRQ_OK;
    if (st == GRQ_OK && !r->ended) st = grq_partial_finish(&r->file, &r->list, err);
    for (uint32_t rank = 0; st == GRQ_OK && rank < r->n_ranks; rank++) {
        char *const name = journal_name(r, rank);
        if (name) unlink(name);
        free(name);
    }
    return st;
}

static grq_status do_blocks(run *r, grq_encode_result *out, grq_error *err)
{
    grq_status st = r->ended ? GRQ_OK : for_own_blocks(r, "check what is done", recheck_block, 1, err);
    out->n_resumed = own_rows_done(r);
    if (st == GRQ_OK && !r->ended) st = for_own_blocks(r, "encode", code_block, 0, err);
    out->n_coded = own_rows_done(r) - out->n_resumed;
    return st;
}

grq_status grq_encode_file(const grq_table *table, const grq_encode_job *job, const char *path, grq_encode_result *out,
                           grq_error *err)
{
    run r = { .table = table, .job = job, .n_ranks = job->n_ranks ? job->n_ranks : 1, .file = { .fd = -1 } };
    *out = (grq_encode_result){ 0 };
    grq_status st = begin(&r, path, err);
    if (st == GRQ_OK) st = do_blocks(&r, out, err);
    if (st == GRQ_OK && job->rank == 0) st = end(&r, err);
    out->complete = st == GRQ_OK && job->rank == 0;
    if (st == GRQ_OK) grq_encode_result_take(r.shape, out);
    /* The table must be mended first: nothing of this is of use then. */
    if (st == GRQ_E_DATA && r.journal && r.n_ranks == 1) {
        unlink(r.journal_path);
        grq_partial_remove(&r.file);
    }
    grq_journal_close(r.journal);
    grq_partial_close(&r.file);
    grq_block_list_free(&r.list);
    free(r.journal_path);
    free(r.path);
    grq_codes_close(r.shape);
    return st;
}
