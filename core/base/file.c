#include "gaterq/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

struct grq_outfile {
    FILE *stream;
    char *path;      /* final name, links resolved */
    char *temporary; /* beside it */
};

enum {
    MOST_FROM_A_DEVICE = 1 << 28,
    FIRST_READ_BYTES = 64 * 1024, /* for pipes and files of the kernel, whose size says nothing */
    WRITER_TRIES = 200,           /* 10 ms apart: how long a pipe may wait for its first writer */
};

/* ---- in ------------------------------------------------------------------------------------------------------ */

static grq_status too_large(const char *path, size_t max_bytes, grq_error *err)
{
    return grq_fail(err, GRQ_E_DATA, "%s: larger than the %zu bytes that are allowed here", path, max_bytes);
}

/* read() of a descriptor opened with O_NONBLOCK, which waits all the same once there is something to wait for. A pipe
 * that nobody has open for writing gives 0 bytes at once, so a first writer gets a little time to come. */
static ssize_t read_some(int fd, bool is_pipe, void *to, size_t n)
{
    for (int tries = 0;;) {
        const ssize_t got = read(fd, to, n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1);
            is_pipe = false; /* somebody writes: an end is the end */
            continue;
        }
        if (got != 0 || !is_pipe || tries++ == WRITER_TRIES) return got;
        nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
    }
}

/* Reads to the end, since a size asked for beforehand may be 0 (pipes, /proc) or grow meanwhile. */
static grq_status read_to_end(int fd, const char *path, bool is_pipe, size_t max_bytes, size_t expected, char **bytes,
                              size_t *n_bytes, grq_error *err)
{
    size_t room = expected + 1, n = 0; /* the extra byte lets a read see the end without growing, and becomes the NUL */
    char *text = malloc(room);
    grq_status st = text ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "%s: no memory for %zu bytes", path, room);
    while (st == GRQ_OK) {
        if (n == room) {
            char *const more = room <= SIZE_MAX / 2 ? realloc(text, room * 2) : NULL;
            if (!more) {
                st = grq_fail(err, GRQ_E_NOMEM, "%s: no memory for more than %zu bytes", path, room);
                break;
            }
            text = more;
            room *= 2;
        }
        const ssize_t got = read_some(fd, is_pipe && n == 0, text + n, room - n);
        if (got < 0) st = grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
        if (got <= 0) break;
        n += (size_t)got;
        if (max_bytes && n > max_bytes) st = too_large(path, max_bytes, err);
    }
    if (st != GRQ_OK) {
        free(text);
        return st;
    }
    text[n] = '\0'; /* n < room: the read that saw the end had room left */
    *bytes = text;
    *n_bytes = n;
    return GRQ_OK;
}

grq_status grq_file_read(const char *path, size_t max_bytes, char **bytes, size_t *n_bytes, grq_error *err)
{
    *bytes = NULL;
    *n_bytes = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not wait for ever */
    if (fd < 0) return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    struct stat info;
    grq_status st = fstat(fd, &info) == 0 ? GRQ_OK : grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    if (st == GRQ_OK && S_ISDIR(info.st_mode)) st = grq_fail(err, GRQ_E_IO, "%s: is a folder, not a file", path);
    size_t expected = FIRST_READ_BYTES;
    if (st == GRQ_OK && S_ISREG(info.st_mode) && info.st_size > 0) {
        expected = (size_t)info.st_size;
        if (max_bytes && expected > max_bytes) st = too_large(path, max_bytes, err);
    }
    /* A device may never end (/dev/full): nothing but a regular file is read without a limit. */
    const size_t limit = !max_bytes && !S_ISREG(info.st_mode) ? MOST_FROM_A_DEVICE : max_bytes;
    const bool is_pipe = st == GRQ_OK && S_ISFIFO(info.st_mode);
    if (st == GRQ_OK) st = read_to_end(fd, path, is_pipe, limit, expected, bytes, n_bytes, err);
    close(fd);
    if (st == GRQ_OK && is_pipe && *n_bytes == 0) {
        free(*bytes);
        *bytes = NULL;
        st = grq_fail(err, GRQ_E_IO, "%s: a pipe that nothing was written to", path);
    }
    return st;
}

