// Does an exactly known amount of work and prints it, as JSON.
//
// workload LAUNCHES [--no-exit-sync]
// workload rate SECONDS
// workload cycles COUNT FOLDER LIBRARY
//
// Kernels go round four streams; every tenth is followed by a copy each way and one on the
// device, and by a set; every hundredth by an event that the next stream waits for. Then a
// graph of eight kernels, a copy and a set, a hundredth as often. Before that, ten long
// kernels between events: their durations as the events measure them.
//
// `rate` launches empty kernels for so long, in bursts that the device's queue has room for,
// and prints what a launch took of the thread's time, burst by burst: [[second, us], ...].
// `cycles` starts and stops recordings of its own through the C interface in libkymograph.so,
// with a graph that was captured before the first; prints what each should have, and what a
// launch took before the first and after the last.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <vector>

__global__ void one(float *x) { x[threadIdx.x] += 1; }
template <int N> __global__ void two(float *x, int n) { x[threadIdx.x] += N * n; }
__global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t error = call;                                                            \
        if (error != cudaSuccess) {                                                          \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                   \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

static double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// The median of 40 bursts of 500 launches each.
static double bursts(float *device) {
    const int burst = 500;
    std::vector<double> times;
    for (int i = 0; i < 40; i++) {
        double start = now();
        for (int j = 0; j < burst; j++) one<<<1, 64>>>(device);
        times.push_back((now() - start) / burst * 1e6);
        CHECK(cudaDeviceSynchronize());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

static int rate(double seconds) {
    float *device;
    CHECK(cudaMalloc(&device, 4096));
    double began = now();
    const char *between = "";
    printf("{\"bursts\": [");
    while (now() - began < seconds) {
        double at = now() - began;
        printf("%s[%.2f, %.3f]", between, at, bursts(device));
        between = ", ";
    }
    printf("]}\n");
    return 0;
}

static double several(float *device) {
    double least = 1e9;
    for (int i = 0; i < 8; i++) least = std::min(least, bursts(device));
    return least;
}

static int cycles(int count, const std::string &folder, const char *library) {
    void *kymograph = dlopen(library, RTLD_NOW);
    if (!kymograph) return fprintf(stderr, "%s\n", dlerror()), 1;
    auto start = (bool (*)(const char *))dlsym(kymograph, "kymo_start");
    auto stop = (bool (*)(void *))dlsym(kymograph, "kymo_stop");
    auto error = (size_t (*)(char *, size_t))dlsym(kymograph, "kymo_last_error");
    float *device;
    CHECK(cudaMalloc(&device, 1 << 20));
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 8; i++) one<<<1, 32, 0, stream>>>(device);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaDeviceSynchronize());
    double before = several(device), slowest_stop = 0;
    for (int i = 0; i < count; i++) {
        std::string options = "OUTPUT=" + folder + "/cycle-" + std::to_string(i) + ".pftrace";
        if (!start(options.c_str())) {
            char text[500];
            error(text, sizeof text);
            return fprintf(stderr, "cycle %d: %s\n", i, text), 1;
        }
        for (int j = 0; j < 50 + i; j++) one<<<1, 64>>>(device);
        for (int j = 0; j < 2; j++) CHECK(cudaGraphLaunch(exec, stream));
        if (i % 2) CHECK(cudaDeviceSynchronize());
        double began = now();
        if (!stop(NULL)) return fprintf(stderr, "cycle %d: not stopped\n", i), 1;
        slowest_stop = std::max(slowest_stop, now() - began);
        for (int j = 0; j < 10; j++) one<<<1, 64>>>(device);
        CHECK(cudaDeviceSynchronize());
    }
    double after = several(device);
    printf("{\"cycles\": %d, \"first\": 66, \"before\": %.3f, \"after\": %.3f, "
           "\"slowest_stop_ms\": %.1f}\n", count, before, after, slowest_stop * 1e3);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "rate")) return rate(atof(argv[2]));
    if (argc > 4 && !strcmp(argv[1], "cycles")) return cycles(atoi(argv[2]), argv[3], argv[4]);
    long launches = argc > 1 ? atol(argv[1]) : 1000;
    bool wait = !(argc > 2 && !strcmp(argv[2], "--no-exit-sync"));
    long kernels = 0, copies = 0, sets = 0, calls = 0;
    cudaStream_t streams[4];
    cudaEvent_t events[4], before, after;
    float *device, *pinned;
    CHECK(cudaMalloc(&device, 1 << 20));
    CHECK(cudaMallocHost(&pinned, 1 << 20));
    for (int i = 0; i < 4; i++) {
        CHECK(cudaStreamCreate(&streams[i]));
        CHECK(cudaEventCreate(&events[i]));
    }
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    double spun = 0;
    for (int i = 0; i < 10; i++) {
        CHECK(cudaEventRecord(before, streams[0]));
        spin<<<1, 1, 0, streams[0]>>>(2000000);
        CHECK(cudaEventRecord(after, streams[0]));
        CHECK(cudaEventSynchronize(after));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, before, after));
        spun += ms;
        kernels++, calls++;
    }
    for (long i = 0; i < launches; i++) {
        cudaStream_t stream = streams[i % 4];
        if (i % 2) one<<<1, 64, 0, stream>>>(device);
        else two<7><<<dim3(2, 3, 4), dim3(8, 4, 2), 256, stream>>>(device, 3);
        kernels++, calls++;
        if (i % 10 == 9) {
            CHECK(cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyHostToDevice, stream));
            CHECK(cudaMemcpyAsync(pinned, device, 4096, cudaMemcpyDeviceToHost, stream));
            CHECK(cudaMemcpyAsync(device + 65536, device, 4096, cudaMemcpyDeviceToDevice, stream));
            CHECK(cudaMemsetAsync(device, 0, 4096, stream));
            copies += 3, sets++, calls += 4;
        }
        if (i % 100 == 99) {
            CHECK(cudaEventRecord(events[i % 4], stream));
            CHECK(cudaStreamWaitEvent(streams[(i + 1) % 4], events[i % 4], 0));
        }
    }
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 8; i++) one<<<1, 32, 0, streams[0]>>>(device);
    CHECK(cudaMemcpyAsync(device + 65536, device, 512, cudaMemcpyDeviceToDevice, streams[0]));
    CHECK(cudaMemsetAsync(device, 0, 512, streams[0]));
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));
    long graphs = launches / 100;
    for (long i = 0; i < graphs; i++) CHECK(cudaGraphLaunch(exec, streams[0]));
    kernels += 8 * graphs, copies += graphs, sets += graphs, calls += graphs;
    if (wait) CHECK(cudaDeviceSynchronize());
    printf("{\"kernels\": %ld, \"copies\": %ld, \"sets\": %ld, \"calls\": %ld, "
           "\"spin_ms\": %.4f}\n", kernels, copies, sets, calls, spun);
    return 0;
}
