/* experiments/cells.h - a folder of scored predictions and its manifest, predictions.json: which file holds which cell
 * of the grid. Layout: docs/format.md. */
#ifndef GATERQ_CELLS_H
#define GATERQ_CELLS_H

#include "grid.h"
#include "scored.h"

/* NULL: none. Encoder: none for the full table and zeroes; budget: of orderings only. */
typedef struct {
    const char *model, *encoder, *budget, *ordering, *suite;
} cell_key;

typedef struct {
    cell_key key;
    const char *file, *data;
} cell_entry;

typedef struct {
    cell_key key; /* NULL matches everything */
    const char *reason;
} cell_not_run;

typedef struct {
    char *folder;
    grq_json *document; /* owns the texts */
    const char *title, *about;
    const char *grid; /* a config in the folder that holds the grid; NULL: the paper's */
    bool miniature;
    size_t n, n_not_run;
    cell_entry *entries;
    cell_not_run *not_run;
    scored_set files;
} cells;

/* Reads the manifest, not yet the files. */
grq_status cells_open(const char *folder, cells *out, grq_error *err);
/* Every name must be one of the grid's, and no cell may be there twice. */
grq_status cells_check(const cells *c, const grid *g, grq_error *err);
/* The scored file of a cell. A cell that was not run gives *out NULL and the reason; a file that is there but not
 * scored, of another suite or broken is GRQ_E_DATA. */
enum { CELL_REASON_BYTES = 400 };
grq_status cells_get(cells *c, const cell_key *key, const scored_file **out, char reason[CELL_REASON_BYTES],
                     grq_error *err);
void cells_close(cells *c);

#endif
