#include "gaterq/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "gaterq/file.h"
#include "gaterq/json.h"
#include "qa/csv.h"
#include "qa/text_file.h"

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
static grq_status read_header(const char *path, const grq_csv_record *header, int place[N_COLUMNS], grq_error *err)
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
    char missing[128] = "";
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const size_t used = strlen(missing);
        if (place[needed[i]] < 0)
            snprintf(missing + used, sizeof missing - used, "%s\"%s\"", used ? ", " : "", columns[needed[i]]);
    }
    if (!*missing) return GRQ_OK;
    return grq_fail(err, GRQ_E_DATA,
                    "%s: the header has no column %s; expected PopQA's columns (id, subj, prop, obj, ... s_pop, o_pop, "
                    "question, possible_answers), separated by tabs",
                    path, missing);
}

/* ---- rows ---- */

static bool is_blank(const char *text)
{
    return !text[strspn(text, " ")];
}

/* Decimal only: strtod alone would take hexadecimal, "inf" and leading white space of any kind. */
static grq_status read_popularity(const char *path, size_t line, const char *text, double *out, grq_error *err)
{
    char *end;
    *out = NAN;
    if (is_blank(text)) return GRQ_OK;
    *out = strtod(text, &end);
    if (text[strspn(text, " +-.0123456789eE")] || end == text || !is_blank(end) || !isfinite(*out) || *out < 0)
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

static grq_status add_row(grq_facts *f, const grq_csv_record *record, const int place[N_COLUMNS], size_t n_columns,
                          grq_error *err)
{
    if (record->n_fields != n_columns)
        return grq_fail(err, GRQ_E_DATA, "%s: line %zu has %zu columns; the header has %zu", f->path, record->line,
                        record->n_fields, n_columns);
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
    if (is_blank(fact->id)) {
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

static const grq_fact *find_id(const grq_fact *const *sorted, size_t n, const char *id)
{
    size_t low = 0, high = n; /* the first fact whose id is not below `id` */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(sorted[middle]->id, id) < 0) low = middle + 1;
        else high = middle;
    }
    return low < n && !strcmp(sorted[low]->id, id) ? sorted[low] : NULL;
}

/* A row number stands in for a blank id. Where it is another row's official id, "row<number>" does. */
static grq_status settle_made_id(grq_facts *f, grq_fact *fact, const grq_fact *const *official, size_t n,
                                 grq_error *err)
{
    char *id = NULL;
    if (!find_id(official, n, fact->id)) return GRQ_OK;
    if (asprintf(&id, "row%" PRIu64, fact->row) < 0) id = NULL;
    if (!own(f, id)) return no_memory(f->path, err);
    if (find_id(official, n, id))
        return grq_fail(err, GRQ_E_DATA,
                        "%s: row %" PRIu64
                        " has a blank id, and both that could stand in for it, \"%s\" and \"%s\", are "
                        "ids of other rows; give it one",
                        f->path, fact->row, fact->id, id);
    fact->id = id;
    return GRQ_OK;
}

/* No two facts may share an id. */
static grq_status settle_ids(grq_facts *f, grq_error *err)
{
    const grq_fact **official = malloc((f->n + 1) * sizeof *official);
    if (!official) return no_memory(f->path, err);
    grq_status st = GRQ_OK;
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (!is_made(f, &f->facts[i])) official[n++] = &f->facts[i];
    qsort(official, n, sizeof *official, by_id);
    for (size_t i = 1; st == GRQ_OK && i < n; i++)
        if (!strcmp(official[i]->id, official[i - 1]->id))
            st = grq_fail(err, GRQ_E_DATA, "%s: rows %" PRIu64 " and %" PRIu64 " have the same id \"%s\"", f->path,
                          official[i - 1]->row, official[i]->row, official[i]->id);
    for (size_t i = 0; st == GRQ_OK && i < f->n; i++)
        if (is_made(f, &f->facts[i])) st = settle_made_id(f, &f->facts[i], official, n, err);
    free(official);
    return st;
}

/* ---- files ---- */

static grq_status read_rows(grq_facts *f, grq_error *err)
{
    grq_csv reader = { .path = f->path, .at = f->text, .end = f->text + f->n_bytes, .separator = '\t', .line = 1 };
    grq_csv_record record = { 0 };
    int place[N_COLUMNS];
    bool more = false;
    grq_status st = grq_csv_next(&reader, &record, &more, err);
    if (st == GRQ_OK && !more) st = grq_fail(err, GRQ_E_DATA, "%s: the file is empty", f->path);
    if (st == GRQ_OK) st = read_header(f->path, &record, place, err);
    const size_t n_columns = record.n_fields;
    while (st == GRQ_OK) {
        st = grq_csv_next(&reader, &record, &more, err);
        if (st != GRQ_OK || !more) break;
        st = add_row(f, &record, place, n_columns, err);
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
    grq_status st = f->path ? grq_text_file_read(path, &f->text, &f->n_bytes, err) : no_memory(path, err);
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

/* What grq_facts_open would refuse, or read as something else, is not written. */
static grq_status check_fact(const char *path, size_t index, const grq_fact *fact, grq_error *err)
{
    const struct {
        const char *column, *text;
    } fields[] = { { columns[ID], fact->id },
                   { columns[SUBJECT], fact->subject },
                   { columns[RELATION], fact->relation },
                   { columns[OBJECT], fact->object },
                   { columns[QUESTION], fact->question } };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!fields[i].text || !grq_utf8_valid(fields[i].text))
            return grq_fail(err, GRQ_E_DATA, "%s: fact %zu, %s: not valid UTF-8", path, index, fields[i].column);
    for (size_t i = 0; i < fact->n_accepted; i++)
        if (!grq_utf8_valid(fact->accepted[i]))
            return grq_fail(err, GRQ_E_DATA, "%s: fact %zu, answer %zu: not valid UTF-8", path, index, i);
    if (!*fact->question) return grq_fail(err, GRQ_E_DATA, "%s: fact %zu has no question", path, index);
    if (isinf(fact->popularity) || fact->popularity < 0)
        return grq_fail(err, GRQ_E_DATA, "%s: fact %zu, s_pop: %g is not a page-view count", path, index,
                        fact->popularity);
    return GRQ_OK;
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
    for (size_t i = 0; st == GRQ_OK && i < n_facts; i++) {
        st = check_fact(path, i, &facts[i], err);
        if (st == GRQ_OK) st = put_fact(to, &facts[i], err);
    }
    if (st == GRQ_OK) return grq_outfile_commit(file, err);
    grq_outfile_discard(file);
    return st;
}
