/* As many ranges as the argument says, as fast as it can. */
#include "guest.h"

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000;
    ranges("range", count);
    printf("%ld ranges\n", count);
    return 0;
}
