/* core/qa/names.h - an unknown name, refused with the names there are. */
#ifndef GATERQ_QA_NAMES_H
#define GATERQ_QA_NAMES_H

#include <stdio.h>
#include <string.h>

#include "gaterq/status.h"

/* `name_at` gives the names in order, NULL past the end. */
static inline grq_status grq_fail_names(grq_error *err, const char *what, const char *name,
                                        const char *(*name_at)(size_t index))
{
    char list[GRQ_ERROR_BYTES] = "";
    for (size_t i = 0, used = 0; name_at(i) && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", name_at(i));
    return grq_fail(err, GRQ_E_USAGE, "%s \"%.60s\" is not known; there are: %s", what, name, list);
}

#endif
