/* core/qa/choice_text.h - the letter of a chat answer, or "" where there is none.
 * Source: specs/evaluation-protocols.md section 5. */
#ifndef GATERQ_CHOICE_TEXT_H
#define GATERQ_CHOICE_TEXT_H

#include "qa/text_clean.h"

text_step grq_choice_cmmlu;         /* CMMLU's patterns; where it would draw a letter at random there is none */
text_step grq_choice_first_capital; /* OpenCompass: the first capital letter of any script */

#endif
