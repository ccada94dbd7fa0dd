#include "gaterq/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gaterq/file.h"
#include "gaterq/json.h"
#include "qa/tsv.h"

/* PopQA's columns, in the official order. */
static const char *const columns[] = {
    "id",    "subj",  "prop",         "obj",          "subj_id", "prop_id", "obj_id",   "s_aliases",       "o_aliases",
    "s_uri", "o_uri", "s_wiki_title", "o_wiki_title", "s_pop",   "o_pop",   "question", "possible_answers"
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };
enum { ID = 0, SUBJECT = 1, RELATION = 2, OBJECT = 3, POPULARITY = 13, QUESTION = 15, ANSWERS = 16 };

struct grq_facts {
    char *path, *text; /* fields point into text */
    size_t n_bytes, n, room;
    grq_fact *facts;
    char **owned; /* strings that lie elsewhere: decoded answers, made ids */
    size_t n_owned, owned_room;
};

static grq_status no_memory(const char *path, grq_error *err)
{
    return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its facts", path);
}

static bool own(grq_facts *f, void *memory)
{
    if (!memory) return false;
    if (f->n_owned == f->owned_room) {
        const size_t room = f->owned_room ? 2 * f->owned_room : 1024;
        char **owned = realloc(f->owned, room * sizeof *owned);
        if (!owned) {
            free(memory);
            return false;
        }
        f->owned = owned;
        f->owned_room = room;
    }
    f->owned[f->n_owned++] = memory;
    return true;
}

/* ---- header ---- */

/* Where each known column stands in this file; -1: it does not. Unknown columns are ignored. */
static grq_status read_header(const char *path, const tsv_record *header, int place[N_COLUMNS], grq_error *err)
{
    static const int needed[] = { SUBJECT, RELATION, OBJECT, POPULARITY, QUESTION, ANSWERS };
    for (int c = 0; c < N_COLUMNS; c++) {
        place[c] = -1;
        for (size_t i = 0; i < header->n_fields; i++) {
            if (strcmp(header->fields[i], columns[c])) continue;
            if (place[c] >= 0)
                return grq_fail(err, GRQ_E_DATA, "%s: the header names column %s twice", path, columns[c]);
            place[c] = (int)i;
        }
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (place[needed[i]] < 0)
            return grq_fail(err, GRQ_E_DATA,
                            "%s: the header has no column \"%s\"; expected PopQA's columns (id, subj, prop, obj, ... "
                            "s_pop, o_pop, question, possible_answers), separated by tabs",
                            path, columns[needed[i]]);
    return GRQ_OK;
}

/* ---- rows ---- */

static grq_status read_popularity(const char *path, size_t line, const char *text, double *out, grq_error *err)
{
    char *end;
    *out = NAN;
    if (!text[strspn(text, " ")]) return GRQ_OK;
    errno = 0;
    *out = strtod(text, &end);
    if (end == text || end[strspn(end, " ")] || errno || !isfinite(*out) || *out < 0)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu, column s_pop: \"%.60s\" is not a page-view count", path, line,
                        text);
    return GRQ_OK;
}

/* A JSON list in a string; empty strings in it are left out. Caller keeps the strings through the facts object. */
static grq_status read_answers(grq_facts *f, size_t line, const char *text, grq_fact *fact, grq_error *err)
{
    grq_json *document = NULL;
    char name[512];
    snprintf(name, sizeof name, "%.400s: line %zu, column possible_answers", f->path, line);
    grq_status st = grq_json_parse(name, text, strlen(text), &document, err);
    if (st != GRQ_OK) return st;
    grq_json_node *list = grq_json_root(document);
    const size_t n = grq_json_kind_of(list) == GRQ_JSON_ARRAY ? grq_json_count(list) : 0;
    const char **answers = calloc(n + 1, sizeof *answers);
    if (grq_json_kind_of(list) != GRQ_JSON_ARRAY) st = grq_fail(err, GRQ_E_DATA, "%s: not a list", name);
    if (!own(f, answers) && st == GRQ_OK) st = no_memory(f->path, err);
    for (size_t i = 0; st == GRQ_OK && i < n; i++) {
        const char *answer;
        st = grq_json_as_string(grq_json_at(list, i), &answer, err);
        if (st != GRQ_OK || !*answer) continue;
        char *copy = strdup(answer);
        if (!own(f, copy)) st = no_memory(f->path, err);
        else answers[fact->n_accepted++] = copy;
    }
    fact->accepted = answers;
    grq_json_close(document);
    return st;
}

