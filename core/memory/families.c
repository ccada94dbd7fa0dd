/* The released geometries: the JSON files of core/memory/families, compiled in (cmake/families.cmake). */
#include <stdio.h>
#include <string.h>

#include "gaterq/geometry.h"
#include "memory/families.h"

grq_status grq_geometry_family(const char *name, grq_geometry *out, grq_error *err)
{
    char known[256] = "";
    for (const grq_family_text *f = grq_family_texts; f->name; f++) {
        if (!strcmp(f->name, name)) {
            grq_json *document = NULL;
            grq_status st = grq_json_parse(f->name, f->json, strlen(f->json), &document, err);
            if (st == GRQ_OK) st = grq_geometry_read(grq_json_root(document), out, err);
            grq_json_close(document);
            return st;
        }
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", f->name);
    }
    return grq_fail(err, GRQ_E_USAGE, "family \"%s\" is not known; known: %s", name, known);
}
