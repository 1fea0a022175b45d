// Does an exactly known amount of work and prints it, as JSON.
//
// workload LAUNCHES [--no-exit-sync]
// workload rate SECONDS
//
// Kernels go round four streams; every tenth is followed by a copy each way and one on the
// device, and by a set; every hundredth by an event that the next stream waits for. Then a
// graph of eight kernels, a copy and a set, a hundredth as often. Before that, ten long
// kernels between events: their durations as the events measure them.
//
// `rate` launches empty kernels for so long, in bursts that the device's queue has room for,
// and prints what a launch took of the thread's time, burst by burst: [[second, us], ...].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// Medians of 40 bursts of 500 launches each.
static int rate(double seconds) {
    const int burst = 500;
    float *device;
    CHECK(cudaMalloc(&device, 4096));
    double began = now();
    const char *between = "";
    printf("{\"bursts\": [");
    while (now() - began < seconds) {
        double at = now() - began;
        std::vector<double> times;
        for (int i = 0; i < 40; i++) {
            double start = now();
            for (int j = 0; j < burst; j++) one<<<1, 64>>>(device);
            times.push_back((now() - start) / burst * 1e6);
            CHECK(cudaDeviceSynchronize());
        }
        std::sort(times.begin(), times.end());
        printf("%s[%.2f, %.3f]", between, at, times[times.size() / 2]);
        between = ", ";
    }
    printf("]}\n");
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "rate")) return rate(atof(argv[2]));
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
