#!/usr/bin/env python3
"""Two processes and two GPUs: one trace, in which nothing is mixed up.

usage: ddp.py --kymo KYMO [--ranks N] [--keep FOLDER]    records, converts and checks
       ddp.py --check KYMO.json TRUTH                    checks
       torchrun --nproc-per-node 2 ddp.py                the program alone

Each rank trains a small model under DistributedDataParallel (NCCL; gloo without GPUs), then
adds a number so many times and reduces a tensor so many times, and prints what it did. In
the trace every piece of work must have one arrow, from a call of the process whose device
it ran on; and within the ranges `adds` and `reduces` there must be as many kernels as each
rank printed, and as many in each step as in those of the other ranks.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
STEPS, ADDS, REDUCES = 10, 1000, 50


def rank():
    import torch
    import torch.distributed as dist
    from torch.autograd.profiler import record_function

    number, cuda = int(os.environ["LOCAL_RANK"]), torch.cuda.is_available()
    device = torch.device("cuda", number) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    torch.manual_seed(1)
    net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).to(device)
    net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[number] if cuda else None)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x = torch.ones(64, 512, device=device)

    def step():
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    flat = torch.zeros(1 << 16, device=device)
    dist.all_reduce(flat)
    flat.add_(1.0)
    for _ in range(STEPS):
        with record_function("step"):
            step()
    with record_function("adds"):
        for _ in range(ADDS):
            flat.add_(1.0)
    with record_function("reduces"):
        for _ in range(REDUCES):
            dist.all_reduce(flat)
    if cuda:
        torch.cuda.synchronize()
    truth = {"rank": dist.get_rank(), "pid": os.getpid(), "device": number if cuda else None,
             "steps": STEPS, "adds": ADDS * cuda, "reduces": REDUCES * cuda}
    # One write: the ranks share the output.
    os.write(1, f"truth {json.dumps(truth)}\n".encode())
    dist.destroy_process_group()


def record(options):
    folder = pathlib.Path(options.keep or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    trace, converted, truth = (folder / name for name in ("ddp.pftrace", "ddp.json", "truth"))
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone",
           "--nproc-per-node", str(options.ranks), str(pathlib.Path(__file__).resolve())]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KYMOGRAPH_")}
    for command in (
        [options.kymo, "record", "-o", str(trace), "--", *run],
        [options.kymo, "convert", str(trace), str(converted)],
    ):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-3000:]}")
        if command[1] == "record":
            print("\n".join(l for l in done.stderr.splitlines() if l.startswith("kymo: ")))
            truth.write_text(done.stdout)
    return converted, truth


def load(path):
    """The work of a trace, each with the processes and times that arrows to it come from."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    begun = collections.defaultdict(list)
    for event in events:
        if event.get("ph") == "s" and event.get("cat") == "ac2g":
            begun[event["id"]].append((event["pid"], event["ts"]))
    arrows = collections.defaultdict(list)
    for event in events:
        if event.get("ph") == "f" and event.get("cat") == "ac2g":
            arrows[event["pid"], event["tid"], event["ts"]] += begun[event["id"]]
    slices = [e for e in events if e.get("ph") == "X"]
    work = [(e, arrows[e["pid"], e["tid"], e["ts"]]) for e in slices if e.get("cat") in WORK]
    return slices, work


def check(converted, truth):
    with open(truth, encoding="utf-8") as file:
        truths = [json.loads(line[6:]) for line in file if line.startswith("truth ")]
    slices, work = load(converted)
    device_of = {t["pid"]: t["device"] for t in truths}
    wrong = []
    without = sum(1 for _, calls in work if len(calls) != 1)
    crossing = sum(1 for e, calls in work for pid, _ in calls if device_of.get(pid) != e["pid"])
    early = sum(1 for e, calls in work for _, ts in calls if ts > e["ts"])
    print(f"{len(work)} pieces of work: {without} without exactly one arrow, "
          f"{crossing} arrows from another process or device, {early} arrows back in time")
    wrong += ["arrows"] * bool(without or crossing or early)
    print(f"{'rank':>4}{'pid':>9}{'device':>8}{'work':>8}{'steps':>7}  {'kernels of a step':20}"
          f"{'adds':>12}{'reduces':>12}")
    of_steps = set()
    for t in sorted(truths, key=lambda t: t["rank"]):
        asked = [(calls[0][1], e) for e, calls in work if calls and calls[0][0] == t["pid"]]

        def kernels(name):
            ranges = [(s["ts"], s["ts"] + s["dur"]) for s in slices
                      if s["name"] == name and s["pid"] == t["pid"] and s.get("cat") != "gpu_user_annotation"]
            return [sum(1 for at, e in asked if begin <= at <= end and e["cat"] == "kernel")
                    for begin, end in sorted(ranges)]

        steps, adds, reduces = kernels("step"), kernels("adds"), kernels("reduces")
        of_steps.add(tuple(steps))
        print(f"{t['rank']:4}{t['pid']:9}{str(t['device']):>8}{len(asked):8}{len(steps):7}  "
              f"{str(sorted(set(steps))):20}{sum(adds):>6}/{t['adds']:<5}{sum(reduces):>6}/{t['reduces']:<5}")
        wrong += [f"rank {t['rank']}: {name}" for name, found in (
            ("steps", len(steps) == t["steps"]), ("adds", adds == [t["adds"]]),
            ("reduces", reduces == [t["reduces"]])) if not found]
    wrong += ["ranks differ in the kernels of their steps"] * (len(of_steps) > 1)
    print("right" if not wrong else "WRONG: " + ", ".join(wrong))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kymo", help="the command to record with")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--keep", metavar="FOLDER", help="where the trace is left")
    parser.add_argument("--check", nargs=2, metavar=("TRACE", "TRUTH"))
    options = parser.parse_args()
    if options.check:
        return check(*options.check)
    if options.kymo:
        return check(*record(options))
    return rank()


if __name__ == "__main__":
    sys.exit(main())
