/* core/qa/text_case.h - lower() and capitalize() with Python's meaning, which the published metrics rely on.
 *
 * Full Unicode mappings without locale: a capital I with dot becomes two characters, a capital sigma at the end of a
 * word becomes the final one; capitalize() title-cases the first character and lower-cases all others. Broken bytes
 * pass. */
#ifndef GATERQ_TEXT_CASE_H
#define GATERQ_TEXT_CASE_H

/* The caller frees; NULL when out of memory. */
char *grq_text_lower(const char *text);
char *grq_text_capitalize(const char *text);

#endif
