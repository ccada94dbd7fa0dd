/* Facts (TSV in PopQA's layout) and access logs (CSV): the same bytes go to both readers. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "gaterq/analysis.h"
#include "gaterq/facts.h"

static void touch_text(const char *text)
{
    fuzz_touch(text, strlen(text) + 1);
}

static void open_facts(const char *path)
{
    grq_facts *facts;
    grq_error err;
    const grq_status st = grq_facts_open(path, &facts, &err);
    if (st != GRQ_OK) {
        fuzz_refused(st, &err);
        fuzz_require(!facts, "a refused file is handed out");
        return;
    }
    fuzz_accepted = 1;
    for (size_t i = 0; i < grq_facts_count(facts); i++) {
        const grq_fact *const fact = grq_facts_at(facts, i);
        touch_text(fact->id);
        touch_text(fact->subject);
        touch_text(fact->relation);
        touch_text(fact->object);
        touch_text(fact->question);
        fuzz_require(isnan(fact->popularity) || fact->popularity >= 0, "a negative popularity");
        for (size_t a = 0; a < fact->n_accepted; a++) {
            touch_text(fact->accepted[a]);
            fuzz_require(fact->accepted[a][0] != '\0', "an empty answer");
        }
    }
    grq_facts_close(facts);
}

static void check_cell(const grq_log_cell *cell)
{
    fuzz_require(cell->n_lookups > 0 && cell->n_rows > 0 && cell->n_rows <= cell->n_lookups, "rows and look-ups");
    fuzz_require(isnan(cell->spearman.value) || fabs(cell->spearman.value) <= 1 + 1e-9, "no correlation");
}

static void open_log(const char *path)
{
    grq_log_premise premise;
    grq_error err;
    const grq_status st = grq_log_premise_run(path, 3, 1, &premise, &err);
    if (st != GRQ_OK) {
        fuzz_refused(st, &err);
        return;
    }
    fuzz_accepted = 1;
    check_cell(&premise.all);
    uint64_t n = 0;
    for (size_t t = 0; t < premise.n_tables; t++) {
        check_cell(&premise.tables[t]);
        n += premise.tables[t].n_lookups;
        if (t) fuzz_require(premise.tables[t - 1].table_id < premise.tables[t].table_id, "tables do not ascend");
    }
    fuzz_require(n == premise.all.n_lookups, "look-ups of all tables");
    touch_text(premise.verdict);
    grq_log_premise_free(&premise);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const path = fuzz_file(data, size);
    open_facts(path);
    open_log(path);
    return 0;
}
