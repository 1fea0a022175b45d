/* Records numbered slices by itself, on two threads. A file that it shares with whoever kills it
 * says how many calls of each thread have returned.
 *
 *   counts OUTPUT COUNTS RECOVER SECONDS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kymograph.h"

struct line {
    _Atomic uint64_t pushes, pops;
};

static struct line *lines;
static _Atomic int over;

static void *record(void *argument)
{
    struct line *line = argument;
    kymo_category category = kymo_category_register("app");
    kymo_name outer = kymo_register(category, "outer"), numbered = kymo_register(category, "numbered");
    const struct timespec moment = {0, 20000};
    kymo_push(outer, NULL, 0);
    for (uint64_t n = 0; !over; n++) {
        const kymo_arg number = kymo_u64("n", n);
        kymo_push(numbered, &number, 1);
        line->pushes = n + 1;
        if (n % 3 == 0)
            kymo_instant_str(category, "inside", NULL, NULL, 0);
        kymo_pop();
        line->pops = n + 1;
        if (n % 64 == 0)
            nanosleep(&moment, NULL);
    }
    kymo_pop();
    return NULL;
}

int main(int count, char **words)
{
    if (count != 5)
        return 99;
    int file = open(words[2], O_RDWR);
    lines = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (lines == MAP_FAILED)
        return 98;
    char options[4096], error[512] = "";
    snprintf(options, sizeof options, "OUTPUT=%s\n%s%s", words[1], *words[3] ? "RECOVER=" : "",
             words[3]);
    if (!kymo_start(options)) {
        kymo_last_error(error, sizeof error);
        fprintf(stderr, "%s\n", error);
        return 97;
    }
    pthread_t other;
    pthread_create(&other, NULL, record, &lines[1]);
    /* One that comes and goes, and a child that has nothing to do with the recording. */
    pid_t child = fork();
    if (child == 0) {
        kymo_push_str(0, "of the child", NULL, 0);
        kymo_pop();
        exit(0);
    }
    waitpid(child, NULL, 0);
    int seconds = atoi(words[4]);
    if (seconds > 0) {
        const struct timespec time = {seconds, 0};
        nanosleep(&time, NULL);
        over = 1;
    } else {
        record(&lines[0]);
    }
    pthread_join(other, NULL);
    return !kymo_stop(NULL);
}
