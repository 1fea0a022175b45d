/* The main thread ends; another one records after that and is the last. */
#include "guest.h"

static void *last(void *unused)
{
    usleep(200000);
    nvtxMarkA("after main");
    puts("the last thread");
    return unused;
}

int main(void)
{
    pthread_t thread;
    nvtxMarkA("main");
    pthread_create(&thread, 0, last, 0);
    pthread_detach(thread);
    pthread_exit(0);
}
