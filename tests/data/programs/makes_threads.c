/* Threads that come and go. usage: THREADS AT_ONCE RANGES same|unique flat|nested; says on
 * stderr by how much the memory of the process grew after the first fifth. */
#include "guest.h"

static int each, unique, nested;

static long resident_kb(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        exit(die("/proc/self/statm"));
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void *work(void *number)
{
    char name[40] = "same";
    for (int i = 0; i < each; i++) {
        if (unique)
            snprintf(name, sizeof name, "%d of thread %ld", i, (long)number);
        nvtxRangePushA(name);
        if (nested)
            range("inner");
        nvtxRangePop();
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return 98;
    long threads = atol(argv[1]), early = 0, ended = 0;
    int at_once = atoi(argv[2]);
    each = atoi(argv[3]);
    unique = is(argv[4], "unique");
    nested = is(argv[5], "nested");
    pthread_t *id = calloc((size_t)at_once, sizeof *id);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    nvtxMarkA("main");
    while (ended < threads) {
        for (int i = 0; i < at_once; i++)
            if (pthread_create(&id[i], &small, work, (void *)(ended + i)))
                return die("pthread_create");
        for (int i = 0; i < at_once; i++)
            pthread_join(id[i], 0);
        ended += at_once;
        if (!early && ended >= threads / 5) {
            usleep(600000);
            early = resident_kb();
        }
        /* Gives the queues time to be emptied. */
        usleep(500);
    }
    usleep(600000);
    fprintf(stderr, "grew by %ld kB\n", resident_kb() - early);
    printf("%ld threads\n", ended);
    return 0;
}
