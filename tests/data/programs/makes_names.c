/* As many names as the argument says, and what else can be made and thrown away. */
#include "guest.h"

static long resident_kb(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        exit(die("/proc/self/statm"));
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void make(const char *what, long number)
{
    char name[40];
    snprintf(name, sizeof name, "name %ld", number);
    if (is(what, "ranges")) {
        nvtxRangePushA(name);
        range("inner");
        nvtxRangePop();
    } else if (is(what, "domains")) {
        nvtxDomainDestroy(nvtxDomainCreateA("domain"));
        nvtxMarkA("mark");
    } else if (is(what, "strings")) {
        nvtxDomainHandle_t domain = nvtxDomainCreateA("strings");
        nvtxDomainRegisterStringA(domain, name);
        nvtxMarkA("mark");
    } else if (is(what, "open ranges")) {
        nvtxRangeStartA("open");
    } else if (is(what, "open pushes")) {
        nvtxRangePushA("never popped");
    } else if (is(what, "thread names")) {
        nvtxNameOsThreadA((uint32_t)gettid(), name);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 98;
    long count = atol(argv[2]), early = 0;
    for (long i = 0; i < count; i++) {
        make(argv[1], i);
        if (i == count / 5)
            early = resident_kb();
        if (i % 100 == 0)
            usleep(500);
    }
    fprintf(stderr, "grew by %ld kB\n", resident_kb() - early);
    printf("%ld %s\n", count, argv[1]);
    return 0;
}
