/* gaterq eval: asks a model the questions of a suite, with one reader or with a list of them side by side. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy.h"
#include "commands.h"
#include "gaterq/ask.h"
#include "gaterq/file.h"
#include "inputs.h"

enum { MAX_READERS = 32 };

typedef struct {
    const char *model, *suite, *config, *codes, *counts, *readers, *policy, *budget, *gates, *out;
    uint64_t depth, n_questions, max_new, n_resamples;
    bool zero, unverified;
} eval_options;

typedef struct {
    grq_model *model;
    grq_world *world;
    grq_codes *codes[GRQ_MAX_MEMORY_LAYERS];
    grq_counts counts;
    grq_questions questions;
    const grq_match_rule *rule;
    accuracy_reader readers[MAX_READERS];
    grq_answers answers[MAX_READERS];
    size_t n_readers;
} eval_state;

/* ---- which readers ---- */

static grq_status parse_draw(const char *text, const char *name, uint64_t *draw, grq_error *err)
{
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (*text < '1' || *text > '9' || *end || errno || value > 1000000)
        return grq_fail(err, GRQ_E_USAGE, "reader \"%s\": the number after # must be 1 to 1000000", name);
    *draw = value;
    return GRQ_OK;
}

/* "full", "zero", "depth2", an ordering, an ordering with "#draw" and "/refreshed" or "/frozen". */
static grq_status parse_reader(const char *name, const eval_options *o, uint64_t seed, accuracy_reader *out,
                               grq_error *err)
{
    *out = (accuracy_reader){ .config = { .seed = seed } };
    if (strlen(name) >= sizeof out->name) return grq_fail(err, GRQ_E_USAGE, "reader \"%s\" is not known", name);
    strcpy(out->name, name);
    grq_reader_config *c = &out->config;
    if (!strcmp(name, "full")) return c->mode = GRQ_READ_FULL, GRQ_OK;
    if (!strcmp(name, "zero")) return c->mode = GRQ_READ_ZERO, GRQ_OK;
    if (!strncmp(name, "depth", 5) && name[5] >= '1' && name[5] <= '0' + GRQ_MAX_STAGES && !name[6]) {
        c->mode = GRQ_READ_DEPTH;
        c->depth = (uint32_t)(name[5] - '0');
        return GRQ_OK;
    }
    char ordering[sizeof out->name];
    strcpy(ordering, name);
    char *slash = strchr(ordering, '/'), *hash = strchr(ordering, '#');
    const char *gates = slash ? slash + 1 : o->gates;
    grq_status st = GRQ_OK;
    if (slash) *slash = '\0';
    if (hash) {
        uint64_t draw = 0;
        st = parse_draw(hash + 1, name, &draw, err);
        c->seed = seed + 7919 * draw;
        *hash = '\0';
    }
    c->mode = GRQ_READ_POLICY;
    if (st == GRQ_OK && grq_ordering_find(ordering, &c->ordering, err) != GRQ_OK)
        st = grq_fail(err, GRQ_E_USAGE, "reader \"%s\": not full, zero, depth1 to depth%d, nor an ordering (%s)", name,
                      GRQ_MAX_STAGES, err ? err->message : "");
    if (st == GRQ_OK) {
        if (!strcmp(gates, "frozen")) c->gate_mode = GRQ_GATES_FROZEN;
        else if (!strcmp(gates, "refreshed")) c->gate_mode = GRQ_GATES_REFRESHED;
        else st = grq_fail(err, GRQ_E_USAGE, "gates are \"frozen\" or \"refreshed\", not \"%s\"", gates);
    }
    if (st == GRQ_OK) st = grq_budget_parse(o->budget, &c->budget, err);
    return st;
}

static grq_status add_reader(eval_state *s, const char *name, const eval_options *o, uint64_t seed, grq_error *err)
{
    if (s->n_readers == MAX_READERS) return grq_fail(err, GRQ_E_USAGE, "more than %d readers", MAX_READERS);
    for (size_t i = 0; i < s->n_readers; i++)
        if (!strcmp(s->readers[i].name, name)) return grq_fail(err, GRQ_E_USAGE, "reader \"%s\" is listed twice", name);
    const grq_status st = parse_reader(name, o, seed, &s->readers[s->n_readers], err);
    if (st == GRQ_OK) s->n_readers++;
    return st;
}

