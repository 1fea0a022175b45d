"""Tries to start a command that does not exist, then annotates until its input ends."""

import os
import select
import subprocess
import sys
import time

import nvtx

with nvtx.annotate("before"):
    time.sleep(0.01)
try:
    subprocess.run(["a-command-that-is-missing"])
except FileNotFoundError:
    print(os.getpid(), flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    with nvtx.annotate("loop"):
        time.sleep(0.005)
