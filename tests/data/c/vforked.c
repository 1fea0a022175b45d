/* Can be asked for traces, and records; in between a child of vfork() ends. */
#define _DEFAULT_SOURCE
#include "kymograph.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    char options[4096];
    snprintf(options, sizeof options, "OUTPUT=%s", count > 1 ? words[1] : "t.pftrace");
    if (!kymo_arm(options)) {
        return 1;
    }
    for (int turn = 0; turn < 2; turn++) {
        if (!kymo_start(options)) {
            char why[300];
            kymo_last_error(why, sizeof why);
            puts(why);
            return 2;
        }
        kymo_push_str(0, "range", 0, 0);
        kymo_pop();
        if (!kymo_stop(0)) {
            return 3;
        }
        pid_t child = vfork();
        if (child == 0) {
            _exit(6);
        }
        int status;
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 6) {
            return 4;
        }
    }
    return 0;
}
