/* For a library with a constructor. */
#include <stdio.h>

int library(void);

int main(int argc, char **argv)
{
    printf("main %s\n", argc > 1 ? argv[1] : "");
    return library() - 1;
}
