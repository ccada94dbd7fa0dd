/* Options, progress and interruption of the gaterq tool; see tool.h. */
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_option(const char *name, const char *value_name, const char *help)
{
    char left[64];
    snprintf(left, sizeof left, "  --%s%s%s", name, value_name ? " " : "", value_name ? value_name : "");
    printf("%-26s %s\n", left, help);
}

static void print_help(const tool_command *command)
{
    printf("Usage: gaterq %s %s\n%s\n\n", command->name, command->usage, command->summary);
    for (size_t i = 0; i < command->n_options; i++) {
        const tool_option *o = &command->options[i];
        print_option(o->name, o->value_name, o->help);
    }
    print_option("json", NULL, "print the result as one JSON object; messages and progress go to stderr");
    print_option("quiet", NULL, "no progress");
    print_option("seed", "N", "seed of everything random here [1]");
    print_option("threads", "N", "threads to use [all cores of this process]");
    print_option("help", NULL, "this text");
    if (*command->details) printf("\n%s\n", command->details);
    printf("\nExit: 0 done, 1 a check fell outside its tolerance, 2 bad usage or config, 3 I/O or data error,\n"
           "      4 no such device, 130 interrupted\n");
}

static grq_status parse_u64(const tool_option *option, const char *text, grq_error *err)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return grq_fail(err, GRQ_E_USAGE, "--%s: \"%s\" is not a whole number", option->name, text);
    if ((option->min != 0 || option->max != 0) && ((double)value < option->min || (double)value > option->max))
        return grq_fail(err, GRQ_E_USAGE, "--%s: %s is outside %.0f to %.0f", option->name, text, option->min,
                        option->max);
    *(uint64_t *)option->target = value;
    return GRQ_OK;
}

static grq_status parse_f64(const tool_option *option, const char *text, grq_error *err)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value))
        return grq_fail(err, GRQ_E_USAGE, "--%s: \"%s\" is not a finite number", option->name, text);
    if ((option->min != 0 || option->max != 0) && (value < option->min || value > option->max))
        return grq_fail(err, GRQ_E_USAGE, "--%s: %s is outside %g to %g", option->name, text, option->min, option->max);
    *(double *)option->target = value;
    return GRQ_OK;
}

static grq_status set_option(const tool_option *option, const char *value, grq_error *err)
{
    switch (option->kind) {
    case TOOL_FLAG: *(bool *)option->target = true; return GRQ_OK;
    case TOOL_TEXT: *(const char **)option->target = value; return GRQ_OK;
    case TOOL_U64: return parse_u64(option, value, err);
    case TOOL_F64: return parse_f64(option, value, err);
    }
    return GRQ_OK;
}

enum { MAX_OPTIONS = 40 };

/* The command's own options, then the common ones. */
static size_t all_options(tool_context *tool, const tool_command *command, uint64_t *n_threads, tool_option *out)
{
    const tool_option common[] = {
        { "json", NULL, "", TOOL_FLAG, &tool->json, false, 0, 0 },
        { "quiet", NULL, "", TOOL_FLAG, &tool->quiet, false, 0, 0 },
        { "seed", "N", "", TOOL_U64, &tool->seed, false, 0, 0 },
        { "threads", "N", "", TOOL_U64, n_threads, false, 1, 1024 },
    };
    if (command->n_options) memcpy(out, command->options, command->n_options * sizeof *out);
    memcpy(out + command->n_options, common, sizeof common);
    return command->n_options + TOOL_COUNT(common);
}

static grq_status take_option(const tool_command *command, const tool_option *options, size_t n_options, bool *seen,
                              int argc, char **argv, int *i, grq_error *err)
{
    const char *argument = argv[*i] + 2;
    const size_t name_length = strcspn(argument, "=");
    for (size_t k = 0; k < n_options; k++) {
        const tool_option *option = &options[k];
        if (strlen(option->name) != name_length || strncmp(option->name, argument, name_length)) continue;
        if (seen[k]) return grq_fail(err, GRQ_E_USAGE, "--%s is given twice", option->name);
        seen[k] = true;
        const char *value = argument[name_length] ? argument + name_length + 1 : NULL;
        if (option->kind == TOOL_FLAG && value)
            return grq_fail(err, GRQ_E_USAGE, "--%s takes no value, but got \"%s\"", option->name, value);
        if (option->kind != TOOL_FLAG && !value) {
            if (*i + 1 >= argc)
                return grq_fail(err, GRQ_E_USAGE, "--%s needs a value (%s)", option->name, option->value_name);
            value = argv[++*i];
        }
        return set_option(option, value, err);
    }
    return grq_fail(err, GRQ_E_USAGE, "unknown option --%.*s; see gaterq %s --help", (int)name_length, argument,
                    command->name);
}

grq_status tool_parse(tool_context *tool, const tool_command *command, int argc, char **argv, bool *done,
                      grq_error *err)
{
    *done = false;
    tool_option options[MAX_OPTIONS];
    bool seen[MAX_OPTIONS] = { false };
    if (command->n_options + 4 > MAX_OPTIONS) return grq_fail(err, GRQ_E_USAGE, "%s: too many options", command->name);
    uint64_t n_threads = tool->n_threads;
    const size_t n_options = all_options(tool, command, &n_threads, options);
    size_t n_positionals = 0;
    bool only_positionals = false;
    for (int i = 1; i < argc; i++) {
        if (!only_positionals && (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))) {
            print_help(command);
            *done = true;
            return GRQ_OK;
        }
        if (!only_positionals && !strcmp(argv[i], "--")) {
            only_positionals = true;
        } else if (!only_positionals && argv[i][0] == '-' && argv[i][1] == '-') {
            const grq_status st = take_option(command, options, n_options, seen, argc, argv, &i, err);
            if (st != GRQ_OK) return st;
        } else if (!only_positionals && argv[i][0] == '-' && argv[i][1] && (argv[i][1] < '0' || argv[i][1] > '9')) {
            return grq_fail(err, GRQ_E_USAGE, "unknown option %s; see gaterq %s --help", argv[i], command->name);
        } else {
            if (n_positionals == command->max_positionals)
                return grq_fail(err, GRQ_E_USAGE, "unexpected argument \"%s\"; usage: gaterq %s %s", argv[i],
                                command->name, command->usage);
            command->positionals[n_positionals++] = argv[i];
        }
    }
    if (n_positionals < command->min_positionals)
        return grq_fail(err, GRQ_E_USAGE, "an argument is missing; usage: gaterq %s %s", command->name, command->usage);
    for (size_t k = 0; k < command->n_options; k++)
        if (options[k].required && !seen[k])
            return grq_fail(err, GRQ_E_USAGE, "--%s is missing; usage: gaterq %s %s", options[k].name, command->name,
                            command->usage);
    tool->seed_given = seen[command->n_options + 2];
    tool->n_threads = (uint32_t)n_threads;
    return GRQ_OK;
}
