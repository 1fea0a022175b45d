"""A loop bound by launches: 20,000 tiny additions a round.

loop.py kineto        under torch.profiler, CUDA alone and with the CPU
loop.py both          torch.profiler while something else records: what Kineto got
loop.py turns [nvtx | cuda | cpu+cuda]
                      a round for each line of stdin; with ranges, or under torch.profiler
"""
import collections, contextlib, json, os, sys, tempfile, time
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


def say(**what):
    print(json.dumps(what), flush=True)


def profiled(activities, launches):
    from torch.profiler import profile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kineto.json")
        profiler = profile(activities=activities)
        profiler.start()
        loop(2000)
        for _ in range(3):
            a_round()
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
    return {
        "stop_ms": round(stop * 1e3, 1),
        "export_ms": round(export * 1e3, 1),
        "bytes_per_launch": round(size / launches, 1),
        "kernels": counts["kernel"],
        "calls": counts["cuda_runtime"],
        "operators": counts["cpu_op"],
    }


def a_turn():
    """On one processor, the same for all who take turns."""
    anywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(anywhere)})
    loop(500)
    us = a_round()
    os.sched_setaffinity(0, anywhere)
    return us


def turns(how):
    launched = 2000
    with torch.autograd.profiler.emit_nvtx() if how == "nvtx" else contextlib.nullcontext():
        say(ready=True)
        for _ in sys.stdin:
            if how in ("", "nvtx"):
                us = a_turn()
            else:
                from torch.profiler import ProfilerActivity as A, profile

                with profile(activities=[A.CUDA] if how == "cuda" else [A.CPU, A.CUDA]):
                    us = a_turn()
            launched += 500 + N
            say(us=us)
    rss = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    say(launched=launched, rss_mb=round(rss / 2**20, 1))


mode = sys.argv[1]
loop(2000)
if mode == "turns":
    turns(*(sys.argv[2:] or [""]))
else:
    from torch.profiler import ProfilerActivity as A

    wanted = {"cuda": [A.CUDA], "cpu+cuda": [A.CPU, A.CUDA]}
    if mode == "both":
        del wanted["cuda"]
    for name, activities in wanted.items():
        say(mode=name, launched=3 * N + 2000, **profiled(activities, 3 * N + 2000))
    if mode == "both":
        loop(2000)
