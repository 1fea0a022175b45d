/* A library whose constructor starts the program once more, with an argument. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void start(int argc, char **argv)
{
    if (argc < 2) {
        char *args[] = {argv[0], "again", 0};
        execv("/proc/self/exe", args);
        printf("execv: %s\n", strerror(errno));
    }
}

int library(void)
{
    return 1;
}
