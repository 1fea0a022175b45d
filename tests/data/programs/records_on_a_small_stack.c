/* First events on a small stack: of a thread, of a thread of a forked child, or of a signal
 * handler. usage: thread|forked|handler BYTES [after: the process has recorded before] */
#include "guest.h"

#include <sys/mman.h>
#include <sys/time.h>

#define PAGE 4096

static volatile int handled;

static void events(void)
{
    nvtxEventAttributes_t event = {0};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "with a payload";
    event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    event.payload.dValue = 1.5;
    ranges("range", 100);
    nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
    nvtxDomainRangePushEx(domain, &event);
    nvtxDomainRangePop(domain);
    nvtxMarkEx(&event);
    nvtxNameOsThreadA(gettid(), "tiny");
}

static void *thread(void *unused)
{
    events();
    return unused;
}

static void handle(int signal)
{
    (void)signal;
    nvtxRangePushA("in the handler");
    nvtxMarkA("mark");
    nvtxRangePop();
    handled++;
}

/* The stack lies above a page that may not be touched. */
static char *stack(size_t size)
{
    size_t whole = (size + PAGE - 1) / PAGE * PAGE + PAGE;
    char *memory = mmap(0, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, PAGE, PROT_NONE);
    return memory + whole - size;
}

static int in_a_thread(size_t size)
{
    pthread_attr_t attributes;
    pthread_t id;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, stack(size), size))
        return die("pthread_attr_setstack");
    if (pthread_create(&id, &attributes, thread, 0))
        return die("pthread_create");
    pthread_join(id, 0);
    puts("joined");
    return 0;
}

static int in_a_handler(size_t size, int during)
{
    stack_t alternative = {.ss_sp = stack(size), .ss_size = size};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    if (sigaltstack(&alternative, 0))
        return die("sigaltstack");
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    while (handled < 300) {
        if (during)
            range("main");
        free(malloc(100));
    }
    setitimer(ITIMER_REAL, &never, 0);
    puts("handled");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 98;
    size_t size = (size_t)atol(argv[2]);
    int after = argc > 3;
    if (after) {
        nvtxMarkA("first");
        range("in the handler");
    }
    if (is(argv[1], "handler"))
        return in_a_handler(size, after);
    if (is(argv[1], "forked")) {
        pid_t pid = fork();
        if (pid) {
            report(pid);
            return 0;
        }
    }
    return in_a_thread(size);
}
