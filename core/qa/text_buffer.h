/* core/qa/text_buffer.h - a text that is made once per item and used again for the next, without a malloc each. */
#ifndef GATERQ_TEXT_BUFFER_H
#define GATERQ_TEXT_BUFFER_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *text; /* (room) NUL-terminated after every step; NULL before the first */
    size_t n, room;
} text_buffer;

/* Room for n_bytes and a NUL. What was there is lost when it grows. False when out of memory. */
static inline bool text_buffer_room(text_buffer *b, size_t n_bytes)
{
    if (n_bytes < b->room) return true;
    const size_t room = n_bytes + n_bytes / 2 + 64;
    free(b->text);
    b->n = 0;
    b->text = room > n_bytes ? malloc(room) : NULL;
    b->room = b->text ? room : 0;
    return b->text != NULL;
}

static inline bool text_buffer_set(text_buffer *b, const char *text, size_t n)
{
    if (!text_buffer_room(b, n)) return false;
    if (n) memcpy(b->text, text, n);
    b->text[n] = '\0';
    b->n = n;
    return true;
}

/* Only the n bytes from `from` on stay. */
static inline void text_buffer_keep(text_buffer *b, size_t from, size_t n)
{
    memmove(b->text, b->text + from, n);
    b->text[n] = '\0';
    b->n = n;
}

static inline void text_buffer_free(text_buffer *b)
{
    free(b->text);
    *b = (text_buffer){ 0 };
}

#endif
