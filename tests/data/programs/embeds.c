/* Embeds the library, records twice, forks after each, and then records again and again. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kymograph.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    char error[300] = "";
    if (argc > 1)
        setenv("KYMOGRAPH_OUTPUT", argv[1], 1);
    kymo_arm("");
    for (int round = 0; round < 2; round++) {
        if (!kymo_start(0)) {
            kymo_last_error(error, sizeof error);
            printf("not started: %s\n", error);
            return 1;
        }
        kymo_push_str(0, "range", 0, 0);
        kymo_pop();
        printf("stopped: %d\n", kymo_stop(0));
        double began = now();
        int status;
        pid_t pid = vfork();
        if (!pid)
            _exit(6);
        waitpid(pid, &status, 0);
        printf("child: exit %d%s\n", WEXITSTATUS(status), now() - began > 1 ? ", slow" : "");
    }
    int again = 0;
    while (again < 200 && kymo_start(0) && kymo_stop(0))
        again++;
    printf("again: %d\n", again);
    return 0;
}
