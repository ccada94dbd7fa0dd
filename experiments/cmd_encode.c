/* gaterq encode: a table in residual 1-bit stages; parts of one; parts joined. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/counts.h"
#include "gaterq/encode.h"
#include "gaterq/pq_book.h"
#include "inputs.h"
#include "tables.h"

enum { NO_RANK = UINT32_MAX, MAX_PARTS = 4096 };

typedef struct {
    input_rows_options rows;
    const char *encoder, *range, *out, *book, *book_weights;
    uint64_t n_stages, rank, n_ranks, n_train;
    double exp_tab;
    bool join, rotate;
} encode_options;

/* ---- options ---- */

/* "A:B", rows A to B - 1; either may be left out. */
static grq_status parse_range(const char *text, grq_encode_job *job, grq_error *err)
{
    const char *const colon = text ? strchr(text, ':') : NULL;
    uint64_t bound[2] = { 0, 0 };
    if (!text) return GRQ_OK;
    const char *at = text;
    for (int i = 0; colon && i < 2; i++, at = colon + 1) {
        const char *const end = i ? text + strlen(text) : colon;
        char *stop;
        if (at == end) continue;
        errno = 0;
        bound[i] = strtoull(at, &stop, 10);
        if (*at < '0' || *at > '9' || stop != end || errno || (i && bound[1] <= bound[0]))
            return grq_fail(err, GRQ_E_USAGE, "--rows \"%s\": write FIRST:END, as 0:8192 or 8192:", text);
    }
    if (!colon) return grq_fail(err, GRQ_E_USAGE, "--rows \"%s\": write FIRST:END, as 0:8192 or 8192:", text);
    job->first_row = bound[0];
    job->n_rows = bound[1] ? bound[1] - bound[0] : 0;
    return GRQ_OK;
}

