/* gaterq decode: values of coded rows at a depth. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "gaterq/codec.h"

static grq_status print_row(tool_context *tool, const grq_codes *codes, uint64_t row, uint32_t depth, float *values, grq_error *err)
{
    if (row >= grq_codes_n_rows(codes))
        return grq_fail(err, GRQ_E_USAGE, "--rows: row %" PRIu64 " is not among the table's %" PRIu64 " rows", row, grq_codes_n_rows(codes));
    grq_codes_decode(codes, row, depth, values);
    grq_json_begin_array(tool->result, NULL);
    if (!tool->json) printf("%" PRIu64 ":", row);
    for (uint32_t i = 0; i < grq_codes_row_dim(codes); i++) {
        grq_json_put_f64(tool->result, NULL, (double)values[i]);
        if (!tool->json) printf(" %.9g", (double)values[i]);
    }
    if (!tool->json) printf("\n");
    grq_json_end_array(tool->result);
    return GRQ_OK;
}

static grq_status print_rows(tool_context *tool, const grq_codes *codes, const char *rows, uint32_t depth, grq_error *err)
{
    float *values = malloc(grq_codes_row_dim(codes) * sizeof *values);
    if (!values) return grq_fail(err, GRQ_E_NOMEM, "no memory for a row");
    grq_status st = GRQ_OK;
    for (const char *p = rows; st == GRQ_OK;) {
        char *end;
        errno = 0;
        const unsigned long long row = strtoull(p, &end, 10);
        if (*p < '0' || *p > '9' || errno || (*end && *end != ',')) {
            st = grq_fail(err, GRQ_E_USAGE, "--rows: \"%s\" does not start with a row number", p);
            break;
        }
        st = print_row(tool, codes, row, depth, values, err);
        if (!*end) break;
        p = end + 1;
    }
    free(values);
    return st;
}

grq_status cmd_decode(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *path[1] = { NULL }, *rows = NULL;
    uint64_t depth = GRQ_MAX_STAGES;
    const tool_option options[] = {
        { "rows", "LIST", "row numbers, separated by commas", TOOL_TEXT, &rows, true, 0, 0 },
        { "depth", "K", "stages to add up [3]", TOOL_U64, &depth, false, 1, GRQ_MAX_STAGES },
    };
    const tool_command command = {
        .name = "decode", .usage = "C --rows 0,5,7 --depth K", .summary = "Print the values of coded rows at a depth.",
        .details = "Example: gaterq decode codes/layer-1.safetensors --rows 0,5 --depth 2 --json", .options = options,
        .n_options = TOOL_COUNT(options), .positionals = path, .min_positionals = 1, .max_positionals = 1,
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    grq_codes *codes = NULL;
    st = grq_codes_open(path[0], &codes, err);
    if (st == GRQ_OK && depth > grq_codes_n_stages(codes))
        st = grq_fail(err, GRQ_E_USAGE, "--depth %" PRIu64 ": %s has %u stages", depth, path[0], grq_codes_n_stages(codes));
    if (st == GRQ_OK) {
        grq_json_put_u64(tool->result, "depth", depth);
        grq_json_begin_array(tool->result, "values");
        st = print_rows(tool, codes, rows, (uint32_t)depth, err);
        grq_json_end_array(tool->result);
    }
    grq_codes_close(codes);
    return st;
}
