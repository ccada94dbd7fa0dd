/* Does an output say that it does not know? Counted beside scores, never part of one. */
#include "base/utf8.h"
#include "gaterq/match.h"
#include "qa/text_clean.h"

/* As triviaqa_official leaves them: no article, no punctuation. The first are how a refusal starts, the others are all
 * there is of one; a title may start like one, an answer is seldom all of one. */
static const char *const starts[] = {
    "i do not know",
    "i don t know",
    "i dont know",
    "i am not sure",
    "i m not sure",
    "i have no idea",
    "i do not have",
    "i don t have",
    "i am sorry",
    "i m sorry",
    "i cannot",
    "i can t",
    "i am unable",
    "i m unable",
    "as ai",
    "sorry i",
    "sorry but",
    "it is not known",
    "it is unknown",
    "answer is unknown",
    "answer is not known",
    "unable to",
    "cannot be determined",
    "there is no information",
    "not enough information",
};
static const char *const whole[] = { "unknown", "not known", "n a", "na", "idk", "no idea", "not sure", "no answer" };
static const char *const chinese[] = { "我不知道", "不知道",   "不清楚", "我不确定",
                                       "无法回答", "无法确定", "抱歉",   "对不起" };

static bool is_listed(const text_buffer *text)
{
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (!strcmp(text->text, whole[i])) return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const size_t n = strlen(starts[i]);
        if (!strncmp(text->text, starts[i], n) && (text->text[n] == ' ' || !text->text[n])) return true;
    }
    for (size_t i = 0; i < sizeof chinese / sizeof *chinese; i++)
        if (!strncmp(text->text, chinese[i], strlen(chinese[i]))) return true;
    return false;
}

grq_status grq_match_is_refusal(const char *output, bool *refusal, grq_error *err)
{
    const grq_match_cut *cut;
    text_buffer cleaned = { 0 };
    *refusal = false;
    if (!grq_utf8_valid(output)) return grq_fail(err, GRQ_E_DATA, "the output is not valid UTF-8");
    grq_status st = grq_match_cut_find("first_nonempty_line", &cut, err);
    if (st != GRQ_OK) return st;
    size_t n = strlen(output);
    cut->cut(&output, &n);
    if (grq_clean_triviaqa(output, n, &cleaned)) *refusal = is_listed(&cleaned);
    else st = grq_fail(err, GRQ_E_NOMEM, "no memory to look at an output");
    text_buffer_free(&cleaned);
    return st;
}
