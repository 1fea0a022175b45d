#!/usr/bin/env python3
"""usage: two_cores.py KYMO JSON [TURNS]

How much faster `kymo convert JSON OUT.pftrace` is on two cores than on one, in turns, and how many
MB of JSON a second either reads. The file is read once before. Run it at the highest priority
(`chrt -f 50`) on a machine that does other work.

The last column is the processor time on two cores by that on one. Where it is far above 1, the
cores are far from one another, as those of a virtual machine are at times: what one hands to the
other passes through memory.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

kymo, trace = sys.argv[1:3]
turns = int(sys.argv[3]) if len(sys.argv) > 3 else 10
megabytes = os.path.getsize(trace) / 1e6


def run(cores, folder):
    """Seconds by the clock, and of processors outside the kernel."""
    out = os.path.join(folder, "out.pftrace")
    began = time.monotonic()
    pin = lambda: os.sched_setaffinity(0, cores)
    process = subprocess.Popen(
        [kymo, "convert", trace, out], preexec_fn=pin,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    if status:
        sys.exit(f"kymo ended with {status}")
    os.remove(out)
    return took, usage.ru_utime


cores = sorted(os.sched_getaffinity(0))[:2]
if len(cores) < 2:
    sys.exit("this machine has one core")
rows = []
with tempfile.TemporaryDirectory() as folder:
    run(set(cores), folder)
    for _ in range(turns):
        (one, one_user), (two, two_user) = run({cores[0]}, folder), run(set(cores), folder)
        rows.append((one, two, one / two, two_user / one_user))
        print(f"{megabytes / one:6.0f} MB/s  {megabytes / two:6.0f} MB/s  {one / two:5.2f} x  "
              f"{two_user / one_user:5.2f}", flush=True)
near = [row for row in rows if row[3] < 1.25]
for what, rows in (("all turns", rows), ("turns with cores near one another", near)):
    if rows:
        one, two, ratio, _ = (statistics.median(column) for column in zip(*rows))
        print(f"median of {len(rows)}, {what}: {megabytes / one:.0f} and {megabytes / two:.0f} MB/s, "
              f"{ratio:.2f} x")
