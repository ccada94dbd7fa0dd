#include "qa/text_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "gaterq/file.h"

static grq_status check(const char *path, const char *text, size_t n, grq_error *err)
{
    size_t line = 1;
    for (size_t at = 0, length; at < n; at += length) {
        length = grq_utf8_length(text + at, n - at);
        if (text[at] == '\0') return grq_fail(err, GRQ_E_DATA, "%s: line %zu holds a NUL byte", path, line);
        if (length == 0) return grq_fail(err, GRQ_E_DATA, "%s: line %zu is not valid UTF-8", path, line);
        line += text[at] == '\n';
    }
    return GRQ_OK;
}

grq_status grq_text_file_read(const char *path, char **text, size_t *n, grq_error *err)
{
    static const char MARK[] = "\xEF\xBB\xBF"; /* a byte order mark says nothing */
    *text = NULL;
    grq_status st = grq_file_read(path, 0, text, n, err);
    if (st != GRQ_OK) return st;
    st = check(path, *text, *n, err);
    if (st != GRQ_OK) {
        free(*text);
        *text = NULL;
        return st;
    }
    if (!strncmp(*text, MARK, sizeof MARK - 1)) {
        *n -= sizeof MARK - 1;
        memmove(*text, *text + sizeof MARK - 1, *n + 1);
    }
    return GRQ_OK;
}
