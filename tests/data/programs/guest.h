/* What the programs of this folder have in common. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

static inline void range(const char *name)
{
    nvtxRangePushA(name);
    nvtxRangePop();
}

static inline void ranges(const char *name, long count)
{
    for (long i = 0; i < count; i++)
        range(name);
}

static inline int is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

static inline int die(const char *what)
{
    perror(what);
    return 99;
}

/* How a child ended, in words that are the same in every run. */
static inline void report(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        perror("child");
    else if (WIFSIGNALED(status))
        printf("child: signal %d\n", WTERMSIG(status));
    else
        printf("child: exit %d\n", WEXITSTATUS(status));
    fflush(stdout);
}
