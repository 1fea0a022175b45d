/* Three processes with a flight recorder each, under `kymo record --flight`. The parent has
 * all of them write what they hold; then one child aborts; then the others end. */
#include "kymograph.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 1000, PATIENCE = 60000 };

static void work(void) {
    for (int i = 0; i < STEPS; i++) {
        kymo_push_str(0, "step", NULL, 0);
        kymo_pop();
    }
}

/* Says that it is ready, and waits until it is told to go on. */
static bool meet(int say, int hear) {
    char byte = 0;
    return write(say, &byte, 1) == 1 && read(hear, &byte, 1) == 1;
}

static int child(int say, int hear, bool aborts) {
    kymo_push_str(0, "child", NULL, 0);
    work();
    if (!meet(say, hear)) {
        return 1;
    }
    /* Whatever the others began has been joined when this returns. */
    kymo_flush(PATIENCE);
    work();
    if (!meet(say, hear)) {
        return 1;
    }
    if (aborts) {
        abort();
    }
    kymo_flush(PATIENCE);
    kymo_pop();
    return 0;
}

int main(void) {
    int up[2], down[2][2];
    pid_t pids[2];
    char byte = 0;
    int status = 0;
    if (pipe(up) != 0 || !kymo_start(NULL)) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        if (pipe(down[i]) != 0) {
            return 1;
        }
        pids[i] = fork();
        if (pids[i] == 0) {
            return child(up[1], down[i][0], i == 0);
        }
    }
    kymo_push_str(0, "parent", NULL, 0);
    work();
    if (read(up[0], &byte, 1) != 1 || read(up[0], &byte, 1) != 1) {
        return 1;
    }
    if (getenv("KYMOGRAPH_FLIGHT") && !kymo_dump(NULL, PATIENCE)) {
        char why[300];
        kymo_last_error(why, sizeof why);
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        if (write(down[i][1], &byte, 1) != 1) {
            return 1;
        }
    }
    if (read(up[0], &byte, 1) != 1 || read(up[0], &byte, 1) != 1) {
        return 1;
    }
    if (write(down[0][1], &byte, 1) != 1 || waitpid(pids[0], &status, 0) != pids[0] ||
        !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
        return 1;
    }
    kymo_flush(PATIENCE);
    if (write(down[1][1], &byte, 1) != 1) {
        return 1;
    }
    if (waitpid(pids[1], &status, 0) != pids[1] || status != 0) {
        return 1;
    }
    kymo_pop();
    return kymo_stop(NULL) ? 0 : 1;
}
