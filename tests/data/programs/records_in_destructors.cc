/* Events in destructors of thread-local and static objects, of pthread keys, and in atexit
 * handlers. */
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <thread>
#include <vector>

#include <nvtx3/nvToolsExt.h>

struct ThreadLocal {
    ~ThreadLocal()
    {
        nvtxRangePushA("thread-local destructor");
        nvtxRangePop();
    }
};

struct Static {
    ~Static() { nvtxMarkA("static destructor"); }
};

static thread_local ThreadLocal thread_local_object;
static Static static_object;
static pthread_key_t key;

/* Called once more, as long as there is a value and the system goes on with it. */
static void destroy(void *value)
{
    nvtxMarkA("key destructor");
    long round = reinterpret_cast<long>(value);
    if (round < 8)
        pthread_setspecific(key, reinterpret_cast<void *>(round + 1));
}

static void at_exit()
{
    nvtxMarkA("atexit");
}

static void work()
{
    (void)&thread_local_object;
    pthread_setspecific(key, reinterpret_cast<void *>(1));
    nvtxMarkA("body");
}

int main()
{
    std::atexit(at_exit);
    pthread_key_create(&key, destroy);
    for (int round = 0; round < 50; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; i++)
            threads.emplace_back(work);
        for (auto &thread : threads)
            thread.join();
    }
    std::puts("done");
}
