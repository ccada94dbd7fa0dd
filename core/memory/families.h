/* memory/families.h - the texts of core/memory/families/<name>.json. */
#ifndef GATERQ_MEMORY_FAMILIES_H
#define GATERQ_MEMORY_FAMILIES_H

typedef struct {
    const char *name, *json;
} grq_family_text;

extern const grq_family_text grq_family_texts[]; /* ends with a NULL name */

#endif
