/* A library whose constructor, which runs before those of a preloaded one, becomes other
 * programs in all the ways that there are. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *echo[] = {"echo", "from a constructor", 0};
static char *script[] = {"script", "with an argument", 0};

static void child(const char *call)
{
    if (!strcmp(call, "execv"))
        execv("/bin/echo", echo);
    if (!strcmp(call, "execve"))
        execve("/bin/echo", echo, environ);
    if (!strcmp(call, "execvp"))
        execvp("echo", echo);
    if (!strcmp(call, "execvpe"))
        execvpe("echo", echo, environ);
    if (!strcmp(call, "execl"))
        execl("/bin/echo", "echo", "from a constructor", (char *)0);
    if (!strcmp(call, "fexecve"))
        fexecve(open("/bin/echo", O_RDONLY), echo, environ);
    if (!strcmp(call, "missing"))
        execvp("a-command-that-is-missing", echo);
    if (!strcmp(call, "script"))
        execvp("./script-without-interpreter", script);
    fprintf(stderr, "%s: %s\n", call, strerror(errno));
    _exit(9);
}

static void try(const char *call, pid_t pid)
{
    int status;
    if (!pid)
        child(call);
    waitpid(pid, &status, 0);
    fprintf(stderr, "%s ended with %x\n", call, status);
}

__attribute__((constructor)) static void start(void)
{
    const char *calls[] = {"execv", "execve", "execvp", "execvpe", "execl", "fexecve", "missing", "script"};
    char line[64] = "";
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        try(calls[i], fork());
        try(calls[i], vfork());
    }
    if (system("echo by system"))
        fprintf(stderr, "system: %s\n", strerror(errno));
    FILE *pipe = popen("echo by popen", "r");
    if (pipe && fgets(line, sizeof line, pipe))
        fputs(line, stderr);
    if (pipe)
        pclose(pipe);
}

int library(void)
{
    return 1;
}
