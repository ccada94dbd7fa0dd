#include "fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int fuzz_accepted;

void fuzz_broken(const char *file, int line, const char *sentence)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, sentence);
    abort();
}

const char *fuzz_file(const void *bytes, size_t n_bytes)
{
    static char path[64];
    static int fd = -1;
    if (fd >= 0) close(fd); /* a new one each time: whoever still maps the old one keeps it */
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0) fuzz_broken(__FILE__, __LINE__, strerror(errno));
    for (size_t at = 0; at < n_bytes;) {
        const ssize_t n = write(fd, (const char *)bytes + at, n_bytes - at);
        if (n <= 0) fuzz_broken(__FILE__, __LINE__, strerror(errno));
        at += (size_t)n;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static char path_name[256];

static void remove_path(void)
{
    unlink(path_name);
}

const char *fuzz_path(void)
{
    if (path_name[0]) return path_name;
    const char *const chosen = getenv("TMPDIR");
    const char *const folder = chosen && *chosen ? chosen : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    if ((size_t)snprintf(path_name, sizeof path_name, "%s/gaterq-fuzz-XXXXXX", folder) >= sizeof path_name)
        fuzz_broken(__FILE__, __LINE__, "the name of the folder for temporary files is too long");
    const int fd = mkstemp(path_name);
    if (fd < 0) fuzz_broken(__FILE__, __LINE__, strerror(errno));
    close(fd);
    atexit(remove_path);
    return path_name;
}

static volatile unsigned touched;

void fuzz_touch(const void *bytes, size_t n_bytes)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n_bytes; i++) sum += ((const unsigned char *)bytes)[i];
    touched = sum;
}

void fuzz_touch_ends(const void *bytes, size_t n_bytes)
{
    if (n_bytes == 0) return;
    fuzz_touch(bytes, 1);
    fuzz_touch((const char *)bytes + n_bytes - 1, 1);
}

void fuzz_refused(grq_status status, const grq_error *err)
{
    fuzz_require(status == GRQ_E_DATA || status == GRQ_E_IO || status == GRQ_E_NOMEM || status == GRQ_E_USAGE,
                 "a status that is not one of reading a file");
    fuzz_require(err->status == status, "the error has another status than the one returned");
    fuzz_require(memchr(err->message, '\0', sizeof err->message) != NULL, "the message has no end");
    fuzz_require(err->message[0] != '\0', "a failure without a message");
}