static grq_status add_row(grq_facts *f, const tsv_record *record, const int place[N_COLUMNS], grq_error *err)
{
    for (int c = 0; c < N_COLUMNS; c++)
        if (place[c] >= (int)record->n_fields)
            return grq_fail(err, GRQ_E_DATA, "%s: line %zu has %zu columns; \"%s\" is column %d", f->path, record->line,
                            record->n_fields, columns[c], place[c] + 1);
    if (f->n == f->room) {
        const size_t room = f->room ? 2 * f->room : 1024;
        grq_fact *facts = realloc(f->facts, room * sizeof *facts);
        if (!facts) return no_memory(f->path, err);
        f->facts = facts;
        f->room = room;
    }
    grq_fact *fact = &f->facts[f->n];
    *fact = (grq_fact){ .id = place[ID] >= 0 ? record->fields[place[ID]] : "",
                        .row = f->n,
                        .subject = record->fields[place[SUBJECT]],
                        .relation = record->fields[place[RELATION]],
                        .object = record->fields[place[OBJECT]],
                        .question = record->fields[place[QUESTION]] };
    if (!*fact->id) {
        char *made = NULL;
        if (asprintf(&made, "%zu", f->n) < 0) made = NULL;
        if (!own(f, made)) return no_memory(f->path, err);
        fact->id = made;
    }
    if (!*fact->question) return grq_fail(err, GRQ_E_DATA, "%s: line %zu has no question", f->path, record->line);
    grq_status st = read_popularity(f->path, record->line, record->fields[place[POPULARITY]], &fact->popularity, err);
    if (st == GRQ_OK) st = read_answers(f, record->line, record->fields[place[ANSWERS]], fact, err);
    if (st == GRQ_OK) f->n++;
    return st;
}

/* ---- ids ---- */

