/* Leaves its terminal and its parent, and records on. */
#include "guest.h"

int main(void)
{
    ranges("before", 100);
    puts("before");
    fflush(stdout);
    if (daemon(1, 1))
        return die("daemon");
    usleep(100000);
    ranges("daemon", 100);
    puts("daemon");
    return 0;
}
