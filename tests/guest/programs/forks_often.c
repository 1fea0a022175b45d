/* Forks as often as the argument says; every child records a range. With a second argument
 * the parent has recorded something before, and its threads record names all the time. */
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
    int children = argc > 1 ? atoi(argv[1]) : 50, well = 0;
    pthread_t threads[3];
    if (argc > 2) {
        nvtxMarkA("parent");
        for (long i = 0; i < 3; i++)
            pthread_create(&threads[i], 0, names, (void *)i);
    }
    for (int i = 0; i < children; i++) {
        pid_t pid = fork();
        if (!pid) {
            range("child");
            if (i % 2)
                _exit(0);
            exit(0);
        }
        int status;
        well += pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
    }
    stop = 1;
    for (int i = 0; argc > 2 && i < 3; i++)
        pthread_join(threads[i], 0);
    printf("%d of %d ended well\n", well, children);
    return 0;
}