/* A launcher tells each process its rank in the environment; nothing else is needed of it. */
static grq_status find_ranks(encode_options *o, grq_error *err)
{
    static const char *const names[][2] = { { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
                                            { "PMI_RANK", "PMI_SIZE" } };
    if (o->rank != NO_RANK || o->n_ranks) {
        if (o->rank != NO_RANK && o->n_ranks) return GRQ_OK;
        return grq_fail(err, GRQ_E_USAGE, "--rank and --ranks go together");
    }
    for (size_t i = 0; i < TOOL_COUNT(names); i++) {
        const char *const rank = getenv(names[i][0]), *const size = getenv(names[i][1]);
        if (!rank || !size) continue;
        o->rank = strtoul(rank, NULL, 10);
        o->n_ranks = strtoul(size, NULL, 10);
        if (o->n_ranks < 1 || o->rank >= o->n_ranks)
            return grq_fail(err, GRQ_E_USAGE, "%s is \"%.20s\" and %s \"%.20s\": no rank of so many", names[i][0], rank,
                            names[i][1], size);
        return GRQ_OK;
    }
    o->rank = 0;
    o->n_ranks = 1;
    return GRQ_OK;
}

/* ---- books of pq ---- */

/* Each row's expected share of importance: the gate energies of its look-ups in a counting corpus. */
static grq_status train_book(tool_context *tool, const encode_options *o, const input_rows *rows, grq_pq_book *book,
                             grq_error *err)
{
    grq_counts counts = { 0 };
    const double *weights = NULL;
    grq_status st = o->book_weights ? grq_counts_open(o->book_weights, &counts, err) : GRQ_OK;
    if (st == GRQ_OK && o->book_weights) {
        const int index = rows->checkpoint ? (int)rows->layer_index : 0;
        if ((uint32_t)index >= counts.n_layers || counts.n_rows[index] != grq_table_n_rows(rows->table))
            st = grq_fail(err, GRQ_E_DATA, "%s: has no counts of the %" PRIu64 " rows of %s", o->book_weights,
                          grq_table_n_rows(rows->table), grq_table_name(rows->table));
        else weights = counts.gate_energy_sum[index];
    }
    if (st == GRQ_OK)
        st = grq_pq_train(rows->table, o->n_train, weights, (uint32_t)o->n_stages, tool->seed, tool->n_threads,
                          &tool->progress, book, err);
    grq_counts_free(&counts);
    return st;
}

static grq_status read_book(const char *path, grq_pq_book *book, grq_error *err)
{
    grq_codes *codes = NULL;
    grq_status st = grq_codes_open_part(path, &codes, err);
    if (st == GRQ_OK && !grq_codes_book(codes))
        st = grq_fail(err, GRQ_E_DATA, "%s: was coded by %s, which has no book", path, grq_codes_encoder(codes)->name);
    if (st == GRQ_OK) *book = *grq_codes_book(codes);
    grq_codes_close(codes);
    return st;
}

/* *own: an encoder with a book of its own, to be freed; NULL when none is asked for. */
static grq_status choose_book(tool_context *tool, const encode_options *o, const input_rows *rows, grq_encoder **own,
                              grq_error *err)
{
    grq_pq_book book;
    *own = NULL;
    if (!o->book && !o->n_train && !o->book_weights) return GRQ_OK;
    if (strcmp(o->encoder, "pq")) return grq_fail(err, GRQ_E_USAGE, "--encoder %s has no book; pq has", o->encoder);
    if (o->book && (o->n_train || o->book_weights))
        return grq_fail(err, GRQ_E_USAGE, "give --book or --train-book, not both");
    if (!o->book && !o->n_train) return grq_fail(err, GRQ_E_USAGE, "--book-weights goes with --train-book");
    const grq_status st = o->book ? read_book(o->book, &book, err) : train_book(tool, o, rows, &book, err);
    return st == GRQ_OK ? grq_pq_encoder_new(&book, own, err) : st;
}

/* ---- results ---- */

static void put_result(tool_context *tool, const encode_options *o, const grq_encode_result *r)
{
    const double bits = grq_code_bits_per_value(r->row_dim);
    grq_json_put_string(tool->result, "codes", o->out);
    grq_json_put_string(tool->result, "encoder", r->encoder->name);
    grq_json_put_u64(tool->result, "rows", r->n_rows);
    grq_json_put_u64(tool->result, "row_dim", r->row_dim);
    grq_json_put_u64(tool->result, "stages", r->n_stages);
    grq_json_put_f64(tool->result, "bits_per_value", bits);
    grq_json_put_u64(tool->result, "coded_rows", r->n_coded);
    grq_json_put_u64(tool->result, "resumed_rows", r->n_resumed);
    grq_json_put_bool(tool->result, "complete", r->complete);
    if (r->complete) grq_json_put_string(tool->result, "digest", r->digest);
    if (tool->json) return;
    if (!r->complete) {
        printf("rank %" PRIu64 " of %" PRIu64 ": its %" PRIu64 " rows of %s are done\n", o->rank, o->n_ranks,
               r->n_coded + r->n_resumed, o->out);
        return;
    }
    printf("%s: %" PRIu64 " rows of %u values in %u stage%s of %.4f bits per value (%s)\n", o->out, r->n_rows,
           r->row_dim, r->n_stages, r->n_stages == 1 ? "" : "s", bits, r->encoder->name);
    if (r->n_resumed) printf("%" PRIu64 " of them were done before\n", r->n_resumed);
}

/* ---- what is asked for ---- */

static grq_status encode(tool_context *tool, encode_options *o, grq_error *err)
{
    input_rows rows = { .family = "" };
    grq_encoder *own = NULL;
    grq_encode_result result;
    grq_encode_job job = { .n_stages = (uint32_t)o->n_stages,
                           .n_threads = tool->n_threads,
                           .progress = &tool->progress };
    grq_status st = grq_encoder_find(o->encoder, &job.encoder, err);
    if (st == GRQ_OK) st = parse_range(o->range, &job, err);
    if (st == GRQ_OK) st = find_ranks(o, err);
    if (st == GRQ_OK && o->exp_tab != (int32_t)o->exp_tab)
        st = grq_fail(err, GRQ_E_USAGE, "--exp-tab: %g is not a whole number", o->exp_tab);
    if (st == GRQ_OK) st = input_rows_open(&o->rows, &rows, err);
    if (st == GRQ_OK) st = input_rows_check_output(&o->rows, o->out, err);
    if (st == GRQ_OK) st = choose_book(tool, o, &rows, &own, err);
    if (own) job.encoder = own;
    if (st == GRQ_OK) {
        const grq_codes_origin origin = { .family = rows.family,
                                          .layer = rows.layer,
                                          .source = grq_table_name(rows.table) };
        const grq_codes_transform transform = { .exp_tab = (int32_t)o->exp_tab,
                                                .rotate = o->rotate,
                                                .rotation_seed = o->rotate ? tool->seed : 0 };
        job.origin = &origin;
        job.transform = &transform;
        job.rank = (uint32_t)o->rank;
        job.n_ranks = (uint32_t)o->n_ranks;
        st = grq_encode_file(rows.table, &job, o->out, &result, err);
    }
    input_rows_close(&rows);
    grq_pq_encoder_free(own);
    if (st == GRQ_OK) put_result(tool, o, &result);
    return st;
}

static grq_status join(tool_context *tool, const encode_options *o, const char *const *parts, grq_error *err)
{
    grq_encode_result result;
    size_t n = 0;
    while (n < MAX_PARTS && parts[n]) n++;
    if (o->rows.table || o->rows.memory || o->range)
        return grq_fail(err, GRQ_E_USAGE, "--join takes parts that are coded, no table");
    for (size_t i = 0; i < n; i++)
        if (input_same_file(parts[i], o->out))
            return grq_fail(err, GRQ_E_USAGE, "--out: %s is one of the parts", o->out);
    const grq_status st = grq_encode_join(parts, n, o->out, &tool->progress, &result, err);
    if (st == GRQ_OK) put_result(tool, o, &result);
    return st;
}

grq_status cmd_encode(tool_context *tool, int argc, char **argv, grq_error *err)
{
    encode_options o = { .rows = INPUT_ROWS_DEFAULTS, .encoder = "integer", .n_stages = 3, .rank = NO_RANK };
    static const char *parts[MAX_PARTS];
    const tool_option options[] = {
        INPUT_ROWS_OPTIONS(o.rows),
        { "encoder", "NAME", "tcq, tcq-b, tcq-t10, tcq-t8, pq, integer or integer-rms [integer]", TOOL_TEXT, &o.encoder,
          false, 0, 0 },
        { "stages", "K", "stages to write [3]", TOOL_U64, &o.n_stages, false, 1, GRQ_MAX_STAGES },
        { "rotate", NULL, "turn rows by a random-sign Hadamard transform first (--seed), for heavy tails", TOOL_FLAG,
          &o.rotate, false, 0, 0 },
        { "exp-tab", "E", "divide rows by 2^E first, so that scales fit FP16 [0]", TOOL_F64, &o.exp_tab, false,
          -GRQ_MAX_EXP_TAB, GRQ_MAX_EXP_TAB },
        { "train-book", "N", "pq: train a book on N rows drawn with --seed; the file carries it", TOOL_U64, &o.n_train,
          false, 1, 1e9 },
        { "book-weights", "COUNTS", "a row's errors count as its gate energies (gaterq count)", TOOL_TEXT,
          &o.book_weights, false, 0, 0 },
        { "book", "C", "pq: the book of other codes", TOOL_TEXT, &o.book, false, 0, 0 },
        { "rows", "FIRST:END", "code a part: multiples of 4096 rows, or the table's end", TOOL_TEXT, &o.range, false, 0,
          0 },
        { "join", NULL, "put the parts that follow together", TOOL_FLAG, &o.join, false, 0, 0 },
        { "rank", "I", "process I of --ranks that share one file [from mpirun's environment]", TOOL_U64, &o.rank, false,
          0, 65535 },
        { "ranks", "N", "processes that share one file; rank 0 ends it", TOOL_U64, &o.n_ranks, false, 1, 65536 },
        { "out", "FILE", "coded table to write (safetensors)", TOOL_TEXT, &o.out, true, 0, 0 },
    };
    const tool_command command = {
        .name = "encode",
        .usage = "(--memory DIR --layer L | --table FILE.safetensors:NAME | --join PART...) [--encoder E] --out C",
        .summary = "Code a table in residual 1-bit stages, each with 16 bits of side data per row.",
        .details =
            "An interrupted run goes on when it is repeated, and ends in the same bytes.\n"
            "Example: gaterq encode --memory DeepSeek-V4.1-Flash --layer 1 --encoder tcq --out layer-1.safetensors\n"
            "         gaterq encode --memory M --layer 1 --rows 0:409600 --out part-0.safetensors\n"
            "         gaterq encode --join part-*.safetensors --out layer-1.safetensors\n"
            "         mpirun -n 4 gaterq encode --memory M --layer 1 --out layer-1.safetensors",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = parts,
        .max_positionals = MAX_PARTS,
    };
    bool done;
    memset(parts, 0, sizeof parts);
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if (o.join) return join(tool, &o, parts, err);
    if (parts[0]) return grq_fail(err, GRQ_E_USAGE, "\"%s\": parts go with --join", parts[0]);
    return encode(tool, &o, err);
}
