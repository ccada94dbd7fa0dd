#include "gaterq/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(char *to, size_t room, const char *format, va_list args)
{
    const int n = vsnprintf(to, room, format, args);
    if (n < 0) snprintf(to, room, "(message could not be formatted)");
    else if ((size_t)n >= room) memcpy(to + room - 4, "...", 4);
}

grq_status grq_fail(grq_error *err, grq_status status, const char *format, ...)
{
    if (!err) return status;
    err->status = status;
    /* The format's arguments may point into err->message itself, so the text is made elsewhere first. */
    char text[GRQ_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    put(text, sizeof text, format, args);
    va_end(args);
    memcpy(err->message, text, sizeof text);
    return status;
}

grq_status grq_fail_prefix(grq_error *err, grq_status status, const char *format, ...)
{
    if (!err) return status;
    char prefix[GRQ_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    put(prefix, sizeof prefix, format, args);
    va_end(args);
    return grq_fail(err, err->status, "%s: %s", prefix, err->message);
}

grq_status grq_config_status(grq_status status, grq_error *err)
{
    if (status != GRQ_E_DATA) return status;
    if (err) err->status = GRQ_E_USAGE;
    return GRQ_E_USAGE;
}

int grq_status_exit_code(grq_status status)
{
    switch (status) {
    case GRQ_OK: return 0;
    case GRQ_E_CHECK: return 1;
    case GRQ_E_USAGE: return 2;
    case GRQ_E_IO:
    case GRQ_E_DATA:
    case GRQ_E_NOMEM: return 3;
    case GRQ_E_DEVICE: return 4;
    case GRQ_E_INTERRUPTED: return 130;
    }
    return 3;
}