static grq_status choose_readers(eval_state *s, const eval_options *o, uint64_t seed, grq_error *err)
{
    if ((o->readers != NULL) + (o->policy != NULL) + (o->depth != 0) + o->zero > 1)
        return grq_fail(err, GRQ_E_USAGE, "--readers, --policy, --depth and --zero exclude each other");
    if (o->policy) return add_reader(s, o->policy, o, seed, err);
    if (o->zero) return add_reader(s, "zero", o, seed, err);
    if (o->depth || (o->codes && !o->readers)) {
        char name[16];
        snprintf(name, sizeof name, "depth%u", (unsigned)(o->depth ? o->depth : GRQ_MAX_STAGES));
        return add_reader(s, name, o, seed, err);
    }
    if (!o->readers) return add_reader(s, "full", o, seed, err);
    char *list = strdup(o->readers), *rest = NULL;
    if (!list) return grq_fail(err, GRQ_E_NOMEM, "no memory for the list of readers");
    grq_status st = GRQ_OK;
    for (char *name = strtok_r(list, ",", &rest); st == GRQ_OK && name; name = strtok_r(NULL, ",", &rest))
        st = add_reader(s, name, o, seed, err);
    free(list);
    if (st == GRQ_OK && !s->n_readers) st = grq_fail(err, GRQ_E_USAGE, "--readers: the list is empty");
    return st;
}

/* ---- opening and asking ---- */

static grq_status open_inputs(eval_state *s, const eval_options *o, uint64_t seed, grq_error *err)
{
    if (strcmp(o->suite, "popqa"))
        return grq_fail(err, GRQ_E_USAGE,
                        "--suite %s: the miniature is asked \"popqa\" (its world's facts, or PopQA's)", o->suite);
    grq_status st = choose_readers(s, o, seed, err);
    if (st == GRQ_OK) st = grq_model_open(o->model, &s->model, err);
    if (st == GRQ_OK) st = input_world(o->config, s->model, &s->world, err);
    if (st == GRQ_OK && grq_vocab_size(grq_world_vocab(s->world)) != grq_model_shape_of(s->model)->vocab_size)
        st = grq_fail(err, GRQ_E_DATA,
                      "%s: the model knows %u tokens, the world has %u: not the world it was trained on", o->model,
                      grq_model_shape_of(s->model)->vocab_size, grq_vocab_size(grq_world_vocab(s->world)));
    if (st == GRQ_OK && o->codes) st = input_codes(o->codes, s->model, !o->unverified, s->codes, err);
    if (st == GRQ_OK && o->counts) st = grq_counts_open(o->counts, &s->counts, err);
    if (st == GRQ_OK) st = grq_match_rule_find(grq_world_rule(s->world), &s->rule, err);
    if (st == GRQ_OK) st = grq_world_questions(s->world, o->n_questions, seed, &s->questions, err);
    for (size_t i = 0; st == GRQ_OK && i < s->n_readers; i++) {
        grq_reader_config *c = &s->readers[i].config;
        if (c->mode == GRQ_READ_DEPTH || c->mode == GRQ_READ_POLICY) {
            if (!o->codes) return grq_fail(err, GRQ_E_USAGE, "reader %s needs --codes", s->readers[i].name);
            c->codes = (const grq_codes *const *)s->codes;
        }
        if (o->counts) c->counts = &s->counts;
    }
    return st;
}

static grq_status ask_reader(eval_state *s, size_t i, const eval_options *o, const grq_progress *progress,
                             grq_error *err)
{
    grq_reader *reader = NULL;
    grq_status st = grq_reader_new(s->model, &s->readers[i].config, &reader, err);
    if (st == GRQ_OK)
        st = grq_ask(s->model, grq_reader_hook(reader), &s->questions, s->rule, grq_world_stop_token(s->world),
                     (uint32_t)o->max_new, progress, &s->answers[i], err);
    if (st == GRQ_OK) {
        s->readers[i].usage = grq_reader_used(reader);
        s->readers[i].correct = s->answers[i].correct;
    } else {
        grq_fail_prefix(err, st, "reader %s", s->readers[i].name);
    }
    grq_reader_free(reader);
    return st;
}

