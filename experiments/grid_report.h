/* experiments/grid_report.h - the report of a folder of scored predictions (cells.h). */
#ifndef GATERQ_GRID_REPORT_H
#define GATERQ_GRID_REPORT_H

#include "tool.h"

/* Writes report.md, table-accuracy.csv, table-significance.csv and files.csv into `out`. family_path NULL: the paper's,
 * experiments/configs/table-significance.json. */
grq_status grid_report(tool_context *tool, const char *folder, const char *family_path, const char *out,
                       grq_error *err);
bool grid_report_is_for(const char *folder); /* it holds a predictions.json */

#endif