static int by_id(const void *a, const void *b)
{
    const grq_fact *x = *(const grq_fact *const *)a, *y = *(const grq_fact *const *)b;
    const int order = strcmp(x->id, y->id);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* Was the id made here, in place of a blank one? */
static bool is_made(const grq_facts *f, const grq_fact *fact)
{
    return fact->id < f->text || fact->id >= f->text + f->n_bytes;
}

/* No two facts may share an id. A row number that stands in for a blank id can equal another row's official id: it then
 * becomes "row<number>". */
static grq_status settle_ids(grq_facts *f, grq_error *err)
{
    grq_fact **sorted = malloc((f->n + 1) * sizeof *sorted);
    if (!sorted) return no_memory(f->path, err);
    for (size_t i = 0; i < f->n; i++) sorted[i] = &f->facts[i];
    qsort(sorted, f->n, sizeof *sorted, by_id);
    grq_status st = GRQ_OK;
    for (size_t i = 1; st == GRQ_OK && i < f->n; i++) {
        if (strcmp(sorted[i]->id, sorted[i - 1]->id)) continue;
        grq_fact *made = is_made(f, sorted[i]) ? sorted[i] : is_made(f, sorted[i - 1]) ? sorted[i - 1] : NULL;
        char *id = NULL;
        if (!made)
            st = grq_fail(err, GRQ_E_DATA, "%s: rows %" PRIu64 " and %" PRIu64 " have the same id \"%s\"", f->path,
                          sorted[i - 1]->row, sorted[i]->row, sorted[i]->id);
        else if (asprintf(&id, "row%" PRIu64, made->row) < 0 || !own(f, id)) st = no_memory(f->path, err);
        else made->id = id;
    }
    free(sorted);
    return st;
}

/* ---- files ---- */

static grq_status read_rows(grq_facts *f, grq_error *err)
{
    tsv_reader reader;
    tsv_record record;
    int place[N_COLUMNS];
    bool more = false;
    grq_status st = tsv_start(f->path, f->text, f->n_bytes, &reader, err);
    if (st == GRQ_OK) st = tsv_next(&reader, &record, &more, err);
    if (st == GRQ_OK && !more) st = grq_fail(err, GRQ_E_DATA, "%s: the file is empty", f->path);
    if (st == GRQ_OK) st = read_header(f->path, &record, place, err);
    while (st == GRQ_OK) {
        st = tsv_next(&reader, &record, &more, err);
        if (st != GRQ_OK || !more) break;
        st = add_row(f, &record, place, err);
    }
    if (st == GRQ_OK && f->n == 0) st = grq_fail(err, GRQ_E_DATA, "%s: there is a header but no row", f->path);
    return st == GRQ_OK ? settle_ids(f, err) : st;
}

grq_status grq_facts_open(const char *path, grq_facts **out, grq_error *err)
{
    *out = NULL;
    grq_facts *f = calloc(1, sizeof *f);
    if (!f) return no_memory(path, err);
    f->path = strdup(path);
    grq_status st = f->path ? grq_file_read(path, 0, &f->text, &f->n_bytes, err) : no_memory(path, err);
    if (st == GRQ_OK) st = read_rows(f, err);
    if (st == GRQ_OK) *out = f;
    else grq_facts_close(f);
    return st;
}

void grq_facts_close(grq_facts *f)
{
    if (!f) return;
    for (size_t i = 0; i < f->n_owned; i++) free(f->owned[i]);
    free(f->owned);
    free(f->facts);
    free(f->text);
    free(f->path);
    free(f);
}

size_t grq_facts_count(const grq_facts *f)
{
    return f->n;
}

const grq_fact *grq_facts_at(const grq_facts *f, size_t index)
{
    return &f->facts[index];
}

const char *grq_facts_path(const grq_facts *f)
{
    return f->path;
}

/* ---- writing ---- */

static void put_field(FILE *to, const char *text)
{
    if (!strpbrk(text, "\t\n\r\"")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"') fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

static grq_status put_answers(FILE *to, const grq_fact *fact, grq_error *err)
{
    const char *text;
    grq_json_writer *w = grq_json_writer_new();
    if (!w) return grq_fail(err, GRQ_E_NOMEM, "no memory for a list of answers");
    grq_json_begin_array(w, NULL);
    for (size_t i = 0; i < fact->n_accepted; i++) grq_json_put_string(w, NULL, fact->accepted[i]);
    grq_json_end_array(w);
    const grq_status st = grq_json_writer_text(w, true, &text, err);
    if (st == GRQ_OK) put_field(to, text);
    grq_json_writer_free(w);
    return st;
}

static grq_status put_fact(FILE *to, const grq_fact *fact, grq_error *err)
{
    grq_status st = GRQ_OK;
    for (int c = 0; st == GRQ_OK && c < N_COLUMNS; c++) {
        if (c) fputc('\t', to);
        switch (c) {
        case ID: put_field(to, fact->id); break;
        case SUBJECT: put_field(to, fact->subject); break;
        case RELATION: put_field(to, fact->relation); break;
        case OBJECT: put_field(to, fact->object); break;
        case QUESTION: put_field(to, fact->question); break;
        case ANSWERS: st = put_answers(to, fact, err); break;
        case POPULARITY:
            if (!isnan(fact->popularity)) fprintf(to, "%.17g", fact->popularity);
            break;
        default: break;
        }
    }
    fputc('\n', to);
    return st;
}

grq_status grq_facts_write(const char *path, const grq_fact *facts, size_t n_facts, grq_error *err)
{
    grq_outfile *file;
    grq_status st = grq_outfile_open(path, &file, err);
    if (st != GRQ_OK) return st;
    FILE *to = grq_outfile_stream(file);
    for (int c = 0; c < N_COLUMNS; c++) fprintf(to, "%s%s", c ? "\t" : "", columns[c]);
    fputc('\n', to);
    for (size_t i = 0; st == GRQ_OK && i < n_facts; i++) st = put_fact(to, &facts[i], err);
    if (st == GRQ_OK) return grq_outfile_commit(file, err);
    grq_outfile_discard(file);
    return st;
}
