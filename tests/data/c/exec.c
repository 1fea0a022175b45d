/* Records, tries to become a program that is not there, becomes itself with another argument,
 * and records again. With "fork" a child does that. */
#include "kymograph.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(const char *name) {
    for (int i = 0; i < 100; i++) {
        kymo_push_str(0, name, NULL, 0);
        kymo_pop();
    }
}

int main(int count, char **words) {
    char *missing[] = {(char *)"missing", NULL};
    char *again[] = {words[0], (char *)"after", NULL};
    if (count > 1 && strcmp(words[1], "after") == 0) {
        work("after");
        /* Whatever was asked for before is not asked of this one. */
        return kymo_flush(60000) ? 0 : 1;
    }
    if (count > 1 && strcmp(words[1], "fork") == 0) {
        pid_t child = fork();
        int status = 0;
        if (child != 0) {
            return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
        }
    }
    work("before");
    execv("/nonexistent/program", missing);
    execv(words[0], again);
    perror(words[0]);
    return 1;
}
