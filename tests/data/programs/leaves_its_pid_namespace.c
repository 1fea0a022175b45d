/* Children in a pid namespace of their own, where the first has the number 1. */
#include "guest.h"

#include <sched.h>

int main(void)
{
    ranges("outside", 100);
    if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID)) {
        puts("may not make a pid namespace");
        return 7;
    }
    pid_t first = fork();
    if (first == 0) {
        ranges("first", 100);
        pid_t second = fork();
        if (second == 0) {
            ranges("second", 100);
            usleep(100000);
            ranges("second", 100);
            raise(SIGKILL);
        }
        report(second);
        ranges("first", 100);
        _exit(getpid());
    }
    report(first);
    return 0;
}
