/* core/qa/id_list.h - lists of ids in messages. */
#ifndef GATERQ_ID_LIST_H
#define GATERQ_ID_LIST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ID_LIST_BYTES = 512 };

/* "a, b, c and 12 more": at most 10 of the ids for which `bad` is set. */
static inline void id_list(const char *const *ids, const bool *bad, size_t n, char text[ID_LIST_BYTES])
{
    size_t shown = 0, left = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (!bad[i]) continue;
        const size_t used = strlen(text);
        if (shown++ < 10) snprintf(text + used, ID_LIST_BYTES - 32 - used, "%s%.40s", used ? ", " : "", ids[i]);
        else left++;
    }
    const size_t used = strlen(text);
    if (left) snprintf(text + used, ID_LIST_BYTES - used, " and %zu more", left);
}

#endif
