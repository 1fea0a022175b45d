/* Records numbered ranges for ever, on some threads of some processes. A file that it shares
 * with whoever kills it says which threads there are and how many of its calls have returned.
 *
 *   counts_what_it_pushed FILE PROCESSES THREADS
 */
#include "guest.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct line {
    _Atomic uint64_t pid, tid, pushes, pops;
};

static struct line *lines;

static void *record(void *argument)
{
    struct line *line = argument;
    nvtxEventAttributes_t event = {0};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "numbered";
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    line->pid = getpid();
    line->tid = syscall(SYS_gettid);
    for (uint64_t n = 0;; n++) {
        event.payload.ullValue = n;
        nvtxRangePushEx(&event);
        line->pushes = n + 1;
        if (n % 3 == 0)
            nvtxMarkA("inside");
        nvtxRangePop();
        line->pops = n + 1;
        if (n % 64 == 0)
            usleep(20);
    }
    return NULL;
}

int main(int count, char **words)
{
    int processes = atoi(words[2]), threads = atoi(words[3]);
    if (count != 4)
        return 99;
    int file = open(words[1], O_RDWR);
    lines = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (lines == MAP_FAILED)
        return die("mmap");
    int process = 0;
    /* Half of the children have a parent that has recorded something, half have not. */
    for (int child = 1; child < processes; child++) {
        if (child == processes / 2)
            range("before the fork");
        if (fork() == 0) {
            process = child;
            break;
        }
    }
    for (int thread = 1; thread < threads; thread++) {
        pthread_t other;
        pthread_create(&other, NULL, record, &lines[process * threads + thread]);
    }
    record(&lines[process * threads]);
}
