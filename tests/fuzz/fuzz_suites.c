/* Suites' files: the first byte chooses a reader, the rest is the file. What is accepted makes prompts in every layout.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "gaterq/file.h"
#include "gaterq/prompts.h"

enum { MAX_ITEMS = 12 };

/* A list lies among the accepted answers. */
static void check_list(const grq_suite_item *item, grq_answer_list list)
{
    if (list.n == 0) return;
    fuzz_require(list.texts >= item->accepted && list.texts + list.n <= item->accepted + item->n_accepted,
                 "a kind of answers lies elsewhere");
    for (size_t k = 0; k < list.n; k++) fuzz_touch(list.texts[k], strlen(list.texts[k]) + 1);
}

static void check_item(const grq_suite_item *item)
{
    fuzz_touch(item->id, strlen(item->id) + 1);
    fuzz_require(*item->id != '\0', "an item without an id");
    fuzz_require(grq_utf8_valid(item->question), "a question is no UTF-8");
    for (size_t k = 0; k < item->n_accepted; k++) fuzz_require(*item->accepted[k] != '\0', "an empty answer");
    check_list(item, item->aliases);
    check_list(item, item->normalized);
    check_list(item, item->human);
    fuzz_require(!item->n_accepted || item->shown, "answers, but none to show");
    for (size_t k = 0; item->choices && k < GRQ_N_CHOICES; k++)
        fuzz_touch(item->choices[k], strlen(item->choices[k]) + 1);
}

static void make_prompts(const char *name, const grq_suite *suite)
{
    grq_error err;
    for (size_t i = 0; grq_prompt_protocol_at(i); i++) {
        const grq_prompt_protocol *const protocol = grq_prompt_protocol_at(i);
        if (strcmp(protocol->suite, name)) continue;
        for (uint32_t n_shots = 0; n_shots < 3 && n_shots <= protocol->most_shots; n_shots++) {
            grq_prompter *prompter;
            if (grq_prompter_new(protocol, suite, n_shots, 1, &prompter, &err) != GRQ_OK) continue;
            for (size_t k = 0; k < grq_suite_count(suite) && k < MAX_ITEMS; k++) {
                grq_prompt_text prompt;
                if (grq_prompt_text_make(prompter, &grq_suite_items(suite)[k], &prompt, &err) != GRQ_OK) continue;
                fuzz_require(grq_utf8_valid(prompt.text), "a prompt is no UTF-8");
                grq_prompt_text_free(&prompt);
            }
            grq_prompter_free(prompter);
        }
    }
}

/* CMMLU is a folder: test/agronomy.csv in one of our own. */
static const char *cmmlu_folder(const uint8_t *data, size_t size)
{
    static char folder[300];
    if (!*folder) {
        const char *const tmp = getenv("TMPDIR");
        char part[320];
        snprintf(folder, sizeof folder, "%.200s/gaterq-fuzz-cmmlu-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        fuzz_require(mkdtemp(folder) != NULL, "no folder");
        snprintf(part, sizeof part, "%s/test", folder);
        fuzz_require(mkdir(part, 0700) == 0, "no folder");
    }
    char path[400];
    snprintf(path, sizeof path, "%s/test/agronomy.csv", folder);
    FILE *const file = fopen(path, "wb");
    fuzz_require(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "a file cannot be written");
    return folder;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "popqa", "triviaqa", "nq_open", "cmmlu" };
    if (size == 0) return 0;
    const char *const name = names[data[0] % 4];
    grq_suite *suite;
    grq_error err;
    const char *const path = !strcmp(name, "cmmlu") ? cmmlu_folder(data + 1, size - 1) : fuzz_file(data + 1, size - 1);
    const grq_status st = grq_suite_open(name, path, &suite, &err);
    if (st != GRQ_OK) {
        fuzz_refused(st, &err);
        fuzz_require(!suite, "a refused file is handed out");
        return 0;
    }
    fuzz_accepted = 1;
    fuzz_require(grq_suite_count(suite) > 0, "a suite without questions");
    size_t n_groups, n_grouped = 0;
    const grq_suite_group *const groups = grq_suite_groups(suite, &n_groups);
    for (size_t g = 0; g < n_groups; g++) n_grouped += groups[g].n;
    fuzz_require(n_grouped == (n_groups ? grq_suite_count(suite) : 0), "items are missing from their groups");
    for (size_t i = 0; i < grq_suite_count(suite); i++) check_item(&grq_suite_items(suite)[i]);
    make_prompts(name, suite);
    grq_suite_close(suite);
    return 0;
}
