"""subprocess.run of a command that does not exist: vfork and _exit."""

import subprocess
import time

import nvtx

nvtx.mark("start")
slowest = 0
for _ in range(3):
    began = time.monotonic()
    try:
        subprocess.run(["a-command-that-is-missing"])
    except FileNotFoundError as error:
        print(error, flush=True)
    slowest = max(slowest, time.monotonic() - began)
for _ in range(200):
    with nvtx.annotate("after"):
        time.sleep(0.001)
print("slow" if slowest > 1 else "quick")
