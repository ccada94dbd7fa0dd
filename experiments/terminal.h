/* experiments/terminal.h - the progress line on stderr, and Ctrl-C. */
#ifndef GATERQ_TERMINAL_H
#define GATERQ_TERMINAL_H

#include <stdbool.h>

#include "gaterq/progress.h"

/* Draws "stage  41 %  4.1 M of 10.0 M tokens  27.9 k/s  3:31 left  detail" and lets the first Ctrl-C (or SIGTERM) ask
 * the work to stop; the second one ends the process at once. On a terminal the line is redrawn, elsewhere a new line is
 * written every 10 seconds. `quiet` (may change later) switches drawing off. */
void terminal_start(grq_progress *progress, const bool *quiet);
/* Ends an open progress line, before anything else is written to stderr or stdout. */
void terminal_end_line(void);

#endif
