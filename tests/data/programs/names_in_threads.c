/* Threads that give ranges, themselves and domains names, some of them the same. */
#include "guest.h"

static void *work(void *unused)
{
    char name[32];
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "name %d", i % 300);
        range(name);
    }
    nvtxNameOsThreadA((uint32_t)gettid(), "worker");
    nvtxDomainRegisterStringA(nvtxDomainCreateA("domain"), "registered");
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    nvtxMarkA("main");
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    usleep(100000);
    puts("done");
    return 3;
}
