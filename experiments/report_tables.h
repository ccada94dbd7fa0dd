/* experiments/report_tables.h - the tables of a report, from a run's JSON files. */
#ifndef GATERQ_REPORT_TABLES_H
#define GATERQ_REPORT_TABLES_H

#include "results.h"
#include "table.h"

/* Each fills `out` (table_free it) for one variant of the run; cells are formatted for people. */
grq_status report_accuracy(results *run, const char *variant, table *out, grq_error *err);
grq_status report_comparisons(results *run, const char *variant, table *out, grq_error *err);
grq_status report_captured(results *run, const char *variant, table *out, grq_error *err);
grq_status report_correlation(results *run, const char *variant, table *out, grq_error *err);
grq_status report_profile(results *run, const char *variant, table *out, grq_error *err);
grq_status report_distortion(results *run, const char *variant, table *out, grq_error *err);

/* Numbers for the figures, in fractions: accuracy.csv, curve.csv, gate-by-frequency.csv in the variant's folder. */
grq_status report_figure_data(results *run, const char *folder, const char *variant, grq_error *err);

#endif
