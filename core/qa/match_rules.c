/* The matching rules by name: which normalisation, which comparison, which cut. */
#include "qa/choice_text.h"
#include "qa/match_internal.h"
#include "qa/names.h"

#define HOW(c, o, g, ...)                                                                                              \
    &(const struct grq_match_how)                                                                                      \
    {                                                                                                                  \
        .compare = c, .output = o, .gold = g, __VA_ARGS__                                                              \
    }
#define TEXT(rule, own_cut, text, ...)                                                                                 \
    {                                                                                                                  \
        .name = rule, .cut = own_cut, .description = text, .how = HOW(__VA_ARGS__, )                                   \
    }
#define GRADED(rule, own_cut, text, ...)                                                                               \
    {                                                                                                                  \
        .name = rule, .cut = own_cut, .description = text, .graded = true, .how = HOW(__VA_ARGS__, )                   \
    }
#define CHOICE(rule, text, ...)                                                                                        \
    {                                                                                                                  \
        .name = rule, .cut = "whole", .description = text, .kind = GRQ_MATCH_CHOICE, .how = HOW(__VA_ARGS__, )         \
    }
#define SAME(other_name, rule)                                                                                         \
    {                                                                                                                  \
        .name = other_name, .same_as = rule                                                                            \
    }

static const grq_match_rule rules[] = {
    TEXT("popqa_contains", "popqa_first_line",
         "PopQA: the first line contains an accepted answer, as it is, lower-cased or capitalised", CONTAINS_CASES,
         grq_clean_copy, grq_clean_copy),
    TEXT("exact", "whole", "the whole output, trimmed, equals an accepted answer", EQUAL, grq_clean_strip,
         grq_clean_copy),
    TEXT("selfrag_match", "whole", "Self-RAG: the output contains an accepted answer verbatim", CONTAINS,
         grq_clean_copy, grq_clean_copy),
    TEXT("squad_em", NULL, "equal after squad_v1 (SQuAD, DPR, FiD, Atlas, FlashRAG EM)", EQUAL, grq_clean_squad,
         grq_clean_squad),
    GRADED("squad_f1", NULL, "F1 of words after squad_v1", F1, grq_clean_squad, grq_clean_squad),
    GRADED("flashrag_f1", NULL, "FlashRAG: squad_f1, where yes, no and noanswer match themselves alone",
           F1_STRICT_WORDS, grq_clean_squad, grq_clean_squad),
    TEXT("flashrag_sub_em", NULL, "FlashRAG acc: the output contains an accepted answer after squad_v1", CONTAINS,
         grq_clean_squad, grq_clean_squad),
    TEXT("triviaqa_official_em", NULL, "equal after triviaqa_official (TriviaQA's script)", EQUAL, grq_clean_triviaqa,
         grq_clean_triviaqa, .takes_every_kind = true),
    GRADED("triviaqa_official_f1", NULL, "F1 of words after triviaqa_official", F1, grq_clean_triviaqa,
           grq_clean_triviaqa, .takes_every_kind = true),
    TEXT("llm_foundry_prefix", NULL, "llm-foundry: the output starts with an accepted answer after triviaqa_official",
         STARTS, grq_clean_triviaqa, grq_clean_triviaqa),
    TEXT("nq_open_official_em", NULL, "equal after nq_open_official (NFD, then squad_v1)", EQUAL, grq_clean_nq_open,
         grq_clean_nq_open),
    TEXT("lm_eval_triviaqa_em", NULL, "lm-evaluation-harness, triviaqa: equal without case and ASCII punctuation",
         EQUAL, grq_clean_lm_eval_triviaqa_output, grq_clean_lm_eval_triviaqa),
    TEXT("lm_eval_triviaqa_stops", "lm_eval_until", "lm_eval_triviaqa_em at the harness's own stop strings", EQUAL,
         grq_clean_lm_eval_triviaqa_output, grq_clean_lm_eval_triviaqa),
    TEXT("lm_eval_nq_open_em", NULL, "lm-evaluation-harness, nq_open: the same, articles deleted first", EQUAL,
         grq_clean_lm_eval_nq_open_output, grq_clean_lm_eval_nq_open),
    TEXT("lm_eval_nq_open_stops", "lm_eval_until", "lm_eval_nq_open_em at the harness's own stop strings", EQUAL,
         grq_clean_lm_eval_nq_open_output, grq_clean_lm_eval_nq_open),
    TEXT("lighteval_triviaqa_em", NULL, "lighteval: lm_eval_triviaqa_em, answers that begin with another one dropped",
         EQUAL, grq_clean_lm_eval_triviaqa_output, grq_clean_lm_eval_triviaqa, .drops_extensions = true),
    TEXT("opencompass_general", "whole", "the output contains an accepted answer after opencompass_general", CONTAINS,
         grq_clean_opencompass_general_output, grq_clean_opencompass_gold, .empty_gold_is_nothing = true),
    TEXT("opencompass_general_literal", "whole", "the same; an answer that cleans to nothing is in every output",
         CONTAINS, grq_clean_opencompass_general_output, grq_clean_opencompass_gold),
    TEXT("opencompass_triviaqa", "whole", "OpenCompass, TriviaQA: the same on the first line, after \"answer is\"",
         CONTAINS, grq_clean_opencompass_triviaqa_output, grq_clean_opencompass_gold, .empty_gold_is_nothing = true),
    TEXT("opencompass_triviaqa_literal", "whole", "as published: an answer that cleans to nothing is in every output",
         CONTAINS, grq_clean_opencompass_triviaqa_output, grq_clean_opencompass_gold),
    TEXT("opencompass_nq", "whole", "OpenCompass, NQ: the same on the first line, after \"answer is\"", CONTAINS,
         grq_clean_opencompass_nq_output, grq_clean_opencompass_gold, .empty_gold_is_nothing = true),
    TEXT("opencompass_nq_literal", "whole", "as published: an answer that cleans to nothing is in every output",
         CONTAINS, grq_clean_opencompass_nq_output, grq_clean_opencompass_gold),
    TEXT("helm_exact", NULL, "HELM exact_match: equal, trimmed; an empty output is wrong", EQUAL, grq_clean_strip,
         grq_clean_strip, .empty_output_is_wrong = true),
    TEXT("helm_quasi_exact", NULL, "HELM quasi_exact_match: squad_em; an empty output is wrong", EQUAL, grq_clean_squad,
         grq_clean_squad, .empty_output_is_wrong = true),
    TEXT("helm_quasi_prefix", NULL, "HELM: the output starts with an accepted answer after squad_v1", STARTS,
         grq_clean_squad, grq_clean_squad, .empty_output_is_wrong = true),
    GRADED("helm_f1", NULL, "HELM F1: of the sets of words after squad_v1", F1_SET, grq_clean_squad, grq_clean_squad),
    TEXT("llama_em", "llama", "LLaMA papers: squad_em of the first line without its last full stop or comma", EQUAL,
         grq_clean_squad, grq_clean_squad),
    TEXT("unitxt_accuracy", "first_nonempty_line", "unitxt: the first line that is not blank, equal without case",
         EQUAL, grq_clean_lower, grq_clean_lower),
    TEXT("olmo_first_line", "first_line", "olmo-eval exact_match_first_line: popqa_contains on the first line",
         CONTAINS_CASES, grq_clean_copy, grq_clean_copy),
    TEXT("olmo_contains", "whole", "olmo-eval exact_match_containment: popqa_contains on the whole output",
         CONTAINS_CASES, grq_clean_copy, grq_clean_copy),
    CHOICE("cmmlu_extract_choice", "CMMLU's own extraction of a letter; none is wrong", EQUAL, grq_choice_cmmlu,
           grq_clean_strip),
    CHOICE("opencompass_first_capital", "OpenCompass: the first capital letter of any script", EQUAL,
           grq_choice_first_capital, grq_clean_strip),
    { .name = "cmmlu_loglikelihood",
      .kind = GRQ_MATCH_LIKELIHOOD,
      .description = "the choice with the largest log-likelihood, the first of equals; NaN is wrong" },
    SAME("squad_v1", "squad_em"),
    SAME("flashrag_em", "squad_em"),
    SAME("flashrag_acc", "flashrag_sub_em"),
    SAME("triviaqa_official", "triviaqa_official_em"),
    SAME("nq_open_official", "nq_open_official_em"),
    SAME("lm_eval_triviaqa", "lm_eval_triviaqa_em"),
    SAME("lm_eval_nq_open", "lm_eval_nq_open_em"),
    SAME("loglikelihood", "cmmlu_loglikelihood"),
};

enum { N_RULES = sizeof rules / sizeof *rules };

const grq_match_rule *grq_match_rule_at(size_t index)
{
    return index < N_RULES ? &rules[index] : NULL;
}

static const char *rule_name(size_t index)
{
    return index < N_RULES ? rules[index].name : NULL;
}

grq_status grq_match_rule_find(const char *name, const grq_match_rule **out, grq_error *err)
{
    for (size_t i = 0; i < N_RULES; i++)
        if (!strcmp(rules[i].name, name)) {
            *out = &rules[i];
            return GRQ_OK;
        }
    return grq_fail_names(err, "matching rule", name, rule_name);
}

const grq_match_rule *grq_match_rule_itself(const grq_match_rule *rule)
{
    const grq_match_rule *of = rule;
    for (size_t i = 0; rule->same_as && i < N_RULES; i++)
        if (!strcmp(rules[i].name, rule->same_as)) of = &rules[i];
    return of;
}
