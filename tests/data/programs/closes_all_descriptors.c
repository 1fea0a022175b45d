/* Closes all descriptors that it did not open, in the way that the argument names, and uses
 * their numbers for itself: nobody else may write there. */
#include "guest.h"

#include <fcntl.h>

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "close";
    char name[] = "descriptors-XXXXXX", content[64] = "";
    int opened = 0, file = -1;
    ranges("before", 100);
    if (is(way, "closefrom"))
        closefrom(3);
    else
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
    file = mkstemp(name);
    if (file < 0 || write(file, "mine\n", 5) != 5)
        return die(name);
    while (opened < 900 && dup(file) >= 0)
        opened++;
    ranges("after", 100);
    usleep(500000);
    lseek(file, 0, SEEK_SET);
    ssize_t length = read(file, content, sizeof content - 1);
    printf("%d more descriptors, %zd bytes: %s", opened, length, content);
    unlink(name);
    return 0;
}
