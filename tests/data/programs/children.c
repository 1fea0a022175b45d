/* Makes children in the way that the first argument names. Where they run code of this
 * program they record some ranges and end as the second argument says. */
#include "guest.h"

#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;

static void child(const char *end)
{
    ranges("in the child", 1000);
    if (is(end, "exit"))
        exit(5);
    _exit(5);
}

static void spawn(const char *command)
{
    pid_t pid;
    char *args[] = {(char *)command, "a spawned program", 0};
    int error = posix_spawnp(&pid, command, 0, 0, args, environ);
    if (error)
        printf("%s: %s\n", command, strerror(error));
    else
        report(pid);
}

static void vforks(void)
{
    pid_t pid = vfork();
    if (!pid) {
        execl("/bin/echo", "echo", "a program after vfork", (char *)0);
        _exit(1);
    }
    report(pid);
    pid = vfork();
    if (!pid)
        _exit(6);
    report(pid);
    pid = vfork();
    if (!pid) {
        char *args[] = {"a-command-that-is-missing", 0};
        execvp(args[0], args);
        _exit(errno);
    }
    report(pid);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "fork";
    const char *end = argc > 2 ? argv[2] : "_exit";
    pid_t pid;
    nvtxMarkA("before");
    if (is(way, "vfork")) {
        vforks();
    } else if (is(way, "posix_spawn")) {
        spawn("echo");
        spawn("a-command-that-is-missing");
    } else {
        pid = is(way, "_Fork") ? _Fork()
              : is(way, "clone") ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
                                 : fork();
        if (!pid)
            child(end);
        report(pid);
    }
    ranges("after", 1000);
    return 0;
}
