/* qa/prompt_layout.h - how a prompt is put together: heading, then shots and the query in one form.
 *
 *   heading  question mark? choices? answer shot_gap ANSWER between ... question mark? choices? answer */
#ifndef GATERQ_QA_PROMPT_LAYOUT_H
#define GATERQ_QA_PROMPT_LAYOUT_H

#include "gaterq/prompts.h"

typedef enum { NO_MARK, ALWAYS_MARK } question_mark; /* a "?" behind the question, also where it has one */

typedef struct grq_prompt_layout {
    const char *heading; /* "%s" stands for the subject's name; NULL: none */
    bool heading_each;   /* before every shot too */
    const char *question, *answer;
    const char *shot_gap, *between; /* before a shot's answer, and behind it */
    question_mark mark;
    bool trim;             /* white space around the question goes */
    bool choices;          /* lines "A. ..." to "D. ..." behind the question */
    bool detokenise_shots; /* words "," and "." lose the space before them */
    bool first_alias;      /* shots show aliases[0] where the file has aliases */
} grq_prompt_layout;

#endif
