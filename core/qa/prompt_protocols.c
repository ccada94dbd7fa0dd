/* Published prompt layouts, as data. */
#include <stdio.h>
#include <string.h>

#include "prompt_layout.h"

#define CMMLU_HEADING "以下是关于%s的单项选择题，请直接给出正确答案的选项。"

/* ---- layouts ---- */

static const grq_prompt_layout popqa = { .question = "Q: ", .answer = " A:", .shot_gap = " ", .between = "\n\n" };
static const grq_prompt_layout question_answer = {
    .question = "Question: ", .answer = "\nAnswer:", .shot_gap = " ", .between = "\n\n"
};
static const grq_prompt_layout triviaqa_lm_eval = { .question = "Question: ",
                                                    .mark = ALWAYS_MARK,
                                                    .answer = "\nAnswer:",
                                                    .shot_gap = " ",
                                                    .between = "\n\n",
                                                    .first_alias = true };
static const grq_prompt_layout llm_foundry = {
    .question = "Question: ", .answer = "\nAnswer:", .shot_gap = " ", .between = "\n"
};
static const grq_prompt_layout triviaqa_opencompass = {
    .heading = "Answer these questions, your answer should be as simple as possible, start your answer with the prompt "
               "'The answer is '.\n",
    .question = "Q: ",
    .mark = ALWAYS_MARK,
    .answer = "\nA:",
};
static const grq_prompt_layout nq_lm_eval = { .heading = "Answer these questions:\n\n",
                                              .question = "Q: ",
                                              .mark = ALWAYS_MARK,
                                              .answer = "\nA:",
                                              .shot_gap = " ",
                                              .between = "\n" };
static const grq_prompt_layout nq_plain = { .heading = "Answer these questions:\n\n",
                                            .question = "Q: ",
                                            .mark = ALWAYS_MARK,
                                            .answer = "\nA:",
                                            .shot_gap = " ",
                                            .between = "\n",
                                            .detokenise_shots = true };
static const grq_prompt_layout nq_opencompass = {
    .question = "Question: ", .mark = ALWAYS_MARK, .answer = "\nAnswer: "
};
static const grq_prompt_layout cmmlu_lm_eval = { .heading = CMMLU_HEADING "\n\n",
                                                 .question = "",
                                                 .trim = true,
                                                 .answer = "\n答案：",
                                                 .shot_gap = " ",
                                                 .between = "\n\n",
                                                 .choices = true };
static const grq_prompt_layout cmmlu_original = { .heading = CMMLU_HEADING "\n\n",
                                                  .question = "题目：",
                                                  .answer = "\n答案是：",
                                                  .shot_gap = "",
                                                  .between = "\n\n",
                                                  .choices = true };
static const grq_prompt_layout cmmlu_opencompass = { .heading = CMMLU_HEADING "\n",
                                                     .heading_each = true,
                                                     .question = "题目：",
                                                     .answer = "\n答案是: ",
                                                     .shot_gap = "",
                                                     .between = "\n",
                                                     .choices = true };

/* ---- protocols ---- */

