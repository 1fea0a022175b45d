#!/usr/bin/env python3
"""What `import kymograph` takes: processes that import it beside some that import nothing, in turns.

usage: PYTHONPATH=FOLDER python benches/python_import.py [TURNS]

FOLDER as for python_load.py. Prints milliseconds of wall-clock and of processor time: of the import
alone, as the process itself measures it, and modules that take longest (`-X importtime`).
"""

import statistics
import subprocess
import sys

PROGRAM = """
import time
wall, cpu = time.perf_counter(), time.process_time()
import kymograph
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def main(turns=21):
    taken = []
    for _ in range(int(turns)):
        done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
        taken.append([float(word) * 1e3 for word in done.stdout.split()])
    for name, times in zip(("wall-clock", "processor"), zip(*taken)):
        print(f"{name:10} best {min(times):5.1f} ms, median {statistics.median(times):5.1f} ms")
    command = [sys.executable, "-X", "importtime", "-c", "import kymograph"]
    said = subprocess.run(command, stderr=subprocess.PIPE, text=True).stderr.splitlines()
    rows = [line.removeprefix("import time:").split("|") for line in said if "kymograph" in line]
    for own, _, name in sorted(rows, key=lambda row: -int(row[0]))[:6]:
        print(f"{int(own) / 1000:8.1f} ms  {name.strip()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
