/* gaterq decode: values of coded rows at a depth. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "gaterq/codec.h"

/* "0,5,7"; every row must be in the table. The caller frees *rows. */
static grq_status parse_rows(const char *text, uint64_t n_rows, uint64_t **rows, size_t *n, grq_error *err)
{
    size_t room = 1;
    for (const char *p = text; *p; p++) room += *p == ',';
    *n = 0;
    *rows = malloc(room * sizeof **rows);
    if (!*rows) return grq_fail(err, GRQ_E_NOMEM, "no memory for a list of rows");
    for (const char *p = text;;) {
        char *end;
        errno = 0;
        const unsigned long long row = strtoull(p, &end, 10);
        if (*p < '0' || *p > '9' || errno || (*end && *end != ','))
            return grq_fail(err, GRQ_E_USAGE, "--rows: \"%s\" does not start with a row number", p);
        if (row >= n_rows)
            return grq_fail(err, GRQ_E_USAGE,
                            "--rows: row %llu is not among the table's %" PRIu64 " rows, 0 to %" PRIu64, row, n_rows,
                            n_rows - 1);
        (*rows)[(*n)++] = row;
        if (!*end) return GRQ_OK;
        p = end + 1;
    }
}

static void print_row(tool_context *tool, uint64_t row, uint32_t row_dim, const float *values)
{
    grq_json_begin_array(tool->result, NULL);
    if (!tool->json) printf("%" PRIu64 ":", row);
    for (uint32_t i = 0; i < row_dim; i++) {
        grq_json_put_f64(tool->result, NULL, (double)values[i]);
        if (!tool->json) printf(" %.9g", (double)values[i]);
    }
    if (!tool->json) printf("\n");
    grq_json_end_array(tool->result);
}

static grq_status print_rows(tool_context *tool, const grq_codes *codes, const char *list, uint32_t depth,
                             grq_error *err)
{
    const uint32_t row_dim = grq_codes_row_dim(codes);
    uint64_t *rows = NULL;
    size_t n = 0;
    grq_status st = parse_rows(list, grq_codes_n_rows(codes), &rows, &n, err);
    float *values = malloc(row_dim * sizeof *values);
    if (st == GRQ_OK && !values) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a row");
    grq_json_put_u64(tool->result, "depth", depth);
    grq_json_begin_array(tool->result, "values");
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        grq_codes_decode(codes, rows[i], depth, values);
        print_row(tool, rows[i], row_dim, values);
    }
    grq_json_end_array(tool->result);
    free(values);
    free(rows);
    return st;
}

grq_status cmd_decode(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *path[1] = { NULL }, *rows = NULL;
    uint64_t depth = 0; /* 0: all stages there are */
    const tool_option options[] = {
        { "rows", "LIST", "row numbers, separated by commas", TOOL_TEXT, &rows, true, 0, 0 },
        { "depth", "K", "stages to add up [all]", TOOL_U64, &depth, false, 1, GRQ_MAX_STAGES },
    };
    const tool_command command = {
        .name = "decode",
        .usage = "C --rows 0,5,7 [--depth K]",
        .summary = "Print the values of coded rows at a depth.",
        .details = "Example: gaterq decode codes/layer-1.safetensors --rows 0,5 --depth 2 --json",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = path,
        .min_positionals = 1,
        .max_positionals = 1,
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    grq_codes *codes = NULL;
    st = grq_codes_open(path[0], &codes, err);
    if (st == GRQ_OK && depth > grq_codes_n_stages(codes))
        st = grq_fail(err, GRQ_E_USAGE, "--depth %" PRIu64 ": %s has %u stages", depth, path[0],
                      grq_codes_n_stages(codes));
    if (st == GRQ_OK) st = print_rows(tool, codes, rows, depth ? (uint32_t)depth : grq_codes_n_stages(codes), err);
    grq_codes_close(codes);
    return st;
}
