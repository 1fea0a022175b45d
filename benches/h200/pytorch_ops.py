"""Training with PyTorch, and whether a trace of it has the operators that it ran.

    python pytorch_ops.py --counts expected.json      what torch.profiler counts
    kymo record -o t.pftrace -- python pytorch_ops.py
    trace_processor_shell -q <(python pytorch_ops.py --sql) t.pftrace > found.csv
    python pytorch_ops.py --compare expected.json found.csv

The program is a small transformer: a DataLoader with workers, forward, backward, optimizer,
two side streams, a CUDA graph, and threads of its own. Without CUDA it does what a CPU can.
Each line of what --compare prints is a difference; the status says whether there are any.

torch.profiler sees the thread that starts it and those of autograd; a recording also sees
the program's own threads, and the workers. So the query leaves out what lies in a range
`user thread`, other processes, and what was before and after the range `measured`.
"""

import argparse
import collections
import csv
import json
import re
import sys
import threading

SQL = """
WITH measured AS (
  SELECT s.ts, s.ts + s.dur AS till, t.upid FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id JOIN thread t USING (utid)
  WHERE s.name = 'measured')
SELECT s.name AS name, COUNT(*) AS n FROM measured m, slice s
JOIN thread_track tt ON tt.id = s.track_id JOIN thread t USING (utid)
WHERE s.ts BETWEEN m.ts AND m.till AND t.upid = m.upid
  AND s.category IN ('nvtx', 'PyTorch') AND s.name != 'user thread'
  AND NOT EXISTS (SELECT 1 FROM ancestor_slice(s.id) a WHERE a.name = 'user thread')
GROUP BY 1 ORDER BY 1
"""

# Calls of the CUDA runtime and driver, which torch.profiler lists among the operators.
CUDA_CALL = re.compile(r"cu(da)?[A-Z]\w*$|Activity Buffer Request$|.*Overhead$|Lazy Function")


class Samples:
    """A data set."""

    def __len__(self):
        return 256

    def __getitem__(self, n):
        import torch

        return torch.arange(n, n + 32) % 97


def model(torch, device):
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
    parts = [torch.nn.Embedding(97, 64), layer, torch.nn.Linear(64, 97)]
    return torch.nn.Sequential(*parts).to(device)


def in_threads(torch, device):
    def work():
        with torch.autograd.profiler.record_function("user thread"):
            x = torch.ones(32, 32, device=device, requires_grad=True)
            x.mm(x).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def capture(torch):
    """A CUDA graph of ten products."""
    x = torch.ones(128, 128, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        x.mm(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            x.mm(x)
    return graph


def on_streams(torch):
    streams = [torch.cuda.Stream() for _ in range(2)]
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.ones(256, 256, device="cuda").mul_(2.0).sum()
        torch.cuda.current_stream().wait_stream(stream)


class Training:
    def __init__(self, torch, options):
        self.torch, self.options = torch, options
        self.cuda = torch.cuda.is_available()
        self.device = "cuda" if self.cuda else "cpu"
        self.net = model(torch, self.device)
        self.forward = torch.compile(self.net) if options.compile else self.net
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.graph = capture(torch) if self.cuda else None
        self.loss = torch.nn.CrossEntropyLoss()

    def run(self, steps):
        torch = self.torch
        loader = torch.utils.data.DataLoader(Samples(), 16, num_workers=2, pin_memory=self.cuda)
        batches = iter(loader)
        for n in range(steps):
            with torch.autograd.profiler.record_function("step"):
                self.step(next(batches))
            if n % 2 == 0:
                in_threads(torch, self.device)
        if self.cuda:
            torch.cuda.synchronize()

    def step(self, batch):
        batch = batch.to(self.device, non_blocking=True)
        out = self.forward(batch)
        loss = self.loss(out.flatten(0, 1), batch.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.cuda:
            on_streams(self.torch)
            self.graph.replay()


def train(options):
    import torch

    torch.manual_seed(1)
    training = Training(torch, options)
    training.run(3)
    if not options.counts:
        with torch.autograd.profiler.record_function("measured"):
            training.run(options.steps)
        return
    with torch.profiler.profile() as profiler:
        with torch.autograd.profiler.record_function("measured"):
            training.run(options.steps)
    on_cpu = [e for e in profiler.events() if str(e.device_type).endswith("CPU")]
    names = [e.name for e in on_cpu if not CUDA_CALL.match(e.name)]
    with open(options.counts, "w", encoding="utf-8") as out:
        json.dump(collections.Counter(names), out, indent=1, sort_keys=True)


def compare(expected, found):
    with open(expected, encoding="utf-8") as file:
        expected = collections.Counter(json.load(file))
    with open(found, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) == 2 and row[1].isdigit()]
    found = collections.Counter({name: int(n) for name, n in rows})
    different = [n for n in sorted(expected | found) if expected[n] != found[n]]
    for name in different:
        print("%6d by torch.profiler, %6d in the trace: %s" % (expected[name], found[name], name))
    print("%d names, %d operators in the trace, %d names differ"
          % (len(found), sum(found.values()), len(different)))
    return 1 if different or not found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    parser.add_argument("--counts", metavar="FILE", help="run under torch.profiler; its counts")
    parser.add_argument("--sql", action="store_true", help="print the query for a trace")
    parser.add_argument("--compare", nargs=2, metavar=("EXPECTED", "FOUND"))
    options = parser.parse_args()
    if options.sql:
        print(SQL.strip() + ";")
    elif options.compare:
        return compare(*options.compare)
    else:
        train(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
