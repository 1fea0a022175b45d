"""A loop bound by launches: 20,000 tiny additions a round.

loop.py base          as it is, or under whatever was injected; median of 7 rounds
loop.py nvtx          with PyTorch's NVTX ranges around every operator
loop.py kineto        under torch.profiler, CUDA alone and with the CPU
loop.py both          torch.profiler while something else records: what Kineto got
"""
import collections, contextlib, json, os, statistics, sys, tempfile, time
import torch

x = torch.zeros(64, device="cuda")
N = 20_000


def loop(n):
    for _ in range(n):
        x.add_(1.0)
    torch.cuda.synchronize()


def a_round():
    began = time.perf_counter()
    loop(N)
    return (time.perf_counter() - began) / N * 1e6


def rounds(count):
    times = [a_round() for _ in range(count)]
    return {"median": round(statistics.median(times), 3), "least": round(min(times), 3)}


def say(**what):
    print(json.dumps(what), flush=True)


def profiled(activities, launches):
    from torch.profiler import profile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kineto.json")
        profiler = profile(activities=activities)
        profiler.start()
        loop(2000)
        result = rounds(3)
        began = time.perf_counter()
        profiler.stop()
        stop = time.perf_counter() - began
        began = time.perf_counter()
        profiler.export_chrome_trace(path)
        export = time.perf_counter() - began
        size = os.path.getsize(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    counts = collections.Counter(event.get("cat", "") for event in events)
    return result | {
        "stop_ms": round(stop * 1e3, 1),
        "export_ms": round(export * 1e3, 1),
        "bytes_per_launch": round(size / launches, 1),
        "kernels": counts["kernel"],
        "calls": counts["cuda_runtime"],
        "operators": counts["cpu_op"],
    }


mode = sys.argv[1]
loop(2000)
if mode in ("kineto", "both"):
    from torch.profiler import ProfilerActivity as A

    wanted = {"cuda": [A.CUDA], "cpu+cuda": [A.CPU, A.CUDA]}
    if mode == "both":
        del wanted["cuda"]
    for name, activities in wanted.items():
        say(mode=name, launched=3 * N + 2000, **profiled(activities, 3 * N + 2000))
    if mode == "both":
        loop(2000)
else:
    ranges = torch.autograd.profiler.emit_nvtx() if mode == "nvtx" else contextlib.nullcontext()
    with ranges:
        loop(2000)
        result = rounds(7)
    rss = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    say(mode=mode, launched=2000 + 2000 + 7 * N, rss_mb=round(rss / 2**20, 1), **result)
