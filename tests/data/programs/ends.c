/* Records a hundred ranges, then ends in the way that the argument names. */
#include "guest.h"

extern char **environ;

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "return";
    ranges("before the end", 100);
    printf("ends by %s\n", way);
    fflush(stdout);
    if (is(way, "return"))
        return 7;
    if (is(way, "quick_exit"))
        quick_exit(8);
    if (is(way, "_exit"))
        _exit(9);
    if (is(way, "abort"))
        abort();
    if (is(way, "SIGKILL"))
        raise(SIGKILL);
    if (is(way, "SIGTERM"))
        raise(SIGTERM);
    if (is(way, "SIGSEGV"))
        raise(SIGSEGV);
    if (is(way, "execle"))
        execle("/bin/echo", "echo", "another program", (char *)0, environ);
    if (is(way, "execv without an environment")) {
        char *args[] = {"/bin/sh", "-c", "echo the environment: \"$(env | grep -v -e ^PWD -e ^SHLVL -e ^_=)\"", 0};
        clearenv();
        execv(args[0], args);
    }
    return die(way);
}
