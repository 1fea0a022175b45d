/* For C libraries that NVTX's headers are not for. */
#include <stdio.h>

int main(void)
{
    puts("runs");
    return 5;
}
