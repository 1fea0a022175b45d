/* A preloaded library in which writes to high descriptors, where those of a recording lie,
 * fail after a while (REFUSE_WRITES_AFTER) or write a part only (SHORTEN_WRITES). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define HIGH 700

typedef ssize_t write_at(int, const void *, size_t, off64_t);

ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset)
{
    static write_at *real;
    static int writes;
    const char *after = getenv("REFUSE_WRITES_AFTER");
    if (!real)
        real = (write_at *)dlsym(RTLD_NEXT, "pwrite64");
    if (fd >= HIGH && after && ++writes > atoi(after)) {
        errno = EIO;
        return -1;
    }
    if (fd >= HIGH && size > 3 && getenv("SHORTEN_WRITES"))
        size /= 3;
    return real(fd, buffer, size, offset);
}
