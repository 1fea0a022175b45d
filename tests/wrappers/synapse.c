/* A library that has wrappers of Synapse's functions in it, which load Synapse on their first
 * call, and code that uses them: as PyTorch's bridge for Gaudi is built. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *synapse(const char *name) {
    static void *library;
    if (!library) library = dlopen("libSynapse.so", RTLD_LOCAL | RTLD_NOW);
    if (!library) {
        puts("no Synapse");
        exit(9);
    }
    return dlsym(library, name);
}

int synInitialize(void) {
    puts("wrapped");
    return ((int (*)(void))synapse("synInitialize"))();
}

int synDestroy(void) {
    return ((int (*)(void))synapse("synDestroy"))();
}

int synDeviceAcquireByModuleId(uint32_t *device, uint32_t module) {
    return ((int (*)(uint32_t *, uint32_t))synapse("synDeviceAcquireByModuleId"))(device, module);
}

int synDeviceRelease(uint32_t device) {
    return ((int (*)(uint32_t))synapse("synDeviceRelease"))(device);
}

int session(const char *script) {
    uint32_t device = 7;
    int result = synInitialize();
    printf("synInitialize %d\n", result);
    result |= synDeviceAcquireByModuleId(&device, 0);
    printf("synDeviceAcquireByModuleId %d, device %u\n", result, device);
    int (*run)(const char *) = (int (*)(const char *))synapse("fake_cuda_run");
    if (!result && run) result = run(script);
    result |= synDeviceRelease(device);
    result |= synDestroy();
    return result;
}
