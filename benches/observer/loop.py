# A loop of small operators, for `run`: prints nanoseconds per operator, the least of many rounds.
# usage: loop.py none|kymo|floor|kineto [shapes]
import ctypes, os, sys, time

import torch

mode, shapes = sys.argv[1], len(sys.argv) > 2
torch.set_num_threads(1)
a, b, c = torch.ones(8), torch.ones(8), torch.empty(8)
CALLS, ROUNDS = 2000, 60


def rounds():
    best = float("inf")
    for _ in range(ROUNDS):
        before = time.thread_time_ns()
        for _ in range(CALLS):
            torch.add(a, b, out=c)
        best = min(best, (time.thread_time_ns() - before) / CALLS)
    return best


if mode == "floor":
    maps = (line.split()[-1] for line in open("/proc/self/maps") if "libtorch_cpu.so" in line)
    library = ctypes.CDLL(next(maps))
    floor = ctypes.CDLL(os.environ["FLOOR"])
    assert floor.floor_start(ctypes.c_void_p(library._handle), int(shapes)) == 0
if mode == "kineto":
    from torch.profiler import ProfilerActivity, profile

    with torch.inference_mode(), profile(activities=[ProfilerActivity.CPU], record_shapes=shapes):
        result = rounds()
else:
    with torch.inference_mode():
        result = rounds()
print("%.1f" % result)
