/* gaterq prompts: a suite's questions as prompts for any engine, one JSON line each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gaterq/digest.h"
#include "gaterq/file.h"
#include "gaterq/prompts.h"
#include "inputs.h"

typedef struct {
    const char *suite, *data, *protocol, *shots_from, *out;
    uint64_t n_shots;
    bool list;
} prompts_options;

/* ---- one line ---- */

static void put_letters(grq_json_writer *w, const char *before)
{
    grq_json_begin_array(w, "continuations");
    for (char letter = 'A'; letter < 'A' + GRQ_N_CHOICES; letter++) {
        char text[8];
        snprintf(text, sizeof text, "%s%c", before, letter);
        grq_json_put_string(w, NULL, text);
    }
    grq_json_end_array(w);
}

static grq_status write_line(FILE *to, const grq_prompt_protocol *protocol, uint64_t seed, const grq_suite_item *item,
                             const grq_prompt_text *prompt, grq_error *err)
{
    char digest[GRQ_SHA256_HEX];
    const char *text = NULL;
    grq_status st = grq_sha256(prompt->text, strlen(prompt->text), digest, err);
    grq_json_writer *const w = st == GRQ_OK ? grq_json_writer_new() : NULL;
    if (st == GRQ_OK && !w) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a prompt");
    if (st != GRQ_OK) return st;
    grq_json_begin_object(w, NULL);
    grq_json_put_string(w, "suite", protocol->suite);
    grq_json_put_string(w, "id", item->id);
    grq_json_put_string(w, "protocol", protocol->name);
    grq_json_put_string(w, "prompt", prompt->text);
    grq_json_put_string(w, "prompt_sha256", digest);
    if (protocol->max_new_tokens) {
        grq_json_put_u64(w, "max_new_tokens", protocol->max_new_tokens);
        grq_json_begin_array(w, "stop");
        for (size_t i = 0; i < 4 && protocol->stop[i]; i++) grq_json_put_string(w, NULL, protocol->stop[i]);
        grq_json_end_array(w);
    }
    if (protocol->continuation) {
        put_letters(w, protocol->continuation);
        grq_json_put_string(w, "score",
                            protocol->whole_prompt ? "mean loss of prompt and continuation" : "continuation");
    }
    grq_json_begin_array(w, "shots");
    for (uint32_t k = 0; k < prompt->n_shots; k++) grq_json_put_string(w, NULL, prompt->shots[k]->id);
    grq_json_end_array(w);
    grq_json_put_u64(w, "seed", seed);
    grq_json_end_object(w);
    st = grq_json_writer_text(w, true, &text, err);
    if (st == GRQ_OK) fprintf(to, "%s\n", text); /* commit reports what cannot be written */
    grq_json_writer_free(w);
    return st;
}

/* ---- all ---- */

static grq_status write_all(tool_context *tool, const prompts_options *o, const grq_prompt_protocol *protocol,
                            const grq_suite *suite, const grq_suite *pool, grq_error *err)
{
    grq_prompter *prompter = NULL;
    grq_outfile *file = NULL;
    const size_t n = grq_suite_count(suite);
    grq_status st = grq_prompter_new(protocol, pool, (uint32_t)o->n_shots, tool->seed, &prompter, err);
    if (st == GRQ_OK) st = grq_outfile_open(o->out, &file, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        grq_prompt_text prompt;
        const grq_suite_item *const item = &grq_suite_items(suite)[i];
        st = grq_prompt_text_make(prompter, item, &prompt, err);
        if (st == GRQ_OK) {
            st = write_line(grq_outfile_stream(file), protocol, tool->seed, item, &prompt, err);
            grq_prompt_text_free(&prompt);
        }
        if (st == GRQ_OK) st = grq_progress_step(&tool->progress, "prompts", i + 1, n, "items", NULL, err);
    }
    grq_prompter_free(prompter);
    if (st == GRQ_OK) return grq_outfile_commit(file, err);
    grq_outfile_discard(file);
    return st;
}

/* Whether --out is one of the files that are read. */
static bool out_is_read(const prompts_options *o)
{
    static const char *const parts[] = { "test", "dev" };
    const char *const slash = strrchr(o->out, '/'), *const name = slash ? slash + 1 : o->out;
    if (input_same_file(o->data, o->out) || (o->shots_from && input_same_file(o->shots_from, o->out))) return true;
    for (size_t i = 0; i < TOOL_COUNT(parts); i++) {
        char *const folder = grq_path_join(o->data, parts[i]), *const path =
                                                                   folder ? grq_path_join(folder, name) : NULL;
        const bool same = path && input_same_file(path, o->out);
        free(folder);
        free(path);
        if (same) return true;
    }
    return false;
}

static void report(tool_context *tool, const prompts_options *o, const grq_prompt_protocol *protocol,
                   const grq_suite *suite)
{
    size_t n_groups;
    const grq_suite_group *const groups = grq_suite_groups(suite, &n_groups);
    char of_groups[64] = "";
    grq_json_put_string(tool->result, "prompts", o->out);
    grq_json_put_string(tool->result, "protocol", protocol->name);
    grq_json_put_u64(tool->result, "n", grq_suite_count(suite));
    grq_json_begin_array(tool->result, "groups");
    for (size_t g = 0; g < n_groups; g++) {
        grq_json_begin_object(tool->result, NULL);
        grq_json_put_string(tool->result, "group", groups[g].name);
        grq_json_put_u64(tool->result, "n", groups[g].n);
        grq_json_end_object(tool->result);
    }
    grq_json_end_array(tool->result);
    grq_json_put_u64(tool->result, "shots", o->n_shots);
    grq_json_put_u64(tool->result, "seed", tool->seed);
    if (n_groups)
        snprintf(of_groups, sizeof of_groups, "; %zu %s", n_groups,
                 !strcmp(o->suite, "cmmlu") ? "subjects" : "relations");
    if (!tool->json)
        printf("%s: %zu prompts of %s, protocol %s, %" PRIu64 " shots (seed %" PRIu64 ")%s\n", o->out,
               grq_suite_count(suite), o->suite, protocol->name, o->n_shots, tool->seed, of_groups);
}

