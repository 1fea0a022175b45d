/* Annotates for the first time when it can open no file any more. usage: root|descriptors|filter */
#include "guest.h"

#include <sys/resource.h>

int main(int argc, char **argv)
{
    if (argc < 2)
        return 98;
    if (is(argv[1], "descriptors")) {
        struct rlimit none = {3, 3};
        if (setrlimit(RLIMIT_NOFILE, &none))
            return die("setrlimit");
    }
    if (is(argv[1], "root")) {
        char folder[] = "root-XXXXXX";
        if (!mkdtemp(folder) || chroot(folder) || chdir("/"))
            puts("may not change its root");
    }
    ranges("late", 100);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ranges("late in the child", 100);
        _exit(3);
    }
    report(child);
    return 0;
}
