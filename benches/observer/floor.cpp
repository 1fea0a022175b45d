// The least that an observer of PyTorch's operators can do: store 32 bytes and read the clock when
// one begins and when it ends. `floor_start(handle)` adds it to the libtorch_cpu.so that the
// handle is of. Declared by hand, so that it needs no headers of PyTorch.

#include <cstdint>
#include <dlfcn.h>
#include <time.h>

namespace {

struct Record {
    uint64_t begin, end, object, name;
};

struct Callback {
    void **(*start)(void **context, const char *function);
    void (*end)(const char *function, void *context);
    double probability;
    bool scopes[10], needs_inputs, needs_outputs, needs_ids;
};
static_assert(sizeof(Callback) == 40, "ATen/record_function.h");

constexpr uint64_t kRecords = 1 << 14;
thread_local Record records[kRecords];
thread_local uint64_t count, open_at[64], depth;

uint64_t now() {
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return uint64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
#endif
}

void **start(void **context, const char *function) {
    *context = nullptr;
    uint64_t at = count++ % kRecords;
    open_at[depth++ % 64] = at;
    const uint64_t name = *reinterpret_cast<const uint64_t *>(function + 160);
    records[at] = Record{now(), 0, reinterpret_cast<uint64_t>(function), name};
    return context;
}

void end(const char *, void *) {
    records[open_at[--depth % 64]].end = now();
}

}  // namespace

extern "C" int floor_start(void *library, int inputs) {
    auto add = reinterpret_cast<uint64_t (*)(Callback)>(
        dlsym(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"));
    if (!add) return 1;
    Callback callback{start, end, 1.0, {}, inputs != 0, false, false};
    for (bool &scope : callback.scopes) scope = true;
    add(callback);
    return 0;
}
