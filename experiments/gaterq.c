/* The gaterq tool: finds the command, prints its result or its error, turns the status into the exit code. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "cpu/cpu_level.h"
#include "terminal.h"

const tool_entry tool_entries[] = {
    { "run", cmd_run, "run one experiment config end to end: world, train, encode, trace, analyse, ask, report" },
    { "report", cmd_report, "tables, figures and a verdict per claim from a run's folder" },
    { "train", cmd_train, "train a miniature language model with memory layers" },
    { "eval", cmd_eval, "ask a model a suite's questions with a table, codes or a policy; one JSON line per item" },
    { "prompts", cmd_prompts, "a suite's questions as prompts for any engine" },
    { "score", cmd_score, "score predictions by a named matching rule" },
    { "compare", cmd_compare, "paired significance of two prediction files, or of a family of pairs" },
    { "trace", cmd_trace, "write every look-up of a text or of a suite's prompts to HDF5" },
    { "premise", cmd_premise, "does gate or frequency ordering fit this model? correlations with intervals" },
    { "ablate", cmd_ablate, "captured weighted-error reduction of all orderings over the budget curve" },
    { "count", cmd_count, "row access counts and expected gate energies from a held-out corpus" },
    { "encode", cmd_encode, "code a table in residual 1-bit stages" },
    { "decode", cmd_decode, "values of coded rows at a depth" },
    { "distort", cmd_distort, "relative mean squared error of codes per depth" },
    { "verify", cmd_verify, "check codes against their table; leaves the receipt that eval and trace ask for" },
    { "hash", cmd_hash, "row numbers of every n-gram that ends at each position" },
    { "tokenmap", cmd_tokenmap, "map raw token ids of a tokenizer.json to the compressed ids that are hashed" },
    { "layer", cmd_layer, "run one memory layer of a checkpoint over hidden states" },
    { "explain", cmd_explain, "every look-up of a text: gates, importance, depth under each ordering" },
    { "world", cmd_world, "write a knowledge world's facts, show its text" },
    { "bench", cmd_bench, "throughput beside its bound, measured in one run" },
    { "doctor", cmd_doctor, "what is installed here, and what each missing thing switches off" },
};
const size_t n_tool_entries = TOOL_COUNT(tool_entries);

static void print_usage(FILE *to)
{
    fprintf(to, "Usage: gaterq COMMAND [options]\n"
                "Per-lookup precision for quantised n-gram memory tables: reproduce, check and extend GateRQ.\n\n");
    for (size_t i = 0; i < n_tool_entries; i++)
        fprintf(to, "  %-9s %s\n", tool_entries[i].name, tool_entries[i].summary);
    fprintf(to,
            "\ngaterq COMMAND --help tells a command's options. Start with: make demo (2 minutes), make reproduce.\n");
}

static uint32_t usable_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    const int n = CPU_COUNT(&set);
    return n > 0 ? (uint32_t)n : 1;
}

static grq_status print_result(tool_context *tool, grq_error *err)
{
    const char *text;
    grq_json_end_object(tool->result);
    const grq_status st = grq_json_writer_text(tool->result, true, &text, err);
    if (st != GRQ_OK) return st;
    if (printf("%s\n", text) < 0) return grq_fail(err, GRQ_E_IO, "standard output cannot be written");
    return GRQ_OK;
}

static int run_command(const tool_entry *entry, int argc, char **argv)
{
    tool_context tool = { .seed = 1, .n_threads = usable_cores() };
    terminal_start(&tool.progress, &tool.quiet);
    grq_error err = { .status = GRQ_OK };
    tool.result = grq_json_writer_new();
    if (!tool.result) {
        fprintf(stderr, "gaterq: out of memory\n");
        return 3;
    }
    grq_json_begin_object(tool.result, NULL);
    bool help = false;
    for (int i = 1; i < argc; i++) help |= !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");
    grq_status st = help ? GRQ_OK : grq_cpu_level_check(&err);
    if (st == GRQ_OK) st = entry->run(&tool, argc, argv, &err);
    terminal_end_line();
    /* A failed check still has its result: print it, then say what failed. */
    if ((st == GRQ_OK || st == GRQ_E_CHECK) && tool.json && !help) {
        const grq_status printed = print_result(&tool, &err);
        if (printed != GRQ_OK) st = printed;
    }
    if (fflush(stdout) != 0 && st == GRQ_OK) st = grq_fail(&err, GRQ_E_IO, "standard output cannot be written");
    if (st != GRQ_OK) fprintf(stderr, "gaterq %s: %s\n", entry->name, err.message);
    grq_json_writer_free(tool.result);
    return grq_status_exit_code(st);
}

/* libgomp's threads spin while they wait for each other. On a machine with other work that costs half of the training
 * rate (measured: 12,200 against 18,400 tokens/s on two busy cores; docs/decisions.md). Its policy is read when the
 * library is loaded, so the program starts itself once more with the policy set. A policy in the environment is left
 * alone. */
static void start_with_passive_waiting(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
    execv("/proc/self/exe", argv); /* returns only when it cannot; then the threads spin */
}

int main(int argc, char **argv)
{
    start_with_passive_waiting(argv);
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_usage(stdout);
        return 0;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("gaterq %s\n", GATERQ_VERSION);
        return 0;
    }
    for (size_t i = 0; i < n_tool_entries; i++)
        if (!strcmp(argv[1], tool_entries[i].name)) return run_command(&tool_entries[i], argc - 1, argv + 1);
    fprintf(stderr, "gaterq: unknown command \"%s\"\n\n", argv[1]);
    print_usage(stderr);
    return 2;
}
