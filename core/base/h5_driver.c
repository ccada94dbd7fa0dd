/* The driver beneath files being written. HDF5 1.10 does not survive a write that fails while a file is closed: it
 * keeps a freed file in its tables and crashes at exit. So this driver never tells: it remembers the reason, drops what
 * comes after it, and grq_h5_* ask for the reason once HDF5 has returned. The file is then discarded, so what it lacks
 * does not matter. Otherwise it does what HDF5's own driver for POSIX files does. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/h5_internal.h"

typedef struct {
    H5FD_t base; /* HDF5's part; first */
    int fd;
    int *reason; /* the grq_h5's; 0 while all is well */
    haddr_t end_of_allocation, end_of_file;
} driver_file;

typedef struct {
    int *reason;
} driver_settings;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t max_address)
{
    (void)flags, (void)max_address; /* always a new file */
    const driver_settings *const settings = H5Pget_driver_info(access);
    driver_file *const f = settings ? calloc(1, sizeof *f) : NULL;
    if (!f) return NULL;
    f->reason = settings->reason;
    f->fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->fd >= 0) return &f->base;
    *f->reason = errno;
    free(f);
    return NULL;
}

static herr_t driver_close(H5FD_t *file)
{
    driver_file *const f = (driver_file *)file;
    if (close(f->fd) != 0 && *f->reason == 0) *f->reason = errno; /* network file systems report here */
    free(f);
    return 0;
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b)
{
    return a < b ? -1 : a > b; /* every open file has a temporary name of its own */
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const driver_file *)file)->end_of_allocation;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t address)
{
    (void)type;
    ((driver_file *)file)->end_of_allocation = address;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const driver_file *)file)->end_of_file;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size, void *buffer)
{
    (void)type, (void)transfer;
    const driver_file *const f = (const driver_file *)file;
    char *to = buffer;
    while (size > 0) {
        const ssize_t n = pread(f->fd, to, size, (off_t)address);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        to += n;
        address += (haddr_t)n;
        size -= (size_t)n;
    }
    memset(to, 0, size); /* beyond the end of the file, or never written for want of room */
    return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
                           const void *buffer)
{
    (void)type, (void)transfer;
    driver_file *const f = (driver_file *)file;
    if (address + size > f->end_of_file) f->end_of_file = address + size;
    const char *from = buffer;
    while (size > 0 && *f->reason == 0) {
        const ssize_t n = pwrite(f->fd, from, size, (off_t)address);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) *f->reason = errno;
        else if (n == 0) *f->reason = ENOSPC;
        else {
            from += n;
            address += (haddr_t)n;
            size -= (size_t)n;
        }
    }
    return 0;
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
    (void)transfer, (void)closing;
    driver_file *const f = (driver_file *)file;
    if (f->end_of_allocation == f->end_of_file) return 0;
    if (*f->reason == 0 && ftruncate(f->fd, (off_t)f->end_of_allocation) != 0) *f->reason = errno;
    f->end_of_file = f->end_of_allocation;
    return 0;
}

static const H5FD_class_t driver = {
#ifdef H5FD_CLASS_VERSION /* HDF5 1.14 */
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* from the range for private use */
#endif
    .name = "gaterq",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(driver_settings),
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_compare,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* The registration stays for the life of the process: HDF5 1.10 reads its driver's table once more after giving it up
 * when a file closes. Asked for anew when HDF5 was shut down in between. */
bool grq_h5_use_driver(hid_t access, int *reason)
{
    static hid_t id = H5I_INVALID_HID;
    if (H5Iget_type(id) != H5I_VFL) id = H5FDregister(&driver);
    const driver_settings settings = { reason };
    return id >= 0 && H5Pset_driver(access, id, &settings) >= 0;
}