/* Readers are independent of each other, so each thread takes the next one. */
static grq_status ask_all(eval_state *s, const eval_options *o, tool_context *tool, grq_error *err)
{
    grq_status st = GRQ_OK;
    size_t n_done = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(tool->n_threads)
    for (size_t i = 0; i < s->n_readers; i++) {
        grq_status stopped;
#pragma omp atomic read
        stopped = st;
        if (stopped != GRQ_OK) continue;
        grq_error own = { .status = GRQ_OK };
        const grq_status mine = ask_reader(s, i, o, &tool->progress, &own);
#pragma omp critical(eval_progress)
        {
            n_done++;
            if (mine != GRQ_OK && st == GRQ_OK) {
                if (err) *err = own;
#pragma omp atomic write
                st = mine;
            }
            if (mine == GRQ_OK)
                tool->progress.report(tool->progress.context, "answer", n_done * s->questions.n,
                                      s->n_readers * s->questions.n, "questions", s->readers[i].name);
        }
    }
    return st;
}

/* ---- results ---- */

static grq_status write_predictions(const eval_state *s, size_t reader, const eval_options *o, const char *path,
                                    grq_error *err)
{
    grq_outfile *file = NULL;
    grq_status st = grq_outfile_open(path, &file, err);
    for (size_t i = 0; st == GRQ_OK && i < s->questions.n; i++) {
        const grq_question *q = &s->questions.items[i];
        grq_json_writer *w = grq_json_writer_new();
        if (!w) {
            st = grq_fail(err, GRQ_E_NOMEM, "no memory for a line of %s", path);
            break;
        }
        grq_json_begin_object(w, NULL);
        grq_json_put_string(w, "suite", o->suite);
        grq_json_put_string(w, "id", q->id);
        grq_json_put_string(w, "reader", s->readers[reader].name);
        grq_json_put_string(w, "output", s->answers[reader].outputs[i]);
        grq_json_put_bool(w, "correct", s->answers[reader].correct[i]);
        grq_json_put_string(w, "rule", s->rule->name);
        grq_json_put_string(w, "subject", q->subject);
        grq_json_put_string(w, "relation", q->relation);
        grq_json_put_f64(w, "popularity", q->popularity);
        grq_json_put_u64(w, "quartile", q->quartile);
        grq_json_put_bool(w, "held", q->held);
        grq_json_end_object(w);
        const char *text;
        st = grq_json_writer_text(w, true, &text, err);
        if (st == GRQ_OK) fprintf(grq_outfile_stream(file), "%s\n", text); /* commit reports short writes */
        grq_json_writer_free(w);
    }
    if (st == GRQ_OK) return grq_outfile_commit(file, err);
    grq_outfile_discard(file);
    return st;
}

static grq_status save_predictions(const eval_state *s, const eval_options *o, grq_error *err)
{
    if (!o->out) return GRQ_OK;
    if (!o->readers) return write_predictions(s, 0, o, o->out, err);
    grq_status st = grq_make_directories(o->out, err);
    for (size_t i = 0; st == GRQ_OK && i < s->n_readers; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.jsonl", s->readers[i].name);
        for (char *c = name; *c; c++)
            if (*c == '/' || *c == '#') *c = '-';
        char *path = grq_path_join(o->out, name);
        if (!path) st = grq_fail(err, GRQ_E_NOMEM, "no memory for a path");
        else st = write_predictions(s, i, o, path, err);
        free(path);
    }
    return st;
}

static grq_status report_results(const eval_state *s, const eval_options *o, tool_context *tool, grq_error *err)
{
    const accuracy_table table = { .questions = &s->questions,
                                   .readers = s->readers,
                                   .n_readers = s->n_readers,
                                   .row_dim = grq_model_shape_of(s->model)->memory.row_dim,
                                   .n_resamples = (uint32_t)o->n_resamples,
                                   .seed = tool->seed };
    grq_json_put_string(tool->result, "suite", o->suite);
    grq_json_put_string(tool->result, "world", grq_world_name(s->world));
    grq_json_put_string(tool->result, "rule", s->rule->name);
    grq_json_put_string(tool->result, "budget", o->budget);
    const grq_status st = accuracy_write(&table, tool->result, err);
    if (st != GRQ_OK || tool->json) return st;
    printf("%zu questions of suite %s (world %s), rule %s\n%-18s %9s  %s\n", s->questions.n, o->suite,
           grq_world_name(s->world), s->rule->name, "reader", "accuracy", "share of look-ups beyond stage 1");
    for (size_t i = 0; i < s->n_readers; i++) {
        const accuracy_reader *r = &s->readers[i];
        uint64_t k = 0;
        for (size_t q = 0; q < s->questions.n; q++) k += r->correct[q];
        printf("%-18s %7.2f %%", r->name, s->questions.n ? 100.0 * (double)k / (double)s->questions.n : NAN);
        if (r->usage.n_lookups) printf("  %.4f", 1 - (double)r->usage.n_at_depth[0] / (double)r->usage.n_lookups);
        printf("\n");
    }
    return GRQ_OK;
}

