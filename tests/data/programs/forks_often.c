/* Forks as often as the first argument says; every child records a range. usage: CHILDREN
 * [quiet|marks|threads [at once]]: the parent records nothing, something before, or names all
 * the time in threads; it waits for each child, or for all when all are there. */
#include "guest.h"

static volatile int stop;

static void *names(void *number)
{
    char name[32];
    for (unsigned i = 0; !stop; i++) {
        snprintf(name, sizeof name, "name %u of %ld", i % 3000, (long)number);
        range(name);
        /* Leaves the others a turn. */
        if (i % 100 == 0)
            usleep(100);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int children = argc > 1 ? atoi(argv[1]) : 50, well = 0, status;
    int busy = argc > 2 && is(argv[2], "threads"), at_once = argc > 3;
    pthread_t threads[3];
    if (argc > 2 && !is(argv[2], "quiet"))
        nvtxMarkA("parent");
    for (long i = 0; busy && i < 3; i++)
        pthread_create(&threads[i], 0, names, (void *)i);
    for (int i = 0; i < children; i++) {
        pid_t pid = fork();
        if (!pid) {
            range("child");
            if (i % 2)
                _exit(0);
            exit(0);
        }
        if (!at_once)
            well += pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
    }
    while (at_once && wait(&status) > 0)
        well += status == 0;
    stop = 1;
    for (int i = 0; busy && i < 3; i++)
        pthread_join(threads[i], 0);
    printf("%d of %d ended well\n", well, children);
    return 0;
}