/* ---- out ----------------------------------------------------------------------------------------------------- */

/* Refuses what a rename must not replace: a folder, a device (/dev/null!), a pipe. Follows links, so that a link to a
 * file stays a link. On GRQ_OK the caller frees *target. */
grq_status grq_output_name(const char *path, char **target, grq_error *err)
{
    *target = NULL;
    if (!*path) return grq_fail(err, GRQ_E_USAGE, "the name of the file to write is empty");
    struct stat info;
    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode)) return grq_fail(err, GRQ_E_IO, "%s: is a folder; name a file to write", path);
        if (!S_ISREG(info.st_mode))
            return grq_fail(err, GRQ_E_IO, "%s: is not a regular file and cannot be replaced by one", path);
        *target = realpath(path, NULL);
    } else if (errno == ENOENT) {
        *target = strdup(path);
    } else {
        return grq_fail(err, GRQ_E_IO, "%s: %s", path, strerror(errno));
    }
    return *target ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "%s: %s", path, strerror(errno));
}

/* The counter keeps two writers of one process apart. The caller frees the name; NULL when out of memory. */
static char *temporary_beside(const char *target)
{
    static atomic_uint count;
    char *name;
    const unsigned number = atomic_fetch_add(&count, 1);
    return asprintf(&name, "%s.tmp-%ld-%u", target, (long)getpid(), number) < 0 ? NULL : name;
}

grq_status grq_temporary_name(const char *path, char **temporary, grq_error *err)
{
    *temporary = NULL;
    char *target;
    const grq_status st = grq_output_name(path, &target, err);
    if (st != GRQ_OK) return st;
    *temporary = temporary_beside(target);
    free(target);
    return *temporary ? GRQ_OK : grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a temporary name", path);
}

grq_status grq_outfile_open(const char *path, grq_outfile **out, grq_error *err)
{
    *out = NULL;
    grq_outfile *file = calloc(1, sizeof *file);
    if (!file) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for an output file", path);
    grq_status st = grq_output_name(path, &file->path, err);
    if (st == GRQ_OK && !(file->temporary = temporary_beside(file->path)))
        st = grq_fail(err, GRQ_E_NOMEM, "%s: no memory for a temporary name", path);
    if (st == GRQ_OK) {
        unlink(file->temporary); /* a leftover of a killed process that had our number */
        const int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 && !(file->stream = fdopen(fd, "wb"))) {
            const int reason = errno;
            close(fd);
            unlink(file->temporary);
            errno = reason;
        }
        if (!file->stream) st = grq_fail(err, GRQ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    if (st == GRQ_OK) *out = file;
    else grq_outfile_discard(file);
    return st;
}

FILE *grq_outfile_stream(grq_outfile *file)
{
    return file->stream;
}

const char *grq_outfile_temporary(const grq_outfile *file)
{
    return file->temporary;
}

static void free_outfile(grq_outfile *file)
{
    free(file->path);
    free(file->temporary);
    free(file);
}

void grq_outfile_discard(grq_outfile *file)
{
    if (!file) return;
    if (file->stream) {
        fclose(file->stream);
        unlink(file->temporary);
    }
    free_outfile(file);
}

/* Names the reason a write fell short; `reason` 0 when stdio noticed it earlier and errno is gone. */
static grq_status short_write(const char *path, int reason, grq_error *err)
{
    struct statvfs disk;
    char *folder = strdup(path);
    char *const slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) slash[1] = '\0';
    const bool known = statvfs(slash ? folder : ".", &disk) == 0;
    const uint64_t n_free = known ? (uint64_t)disk.f_bavail * disk.f_frsize : 0;
    free(folder);
    const char *const why = reason ? strerror(reason) : "a write fell short";
    if (!known) return grq_fail(err, GRQ_E_IO, "%s: not written: %s", path, why);
    return grq_fail(err, GRQ_E_IO, "%s: not written: %s (%" PRIu64 " bytes are free there)", path, why, n_free);
}

