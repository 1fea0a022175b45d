/* Leaves whatever it is doing, events among it, by siglongjmp out of a signal handler. Then
 * records in peace. Ends inside a push may be lost with it, later ranges must not. */
#include "guest.h"

#include <setjmp.h>
#include <sys/time.h>

static sigjmp_buf before;
static volatile int jumps;

static void handle(int signal)
{
    (void)signal;
    jumps++;
    siglongjmp(before, 1);
}

int main(void)
{
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    nvtxMarkA("start");
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &often, 0);
    sigsetjmp(before, 1);
    while (jumps < 300)
        range("interrupted");
    setitimer(ITIMER_REAL, &never, 0);
    ranges("after the jumps", 1000);
    puts("done");
    return 0;
}
