/* experiments/commands.h - every command of the tool, in the order of `gaterq --help`. */
#ifndef GATERQ_COMMANDS_H
#define GATERQ_COMMANDS_H

#include "tool.h"

tool_function cmd_run, cmd_report, cmd_train, cmd_eval, cmd_prompts, cmd_score, cmd_compare, cmd_trace, cmd_premise,
    cmd_ablate, cmd_count, cmd_encode, cmd_decode, cmd_distort, cmd_verify, cmd_hash, cmd_tokenmap, cmd_layer,
    cmd_explain, cmd_world, cmd_bench, cmd_doctor;

typedef struct {
    const char *name;
    tool_function *run;
    const char *summary;
} tool_entry;

extern const tool_entry tool_entries[];
extern const size_t n_tool_entries;

#endif
