/* experiments/tool.h - what the commands of the `gaterq` tool share: options, results, progress, interruption.
 *
 * A command is one file cmd_<name>.c with one function. It parses its options with tool_parse, calls the library, puts
 * its result into tool->result when --json was given and prints readable text to stdout otherwise. Messages and
 * progress always go to stderr; main() prints the error and turns the status into the exit code. */
#ifndef GATERQ_TOOL_H
#define GATERQ_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gaterq/json.h"
#include "gaterq/progress.h"
#include "gaterq/status.h"

typedef struct {
    bool json;     /* --json: print the result as one object, nothing else on stdout */
    bool quiet;    /* --quiet: no progress */
    uint64_t seed; /* --seed, default 1 */
    bool seed_given;
    uint32_t n_threads;      /* --threads, default: the cores this process may use */
    grq_progress progress;   /* draws on stderr and knows about Ctrl-C */
    grq_json_writer *result; /* an open root object; printed by main() when `json` */
} tool_context;

typedef enum { TOOL_FLAG, TOOL_TEXT, TOOL_U64, TOOL_F64 } tool_option_kind;

typedef struct {
    const char *name;       /* without dashes: "out" */
    const char *value_name; /* "FILE"; NULL for a flag */
    const char *help;       /* one line */
    tool_option_kind kind;
    void *target; /* bool *, const char **, uint64_t *, double *; holds the default before parsing */
    bool required;
    double min, max; /* of U64 and F64; both 0: any */
} tool_option;

typedef struct {
    const char *name;  /* "encode" */
    const char *usage; /* what follows "gaterq encode ", e.g. "(--memory DIR --layer L | --table FILE:NAME) --out C" */
    const char *summary; /* one line, also in the list of commands */
    const char *details; /* further lines of --help with an example; may be "" */
    const tool_option *options;
    size_t n_options;
    const char **positionals; /* filled by tool_parse; room for max_positionals, unset ones stay NULL */
    size_t min_positionals, max_positionals;
} tool_command;

/* Parses argv[1..]; argv[0] is the command's name. Accepts --name VALUE and --name=VALUE, and the common options
 * --json --quiet --seed N --threads N --help. Sets *done when --help was printed: the command then returns GRQ_OK at
 * once. Unknown, repeated or missing options and values out of range are GRQ_E_USAGE and name the option. */
grq_status tool_parse(tool_context *tool, const tool_command *command, int argc, char **argv, bool *done,
                      grq_error *err);

typedef grq_status tool_function(tool_context *tool, int argc, char **argv, grq_error *err);

#define TOOL_COUNT(array) (sizeof(array) / sizeof *(array))

#endif
