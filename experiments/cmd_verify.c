/* gaterq verify: are these codes what they say they are? Leaves a receipt that eval and trace ask for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "inputs.h"
#include "receipts.h"
#include "tables.h"

typedef struct {
    input_rows_options rows;
    const char *limit, *receipt;
    uint64_t n_sample;
} verify_cli;

/* "0.36,0.13,0.06": one for each depth, from 1 on. */
static grq_status parse_limit(const char *text, uint32_t n_stages, double limit[GRQ_MAX_STAGES], grq_error *err)
{
    const char *at = text;
    for (uint32_t k = 0; text && k < n_stages; k++) {
        char *end;
        limit[k] = strtod(at, &end);
        if (end == at || !(limit[k] > 0 && limit[k] <= 1) || *end != (k + 1 < n_stages ? ',' : '\0'))
            return grq_fail(err, GRQ_E_USAGE,
                            "--limit \"%s\": write %u relative errors above 0, at most 1, as 0.36,0.13", text,
                            n_stages);
        at = end + 1;
    }
    return GRQ_OK;
}

static void print_report(tool_context *tool, const char *path, const grq_codes *codes, const grq_verify_options *o,
                         const grq_verify_report *r)
{
    receipt_put(tool->result, codes, o, r);
    if (tool->json) return;
    for (size_t i = 0; i < r->n_checks; i++)
        printf("  %-6s  %-11s  %s\n", r->checks[i].passed ? "passed" : "FAILED", r->checks[i].name,
               r->checks[i].detail);
    printf("%s: %s\n", path, r->passed ? "verified" : "NOT verified");
}

static grq_status failure(const char *path, const grq_verify_report *r, grq_error *err)
{
    for (size_t i = 0; i < r->n_checks; i++)
        if (!r->checks[i].passed)
            return grq_fail(err, GRQ_E_CHECK, "%s: %s: %s", path, r->checks[i].name, r->checks[i].detail);
    return grq_fail(err, GRQ_E_CHECK, "%s: not verified", path);
}

static grq_status verify(tool_context *tool, const verify_cli *cli, const char *path, const char *receipt,
                         grq_error *err)
{
    grq_codes *codes = NULL;
    input_rows rows = { .family = "" };
    grq_verify_report report;
    grq_verify_options o = {
        .n_sample = cli->n_sample, .seed = tool->seed, .n_threads = tool->n_threads, .progress = &tool->progress
    };
    grq_status st = grq_codes_open(path, &codes, err);
    if (st == GRQ_OK) st = parse_limit(cli->limit, grq_codes_n_stages(codes), o.limit, err);
    if (st == GRQ_OK) st = input_rows_open(&cli->rows, &rows, err);
    if (st == GRQ_OK) st = grq_codes_verify(codes, rows.table, &o, &report, err);
    if (st == GRQ_OK) {
        print_report(tool, path, codes, &o, &report);
        st = report.passed ? receipt_write(receipt, path, codes, &o, &report, err) : failure(path, &report, err);
    }
    input_rows_close(&rows);
    grq_codes_close(codes);
    return st;
}

grq_status cmd_verify(tool_context *tool, int argc, char **argv, grq_error *err)
{
    const char *path[1] = { NULL };
    verify_cli cli = { .rows = INPUT_ROWS_DEFAULTS, .n_sample = 20000 };
    const tool_option options[] = {
        INPUT_ROWS_OPTIONS(cli.rows),
        { "sample", "N", "rows drawn (--seed) to decode and compare [20000]", TOOL_U64, &cli.n_sample, false, 1, 1e9 },
        { "limit", "E1,E2,..",
          "greatest relative MSE at each depth [1.25 times what plain signs leave; rms scales: 2.05]", TOOL_TEXT,
          &cli.limit, false, 0, 0 },
        { "receipt", "FILE", "receipt to leave [C.receipt.json, where eval and trace look for it]", TOOL_TEXT,
          &cli.receipt, false, 0, 0 },
    };
    const tool_command command = {
        .name = "verify",
        .usage = "C (--memory DIR --layer L | --table FILE.safetensors:NAME)",
        .summary = "Check codes against the table they stand for; leaves a receipt when they pass.",
        .details =
            "Checked: the header byte for byte, every block's digest, every side word, that the table is the one\n"
            "that was coded, the error of a random sample at every depth, and that codes of other rows are worse.\n"
            "Exit 1, and no receipt, when a check fails.\n"
            "Example: gaterq verify codes/layer-1.safetensors --memory mini.safetensors --layer 1",
        .options = options,
        .n_options = TOOL_COUNT(options),
        .positionals = path,
        .min_positionals = 1,
        .max_positionals = 1,
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    char *const receipt = cli.receipt ? strdup(cli.receipt) : receipt_path(path[0]);
    if (!receipt) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a name", path[0]);
    if (input_same_file(receipt, path[0])) st = grq_fail(err, GRQ_E_USAGE, "--receipt: %s is the codes", receipt);
    if (st == GRQ_OK) st = input_rows_check_output(&cli.rows, receipt, err);
    if (st == GRQ_OK) {
        st = verify(tool, &cli, path[0], receipt, err);
        /* What passed once and does not now must not go on being trusted. */
        if ((st == GRQ_E_CHECK || st == GRQ_E_DATA) && !cli.receipt) unlink(receipt);
    }
    free(receipt);
    return st;
}
