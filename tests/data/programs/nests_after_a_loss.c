/* Nests as deep as the argument says, fills the buffer so that the last beginnings are
 * refused, waits until there is room, and goes on inside of all of them. */
#include "guest.h"

#define BLAST 100000

int main(int argc, char **argv)
{
    int depth = argc > 1 ? atoi(argv[1]) : 100, refused = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = 0; i < depth; i++)
        nvtxRangePushA("deep");
    ranges("blast", BLAST);
    /* Refused, if the buffer is full; they are open all the same. */
    for (int i = 0; i < refused; i++)
        nvtxRangePushA("blast");
    for (int i = 0; i < 100; i++) {
        usleep(8000);
        ranges("inside", 10);
    }
    for (int i = 0; i < refused; i++)
        nvtxRangePop();
    ranges("outside", 1000);
    for (int i = 0; i < depth; i++)
        nvtxRangePop();
    ranges("at the end", 1000);
    printf("%d events\n", depth + BLAST + refused + 3000);
    return 0;
}
