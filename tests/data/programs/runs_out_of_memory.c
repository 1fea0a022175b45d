/* Takes all memory that it is allowed to have and goes on recording.
 * usage: before|after (the first event) same|unique (names) */
#include "guest.h"

#include <sys/resource.h>

struct block {
    struct block *next;
};

static struct block *blocks;

static void take_all_memory(void)
{
    struct rlimit limit = {600 << 20, 600 << 20};
    setrlimit(RLIMIT_AS, &limit);
    for (size_t size = 16 << 20; size >= 32; size /= 2) {
        struct block *block;
        while ((block = malloc(size))) {
            block->next = blocks;
            blocks = block;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 98;
    int unique = is(argv[2], "unique");
    static char name[600];
    memset(name, 'n', sizeof name - 1);
    puts("starts");
    if (is(argv[1], "after")) {
        nvtxMarkA("start");
        range("start");
        usleep(100000);
    }
    take_all_memory();
    for (int i = 0; i < 4000; i++) {
        if (unique)
            for (int digit = 9, rest = i; digit >= 0; digit--, rest /= 10)
                name[digit] = (char)('0' + rest % 10);
        range(unique ? name : "same");
        if (i % 100 == 0)
            usleep(2000);
    }
    while (blocks) {
        struct block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
    puts("has memory again");
    ranges("with memory", 100);
    return 0;
}