/* Where demonstrations come from; *own is to be closed. */
static grq_status open_pool(const prompts_options *o, const grq_prompt_protocol *protocol, const grq_suite *suite,
                            const grq_suite **pool, grq_suite **own, grq_error *err)
{
    *own = NULL;
    *pool = suite;
    if (o->shots_from && protocol->shot_rule != GRQ_SHOTS_RANDOM)
        return grq_fail(err, GRQ_E_USAGE, "--shots-from: %s has its own demonstrations, or none", protocol->name);
    if (!o->n_shots || protocol->shot_rule == GRQ_SHOTS_NONE || protocol->shot_rule == GRQ_SHOTS_OTHER_RELATIONS)
        return GRQ_OK;
    if (protocol->shot_rule == GRQ_SHOTS_RANDOM && !o->shots_from)
        return grq_fail(err, GRQ_E_USAGE,
                        "--shots %" PRIu64 " needs --shots-from: a file of questions that are not asked (train, dev)",
                        o->n_shots);
    if (o->shots_from && input_same_file(o->shots_from, o->data))
        return grq_fail(err, GRQ_E_USAGE, "--shots-from: %s is what is asked", o->shots_from);
    const grq_status st = protocol->shot_rule == GRQ_SHOTS_FIRST ? grq_suite_open_dev(o->data, own, err)
                                                                 : grq_suite_open(o->suite, o->shots_from, own, err);
    *pool = *own;
    return st;
}

static grq_status prompts(tool_context *tool, const prompts_options *o, grq_error *err)
{
    const grq_prompt_protocol *protocol = NULL;
    grq_suite *suite = NULL, *own = NULL;
    const grq_suite *pool;
    grq_status st = grq_prompt_protocol_find(o->suite, o->protocol, &protocol, err);
    if (st == GRQ_OK && out_is_read(o))
        st = grq_fail(err, GRQ_E_USAGE, "--out: %s is the data, or what shots come from", o->out);
    if (st == GRQ_OK) st = grq_suite_open(o->suite, o->data, &suite, err);
    if (st == GRQ_OK) st = open_pool(o, protocol, suite, &pool, &own, err);
    if (st == GRQ_OK) st = write_all(tool, o, protocol, suite, pool, err);
    if (st == GRQ_OK) report(tool, o, protocol, suite);
    grq_suite_close(own);
    grq_suite_close(suite);
    return st;
}

static void list_protocols(tool_context *tool)
{
    grq_json_begin_array(tool->result, "protocols");
    for (size_t i = 0; grq_prompt_protocol_at(i); i++) {
        const grq_prompt_protocol *const p = grq_prompt_protocol_at(i);
        grq_json_put_string(tool->result, NULL, p->name);
        if (!tool->json) printf("%-9s %-22s %s\n", p->suite, p->name, p->description);
    }
    grq_json_end_array(tool->result);
}

grq_status cmd_prompts(tool_context *tool, int argc, char **argv, grq_error *err)
{
    prompts_options o = { 0 };
    const tool_option options[] = {
        { "suite", "NAME", "popqa, triviaqa, nq_open or cmmlu", TOOL_TEXT, &o.suite, false, 0, 0 },
        { "data", "PATH", "the suite's official file; CMMLU: the folder with test/ and dev/", TOOL_TEXT, &o.data, false,
          0, 0 },
        { "protocol", "NAME", "prompt layout (--list) [the suite's first]", TOOL_TEXT, &o.protocol, false, 0, 0 },
        { "shots", "N", "demonstrations before each question [0]", TOOL_U64, &o.n_shots, false, 0, GRQ_MAX_SHOTS },
        { "shots-from", "FILE", "triviaqa, nq_open: questions to draw them from (train, dev)", TOOL_TEXT, &o.shots_from,
          false, 0, 0 },
        { "list", NULL, "the protocols there are", TOOL_FLAG, &o.list, false, 0, 0 },
        { "out", "P.jsonl", "one line for each item: prompt, its SHA-256, stop strings, ids of its shots", TOOL_TEXT,
          &o.out, false, 0, 0 },
    };
    const tool_command command = {
        .name = "prompts",
        .usage = "--suite S --data PATH [--protocol P] [--shots N] --out P.jsonl | --list",
        .summary = "A suite's questions as prompts for any engine, as published protocols write them.",
        .details =
            "Shots are drawn by --seed and the item's id. Keep prompt_sha256 in the predictions: score and compare\n"
            "then notice other prompts.\n"
            "Example: gaterq prompts --suite popqa --data popQA.tsv --shots 15 --out popqa.jsonl",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    const grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    if (o.list) {
        list_protocols(tool);
        return GRQ_OK;
    }
    if (!o.suite || !o.data || !o.out)
        return grq_fail(err, GRQ_E_USAGE, "--%s is missing", !o.suite ? "suite" : !o.data ? "data" : "out");
    return prompts(tool, &o, err);
}
