/* gaterq bench encode, gaterq bench decode: the speed of the encoders. */
#ifndef GATERQ_BENCH_CODEC_H
#define GATERQ_BENCH_CODEC_H

#include "tool.h"

grq_status bench_encode(tool_context *tool, double seconds, grq_error *err);
grq_status bench_decode(tool_context *tool, double seconds, grq_error *err);

#endif