static const grq_prompt_protocol protocols[] = {
    { .name = "popqa_paper",
      .suite = "popqa",
      .description = "the PopQA paper's: 15 shots (0 for GPT-3), one from each other relation",
      .shot_rule = GRQ_SHOTS_OTHER_RELATIONS,
      .most_shots = 15,
      .max_new_tokens = 15,
      .layout = &popqa },
    { .name = "popqa_olmo_eval",
      .suite = "popqa",
      .description = "olmo-eval: the paper's prompt with 15 shots, stop at a blank line",
      .shot_rule = GRQ_SHOTS_OTHER_RELATIONS,
      .most_shots = 15,
      .max_new_tokens = 15,
      .stop = { "\n\n" },
      .layout = &popqa },
    { .name = "triviaqa_plain",
      .suite = "triviaqa",
      .description = "recommended: the question as it is, canonical answers as shots, stop at the line's end",
      .shot_rule = GRQ_SHOTS_RANDOM,
      .most_shots = GRQ_MAX_SHOTS,
      .max_new_tokens = 32,
      .stop = { "\n" },
      .layout = &question_answer },
    { .name = "triviaqa_lm_eval",
      .suite = "triviaqa",
      .description = "lm-evaluation-harness: a question mark more, aliases[0] as shots",
      .shot_rule = GRQ_SHOTS_RANDOM,
      .most_shots = GRQ_MAX_SHOTS,
      .max_new_tokens = 256,
      .stop = { "\n", ".", "," },
      .layout = &triviaqa_lm_eval },
    { .name = "triviaqa_llm_foundry",
      .suite = "triviaqa",
      .description = "llm-foundry: shots on lines that follow each other",
      .shot_rule = GRQ_SHOTS_RANDOM,
      .most_shots = GRQ_MAX_SHOTS,
      .max_new_tokens = 32,
      .stop = { "\n" },
      .layout = &llm_foundry },
    { .name = "triviaqa_lighteval",
      .suite = "triviaqa",
      .description = "lighteval: the question as it is, no shots, 20 tokens",
      .shot_rule = GRQ_SHOTS_NONE,
      .max_new_tokens = 20,
      .stop = { "\n", ".", "," },
      .layout = &question_answer },
    { .name = "triviaqa_opencompass",
      .suite = "triviaqa",
      .description = "OpenCompass triviaqa_gen: an instruction, no shots",
      .shot_rule = GRQ_SHOTS_NONE,
      .max_new_tokens = 50,
      .layout = &triviaqa_opencompass },
    { .name = "nq_open_plain",
      .suite = "nq_open",
      .description = "recommended: lm-evaluation-harness' prompt, stop at the line's end alone; DPR's spaces before , "
                     "and . go from shots",
      .shot_rule = GRQ_SHOTS_RANDOM,
      .most_shots = GRQ_MAX_SHOTS,
      .max_new_tokens = 32,
      .stop = { "\n" },
      .layout = &nq_plain },
    { .name = "nq_open_lm_eval",
      .suite = "nq_open",
      .description = "lm-evaluation-harness",
      .shot_rule = GRQ_SHOTS_RANDOM,
      .most_shots = GRQ_MAX_SHOTS,
      .max_new_tokens = 256,
      .stop = { "\n", ".", "," },
      .layout = &nq_lm_eval },
    { .name = "nq_opencompass",
      .suite = "nq_open",
      .description = "OpenCompass nq_gen: no shots; the prompt ends in a space",
      .shot_rule = GRQ_SHOTS_NONE,
      .max_new_tokens = 50,
      .layout = &nq_opencompass },
    { .name = "nq_helm_closedbook",
      .suite = "nq_open",
      .description = "HELM natural_qa, closed book: 5 shots usual",
      .shot_rule = GRQ_SHOTS_RANDOM,
      .most_shots = GRQ_MAX_SHOTS,
      .max_new_tokens = 300,
      .stop = { "\n" },
      .layout = &question_answer },
    { .name = "cmmlu_lm_eval",
      .suite = "cmmlu",
      .description = "lm-evaluation-harness: log-likelihoods of \" A\" to \" D\"; 0 or 5 shots",
      .shot_rule = GRQ_SHOTS_FIRST,
      .most_shots = 5,
      .continuation = " ",
      .layout = &cmmlu_lm_eval },
    { .name = "cmmlu_original",
      .suite = "cmmlu",
      .description = "CMMLU's own: the largest of the logits of A, B, C, D",
      .shot_rule = GRQ_SHOTS_FIRST,
      .most_shots = 5,
      .continuation = "",
      .layout = &cmmlu_original },
    { .name = "cmmlu_opencompass_ppl",
      .suite = "cmmlu",
      .description = "OpenCompass cmmlu_ppl: mean loss of the prompt with each letter",
      .shot_rule = GRQ_SHOTS_FIRST,
      .most_shots = 5,
      .continuation = "",
      .whole_prompt = true,
      .layout = &cmmlu_opencompass },
};

const grq_prompt_protocol *grq_prompt_protocol_at(size_t index)
{
    return index < sizeof protocols / sizeof *protocols ? &protocols[index] : NULL;
}

grq_status grq_prompt_protocol_find(const char *suite, const char *name, const grq_prompt_protocol **out,
                                    grq_error *err)
{
    char known[256] = "";
    bool any = false;
    for (size_t i = 0; grq_prompt_protocol_at(i); i++) {
        const grq_prompt_protocol *const p = grq_prompt_protocol_at(i);
        if (strcmp(p->suite, suite)) continue;
        if (!name || !strcmp(p->name, name)) {
            *out = p;
            return GRQ_OK;
        }
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", any ? ", " : "", p->name);
        any = true;
    }
    if (!any)
        return grq_fail(err, GRQ_E_USAGE, "suite %.60s is not known; there are: popqa, triviaqa, nq_open, cmmlu",
                        suite);
    return grq_fail(err, GRQ_E_USAGE, "protocol %.60s is not known for %s; known: %s", name, suite, known);
}
