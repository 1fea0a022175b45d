/* Loads and unloads the library that NVTX was told to load, more often than it may. */
#include "guest.h"

#include <dlfcn.h>

int main(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    /* Alone there is none: the C library is as good. */
    void *library = dlopen(path ? path : "libc.so.6", RTLD_NOW);
    printf("loaded: %d\n", library != 0);
    for (int i = 0; i < 10; i++)
        dlclose(dlopen(path ? path : "libc.so.6", RTLD_NOW));
    for (int i = 0; i < 3; i++)
        dlclose(library);
    ranges("after", 100);
    usleep(100000);
    puts("alive");
    return 0;
}