static void close_all(eval_state *s)
{
    for (size_t i = 0; i < s->n_readers; i++) grq_answers_free(&s->answers[i]);
    grq_questions_free(&s->questions);
    grq_counts_free(&s->counts);
    input_codes_close(s->codes);
    grq_world_free(s->world);
    grq_model_free(s->model);
    free(s);
}

grq_status cmd_eval(tool_context *tool, int argc, char **argv, grq_error *err)
{
    eval_options o = { .suite = "popqa", .budget = "0.412", .gates = "frozen", .max_new = 16, .n_resamples = 2000 };
    const tool_option options[] = {
        { "model", "FILE", "model file (safetensors)", TOOL_TEXT, &o.model, true, 0, 0 },
        { "suite", "NAME", "popqa: the cold-facts questions of the model's world [popqa]", TOOL_TEXT, &o.suite, false,
          0, 0 },
        { "config", "FILE", "config whose world is asked about [the one in the model file]", TOOL_TEXT, &o.config,
          false, 0, 0 },
        { "codes", "DIR", "coded tables, layer-<L>.safetensors", TOOL_TEXT, &o.codes, false, 0, 0 },
        { "counts", "FILE", "row counts (gaterq count), for prior, frequency and coldest", TOOL_TEXT, &o.counts, false,
          0, 0 },
        { "policy", "NAME", "gate prior random frequency coldest energy oracle shuffled", TOOL_TEXT, &o.policy, false,
          0, 0 },
        { "budget", "F[,F]", "stage fractions of a batch's look-ups [0.412]", TOOL_TEXT, &o.budget, false, 0, 0 },
        { "gates", "MODE", "frozen (the paper) or refreshed [frozen]", TOOL_TEXT, &o.gates, false, 0, 0 },
        { "depth", "K", "every look-up at depth K", TOOL_U64, &o.depth, false, 1, GRQ_MAX_STAGES },
        { "zero", NULL, "all tables zero", TOOL_FLAG, &o.zero, false, 0, 0 },
        { "readers", "LIST", "several at once: full,zero,depth1,gate,random#1,gate/refreshed", TOOL_TEXT, &o.readers,
          false, 0, 0 },
        { "questions", "N", "ask N questions drawn by the seed; 0 asks all [0]", TOOL_U64, &o.n_questions, false, 0,
          1e9 },
        { "max-new", "N", "tokens of an answer at most [16]", TOOL_U64, &o.max_new, false, 1, 1024 },
        { "bootstrap", "N", "resamples of the intervals [2000]", TOOL_U64, &o.n_resamples, false, 0, 1e6 },
        INPUT_UNVERIFIED_OPTION(&o.unverified),
        { "out", "PATH", "predictions file; with --readers a folder of them", TOOL_TEXT, &o.out, false, 0, 0 },
    };
    const tool_command command = {
        .name = "eval",
        .usage = "--model M [--suite S] [--codes C (--policy P --budget B | --depth K) | --zero] [--out P.jsonl]",
        .summary = "Ask a model a suite's questions greedily and write one JSON line per item.",
        .details = "Example: gaterq eval --model mini.safetensors --codes codes --counts counts.safetensors \\\n"
                   "         --readers full,depth1,depth2,gate,prior --out predictions",
        .options = options,
        .n_options = TOOL_COUNT(options),
    };
    bool done;
    grq_status st = tool_parse(tool, &command, argc, argv, &done, err);
    if (st != GRQ_OK || done) return st;
    eval_state *s = calloc(1, sizeof *s);
    if (!s) return grq_fail(err, GRQ_E_NOMEM, "no memory");
    st = open_inputs(s, &o, tool->seed, err);
    if (st == GRQ_OK) st = ask_all(s, &o, tool, err);
    if (st == GRQ_OK) st = save_predictions(s, &o, err);
    if (st == GRQ_OK) st = report_results(s, &o, tool, err);
    close_all(s);
    return st;
}