/* So that the new name survives a power cut. File systems that cannot sync a folder say EINVAL; folders we may enter
 * but not list refuse the open. Neither makes the file incomplete. */
static grq_status sync_folder_of(const char *path, grq_error *err)
{
    char *folder = strdup(path);
    if (!folder) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its folder's name", path);
    char *const slash = strrchr(folder, '/');
    if (slash) slash[1] = '\0';
    const int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    grq_status st = GRQ_OK;
    if (fd >= 0) {
        if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
            st = grq_fail(err, GRQ_E_IO, "%s: its folder could not be synced: %s", path, strerror(errno));
        close(fd);
    }
    free(folder);
    return st;
}

grq_status grq_rename_synced(const char *temporary, const char *path, grq_error *err)
{
    if (rename(temporary, path) != 0)
        return grq_fail(err, GRQ_E_IO, "%s: cannot be put in place: %s", path, strerror(errno));
    return sync_folder_of(path, err);
}

grq_status grq_outfile_commit(grq_outfile *file, grq_error *err)
{
    if (!file) return GRQ_OK;
    /* A failed fflush keeps its bytes, so trying again after an earlier failure gives the reason back. */
    int reason = fflush(file->stream) == 0 ? 0 : errno;
    bool written = reason == 0 && !ferror(file->stream);
    if (written && fsync(fileno(file->stream)) != 0 && errno != EINVAL) {
        reason = errno;
        written = false;
    }
    if (fclose(file->stream) != 0 && written) { /* network file systems report here */
        reason = errno;
        written = false;
    }
    grq_status st =
        written ? grq_rename_synced(file->temporary, file->path, err) : short_write(file->path, reason, err);
    if (st != GRQ_OK) unlink(file->temporary);
    free_outfile(file);
    return st;
}

grq_status grq_rename_into_place(const char *temporary, const char *path, grq_error *err)
{
    char *target = NULL;
    grq_status st = grq_output_name(path, &target, err);
    if (st == GRQ_OK) {
        const int fd = open(temporary, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) st = short_write(path, errno, err);
        if (fd >= 0) close(fd);
    }
    if (st == GRQ_OK) st = grq_rename_synced(temporary, target, err);
    if (st != GRQ_OK) unlink(temporary);
    free(target);
    return st;
}

/* ---- names --------------------------------------------------------------------------------------------------- */

bool grq_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static grq_status make_directory(const char *path, grq_error *err)
{
    if (mkdir(path, 0777) == 0) return GRQ_OK;
    const int reason = errno; /* EEXIST, but also EROFS or EACCES for folders that are there already */
    struct stat info;
    if (stat(path, &info) != 0) return grq_fail(err, GRQ_E_IO, "%s: cannot be made: %s", path, strerror(reason));
    if (!S_ISDIR(info.st_mode)) return grq_fail(err, GRQ_E_IO, "%s: is a file where a folder is needed", path);
    return GRQ_OK;
}

grq_status grq_make_directories(const char *path, grq_error *err)
{
    if (!*path) return grq_fail(err, GRQ_E_USAGE, "the name of the folder to make is empty");
    char *part = strdup(path);
    if (!part) return grq_fail(err, GRQ_E_NOMEM, "%s: no memory for its name", path);
    grq_status st = GRQ_OK;
    for (char *slash = strchr(part + 1, '/'); slash && st == GRQ_OK; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        st = make_directory(part, err);
        *slash = '/';
    }
    if (st == GRQ_OK) st = make_directory(part, err);
    free(part);
    return st;
}

char *grq_path_join(const char *folder, const char *name)
{
    const size_t n = strlen(folder);
    const char *const between = n == 0 || folder[n - 1] == '/' ? "" : "/";
    char *path;
    return asprintf(&path, "%s%s%s", folder, between, name) < 0 ? NULL : path;
}
