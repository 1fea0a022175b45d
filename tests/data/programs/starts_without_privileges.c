/* Gives up root's privileges, and becomes a program that records. */
#include "guest.h"

int main(int count, char **words)
{
    if (count > 1) {
        ranges("after", 5);
        return 0;
    }
    range("before");
    if (setgid(65534) != 0 || setuid(65534) != 0)
        return die("setuid");
    ranges("without", 5);
    execl(words[0], words[0], "again", NULL);
    return die("exec");
}
