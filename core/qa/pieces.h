/* core/qa/pieces.h - how text is split before byte-pair merges, so that no token crosses a word.
 *
 * The first rule that fits, at each place: "? A:", "Q:", ".\n", "\n"; an optional space and a run of letters; "'s" not
 * followed by a letter or digit; an optional space and one digit; an optional space and one character that is neither
 * letter, digit, underscore nor white space; any other single character. A byte that is not valid UTF-8 is a piece of
 * its own, so every byte string is covered. Source: specs/miniature-popqa.md. */
#ifndef GATERQ_PIECES_H
#define GATERQ_PIECES_H

#include <stddef.h>

/* A run of letters is cut here (between characters), so that a piece costs bounded time however long a "word" is. */
enum { PIECE_MAX_BYTES = 512 };

/* Bytes of the piece that starts at text[0], 1 to PIECE_MAX_BYTES; n > 0. */
size_t grq_piece_length(const char *text, size_t n);

#endif
