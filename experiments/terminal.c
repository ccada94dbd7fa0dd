#include "terminal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_requested;

static struct {
    const bool *quiet;
    char stage[48];
    uint64_t first_done; /* what was done when this stage was first seen: a resumed stage must not inflate the rate */
    double started, drawn;
    bool on_terminal, line_open;
} line;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void on_signal(int number)
{
    (void)number;
    if (stop_requested) _exit(130);
    stop_requested = 1;
}

static int asked_to_stop(void *context)
{
    (void)context;
    return stop_requested;
}

static void format_count(char *to, size_t room, double n)
{
    if (n >= 1e9) snprintf(to, room, "%.2f G ", n * 1e-9);
    else if (n >= 1e6) snprintf(to, room, "%.2f M ", n * 1e-6);
    else if (n >= 1e4) snprintf(to, room, "%.1f k ", n * 1e-3);
    else snprintf(to, room, "%.0f ", n);
}

static void format_time(char *to, size_t room, double seconds)
{
    const long s = (long)(seconds + 0.5);
    if (s >= 3600) snprintf(to, room, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else snprintf(to, room, "%ld:%02ld", s / 60, s % 60);
}

static void draw(const char *stage, uint64_t done, uint64_t total, const char *unit, const char *detail, double t)
{
    char n_done[24], n_total[24], rate[24], left[24] = "?";
    const double per_second = t > line.started ? (double)(done - line.first_done) / (t - line.started) : 0;
    format_count(n_done, sizeof n_done, (double)done);
    format_count(n_total, sizeof n_total, (double)total);
    format_count(rate, sizeof rate, per_second);
    if (per_second > 0) format_time(left, sizeof left, (double)(total - done) / per_second);
    fprintf(stderr, "%s%s  %3.0f %%  %sof %s%s  %s%s/s  %s left%s%s%s", line.on_terminal ? "\r\033[K" : "", stage,
            total ? 100.0 * (double)done / (double)total : 100.0, n_done, n_total, unit, rate, unit, left,
            detail ? "  " : "", detail ? detail : "", line.on_terminal ? "" : "\n");
    fflush(stderr);
    line.line_open = line.on_terminal;
}

static void report(void *context, const char *stage, uint64_t done, uint64_t total, const char *unit,
                   const char *detail)
{
    (void)context;
    if (*line.quiet) return;
    const double t = now();
    const bool new_stage = strncmp(stage, line.stage, sizeof line.stage - 1) != 0 || done < line.first_done;
    if (new_stage) {
        terminal_end_line();
        snprintf(line.stage, sizeof line.stage, "%s", stage);
        line.first_done = done;
        line.started = line.drawn = t;
        if (!line.on_terminal) return; /* the first line comes with a rate */
    }
    const bool finished = done >= total;
    if (!new_stage && !finished && t - line.drawn < (line.on_terminal ? 0.2 : 10)) return;
    line.drawn = t;
    if (done > total) total = done;
    draw(stage, done, total, unit, detail, t);
    if (finished) {
        terminal_end_line();
        line.stage[0] = '\0';
    }
}

void terminal_end_line(void)
{
    if (line.line_open) fputc('\n', stderr);
    line.line_open = false;
}

void terminal_start(grq_progress *progress, const bool *quiet)
{
    line.quiet = quiet;
    line.on_terminal = isatty(STDERR_FILENO);
    struct sigaction action = { .sa_handler = on_signal };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit is a failed write with a message, not a death */
    *progress = (grq_progress){ .report = report, .stop_requested = asked_to_stop };
}
