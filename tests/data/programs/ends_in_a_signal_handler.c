/* A signal interrupts allocations, new names or output; its handler calls _exit, or becomes
 * another program. usage: MILLISECONDS malloc|names|printf _exit|exec|abort */
#include "guest.h"

#include <sys/time.h>

static const char *end;

static void handle(int signal)
{
    (void)signal;
    if (is(end, "_exit"))
        _exit(3);
    if (is(end, "abort"))
        abort();
    char *args[] = {"sh", "-c", "exit 3", 0};
    execv("/bin/sh", args);
    _exit(4);
}

static void allocate(void)
{
    static char *blocks[64];
    for (unsigned i = 0;; i++) {
        char **block = &blocks[i % 64];
        free(*block);
        *block = malloc(2000 + i % 60000);
        **(volatile char **)block = 1;
    }
}

static void invent_names(void)
{
    char name[32];
    for (unsigned i = 0;; i++) {
        snprintf(name, sizeof name, "name %u", i);
        range(name);
    }
}

static void print(void)
{
    for (unsigned i = 0;; i++) {
        fputc('x', stderr);
        if (i % 1000 == 0)
            fflush(stderr);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 98;
    int time = atoi(argv[1]);
    end = argv[3];
    nvtxMarkA("start");
    signal(SIGALRM, handle);
    struct itimerval once = {{0, 0}, {time / 1000, time % 1000 * 1000}};
    setitimer(ITIMER_REAL, &once, 0);
    if (is(argv[2], "malloc"))
        allocate();
    if (is(argv[2], "names"))
        invent_names();
    freopen("/dev/null", "w", stderr);
    print();
}
