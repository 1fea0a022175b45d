# A training that says nothing of Kymograph: PyTorch's optimizer tells where iterations end, and
# each batch is an NVTX range.
# With `profiler`, torch.profiler's step does so as well, for the same iterations.

import os
import sys
import threading

import nvtx
import torch
from torch.autograd.profiler import KinetoStepTracker

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()

optimizer = torch.optim.SGD()
count = 0
while not ended.wait(0.002):
    with nvtx.annotate(f"batch {count}"):
        torch.add()
        optimizer.step()
    if "profiler" in sys.argv:
        KinetoStepTracker.increment_step("ProfilerStep")
    count += 1
    if count == 1:
        os.write(1, b"begun %d\n" % os.getpid())
print("ended", count, flush=True)
