/* Has the defect that the sanitizer of this name finds: address or thread. */
#include "guest.h"

static int shared;

static void *write_without_a_lock(void *unused)
{
    ranges("racing", 100);
    shared++;
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    nvtxMarkA("main");
    if (argc > 1 && is(argv[1], "thread")) {
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], 0, write_without_a_lock, 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], 0);
        return 0;
    }
    volatile char *block = malloc(10);
    free((void *)block);
    return block[3];
}
