/* A library that has Level Zero's static loader in it: `zeInit` and `zeInitDrivers` of its own,
 * which load the dynamic one on their first call, and code that uses them. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static void *loader(const char *name) {
    static void *library;
    if (!library) library = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

int zeInit(uint32_t flags) {
    int (*real)(uint32_t) = (int (*)(uint32_t))loader("zeInit");
    puts("wrapped");
    return real ? real(flags) : 0x78000001;
}

int zeInitDrivers(uint32_t *count, void **drivers, void *which) {
    int (*real)(uint32_t *, void **, void *) =
        (int (*)(uint32_t *, void **, void *))loader("zeInitDrivers");
    return real ? real(count, drivers, which) : 0x78000001;
}

int session(const char *script) {
    uint32_t count = 0;
    int result = zeInit(0);
    printf("zeInit %#x\n", result);
    printf("zeInitDrivers %#x\n", zeInitDrivers(&count, NULL, NULL));
    int (*run)(const char *) = (int (*)(const char *))loader("fake_cuda_run");
    if (!result && run) result = run(script);
    return result != 0;
}
