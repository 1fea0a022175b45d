/* A thread with a pending pthread_cancel records its first event, which is no cancellation
 * point: it prints a line before it is cancelled. With an argument the process has recorded
 * something before. */
#include "guest.h"

static pthread_barrier_t cancelled;
static int reached;

static void *thread(void *unused)
{
    int old;
    /* A barrier is no cancellation point. */
    pthread_barrier_wait(&cancelled);
    range("with a pending cancellation");
    nvtxNameOsThreadA(gettid(), "cancelled");
    nvtxMarkA("still here");
    reached = 1;
    pthread_testcancel();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    puts("was not cancelled");
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t id;
    void *result;
    (void)argv;
    pthread_barrier_init(&cancelled, 0, 2);
    if (argc > 1)
        nvtxMarkA("main first");
    for (int i = 0; i < 20; i++) {
        reached = 0;
        pthread_create(&id, 0, thread, 0);
        pthread_cancel(id);
        pthread_barrier_wait(&cancelled);
        pthread_join(id, &result);
        printf("%s, %s\n", reached ? "after its events" : "within its events",
               result == PTHREAD_CANCELED ? "cancelled" : "normal");
    }
    return 0;
}
