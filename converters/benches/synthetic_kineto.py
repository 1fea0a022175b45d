#!/usr/bin/env python3
"""Makes a synthetic Kineto trace: synthetic_kineto.py MEGABYTES OUT

Training steps as PyTorch writes them with shapes: operators, calls that launch, kernels with all
their arguments, arrows, memory. The layout is Kineto's, white space included. The same size gives
the same file.
"""

import random
import sys

KERNELS = [
    f"void at::native::vectorized_elementwise_kernel<{n}, at::native::Functor{n}<float>, "
    f"std::array<char*, {n}ul> >(int, at::native::Functor{n}<float>, std::array<char*, {n}ul>)"
    for n in range(60)
]
OPS = [f"aten::op_{n}" for n in range(150)]


def step(rng, clock, number, out):
    for _ in range(200):
        op, corr = rng.choice(OPS), number[0]
        shape = f"[[{rng.choice([8, 16, 32])}, {rng.choice([64, 1024])}], [], []]"
        dur = rng.randrange(5_000, 90_000)
        ts = f"{clock[0] // 1000}.{clock[0] % 1000:03}"
        launch = clock[0] + 1500
        lts = f"{launch // 1000}.{launch % 1000:03}"
        start = launch + rng.randrange(4_000, 9_000)
        kts = f"{start // 1000}.{start % 1000:03}"
        kdur = rng.randrange(1_000, 60_000)
        kernel = rng.choice(KERNELS)
        grid = rng.choice([1, 48, 3072])
        out.append(f"""  {{
    "ph": "X", "cat": "cpu_op", "name": "{op}", "pid": 488, "tid": 488,
    "ts": {ts}, "dur": {dur // 1000}.{dur % 1000:03},
    "args": {{
      "External id": {corr},"Record function id": 0, "Concrete Inputs": ["", "1", ""], "Input type": ["float", "Scalar", ""], "Input Strides": [[1024, 1], [], []], "Input Dims": {shape}, "Ev Idx": {corr}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 488, "tid": 488,
    "ts": {lts}, "dur": 2.500,
    "args": {{
      "External id": {corr},"cbid": 211, "correlation": {corr}
    }}
  }},
  {{
    "ph": "s", "id": {corr}, "pid": 488, "tid": 488, "ts": {lts},
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": 7,
    "ts": {kts}, "dur": {kdur // 1000}.{kdur % 1000:03},
    "args": {{
      "External id": {corr},"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {corr}, "registers per thread": 32, "shared memory": 0, "blocks per SM": {grid / 132}, "warps per SM": {grid / 33}, "grid": [{grid}, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": {min(100, grid)}
    }}
  }},
  {{
    "ph": "f", "id": {corr}, "pid": 0, "tid": 7, "ts": {kts},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
""")
        number[0] += 1
        clock[0] += max(dur, kdur) + rng.randrange(500, 4_000)


def main():
    size, path = float(sys.argv[1]) * 1e6, sys.argv[2]
    rng, clock, number = random.Random(1), [4_311_694_680_926_841], [1]
    with open(path, "w", encoding="utf-8") as file:
        written = file.write("""
  {
    "schemaVersion": 1,
    "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "numSms": 132
    }
    ],
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
""")
        while written < size:
            out = []
            step(rng, clock, number, out)
            written += file.write("".join(out))
        file.write("""  {
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "", "tid": "", "ts": %d.000
  }
  ],
  "traceName": "synthetic.json"
}
""" % (clock[0] // 1000 + 1000))


main()
