#!/usr/bin/env python3
"""Whether a recording shows what torch.profiler shows for the same program.

usage: compare_with_torch_profiler.py --kymo KYMO [--keep FOLDER] [ARGUMENTS OF train.py]
       compare_with_torch_profiler.py --traces KINETO.json KYMO.json

Runs train.py twice, under torch.profiler and under `kymo record`, converts the recording to
JSON, and compares what lies in the range `measured` of the main process: operators and
ranges by name, calls that ask for work by name, kernels, copies and sets by name and by
step. The work of a step is what was asked for between the beginning and the end of its
range, by any thread.

Prints a table, then every difference with what explains it. The status is 1 if something is
left unexplained.
"""
import argparse
import bisect
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
# What lies on a thread and is neither an operator nor a range.
NO_OPERATORS = CALLS + WORK + (
    "cuda_sync", "cuda_event", "overhead", "gpu_user_annotation", "python_function", "Trace", "ac2g")
ASKS = re.compile(r"Launch|Memcpy|Memset|MemPrefetch")

# Differences that are meant, by class: the first that matches a name explains it.
EXPLAINED = {
    "operators": [
        (r"ProfilerStep|^PyTorch Profiler|^Iteration Start|^Activity Buffer Request|^Buffer Flush"
         r"|^Runtime Triggered|^Lazy Function Loading|^Command Buffer Full|Overhead$",
         "torch.profiler speaks of itself"),
        (r"^cuda[A-Z]|^cu[A-Z]", "a call, listed among the operators"),
    ],
    "calls that ask for work": [],
    "kernels, copies and sets": [],
}


class Trace:
    """What is counted, of one of the two JSON files."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        slices = [e for e in events if e.get("ph") == "X"]
        measured = [e for e in slices if e.get("name") == "measured" and e.get("cat") not in NO_OPERATORS]
        if not measured:
            sys.exit(f"{path}: no range called `measured`")
        self.main = max(measured, key=lambda e: e["dur"])
        self.pid, self.begin = self.main["pid"], self.main["ts"]
        self.end = self.begin + self.main["dur"]
        self.steps = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices
                            if e["name"] == "step" and e["pid"] == self.pid and self.within(e)
                            and e.get("cat") not in NO_OPERATORS)
        host = [e for e in slices if e["pid"] == self.pid and self.within(e)]
        self.operators, self.elsewhere = self.split_operators(host)
        self.calls = asking(host)
        self.count_work(events, slices)
        self.annotations = collections.Counter(
            e["name"] for e in slices if e.get("cat") == "gpu_user_annotation")
        self.processes = {e["pid"] for e in slices if isinstance(e["pid"], int) and e.get("cat") not in WORK}

    def within(self, event):
        return self.begin <= event["ts"] <= self.end

    def split_operators(self, host):
        """Those of the main thread and of autograd's, and those of other threads."""
        found = [e for e in host if e.get("cat") not in NO_OPERATORS and e is not self.main]
        backward = {e["tid"] for e in found if e["name"].startswith("autograd::engine::")}
        here, elsewhere = collections.Counter(), collections.Counter()
        for event in found:
            ours = event["tid"] == self.main["tid"] or event["tid"] in backward
            (here if ours else elsewhere)[event["name"]] += 1
        return here, elsewhere

    def count_work(self, events, slices):
        """Work by name, and by step and name; a step is known by when the work was asked for."""
        asked = {}
        for event in slices:
            correlation = event.get("args", {}).get("correlation")
            if event.get("cat") in CALLS and event["pid"] == self.pid and correlation is not None:
                asked[correlation] = event["ts"]
        # The other way: an arrow from the call to where the work begins.
        begun = {e["id"]: e["ts"] for e in events if e.get("ph") == "s" and e.get("cat") == "ac2g"
                 and e["pid"] == self.pid}
        arrows = {(e["pid"], e["tid"], e["ts"]): begun[e["id"]] for e in events
                  if e.get("ph") == "f" and e.get("cat") == "ac2g" and e["id"] in begun}
        self.work, self.by_step = collections.Counter(), collections.defaultdict(collections.Counter)
        self.without_call, self.micros = 0, 0.0
        starts = [begin for begin, _ in self.steps]
        for event in slices:
            if event.get("cat") not in WORK:
                continue
            place = (event["pid"], event["tid"], event["ts"])
            at = asked.get(event["args"].get("correlation"), arrows.get(place))
            if at is None:
                # Asked for before the recording, or by another process.
                self.without_call += 1
                continue
            if not self.begin <= at <= self.end:
                continue
            name = spelled(event["name"])
            self.work[name] += 1
            self.micros += event["dur"]
            step = bisect.bisect_right(starts, at) - 1
            if step >= 0 and at <= self.steps[step][1]:
                self.by_step[step][name] += 1


def asking(host):
    """Calls that ask for work, without those of the driver within one of the runtime."""
    calls = [e for e in host if e.get("cat") in CALLS and ASKS.search(e["name"])]
    number = lambda event: event.get("args", {}).get("correlation")
    outer = {number(e) for e in calls if e["cat"] == "cuda_runtime"} - {None}
    return collections.Counter(
        e["name"] for e in calls if e["cat"] == "cuda_runtime" or number(e) not in outer)


def spelled(name):
    """Two demanglers differ in blanks and in suffixes of numbers."""
    return re.sub(r"(?<=[0-9])u?l{0,2}(?=[,>)])", "", re.sub(r"\s+", "", name))


def record(options, rest):
    """Makes both traces, in processes of their own."""
    folder = pathlib.Path(options.keep or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    kineto, trace, ours = (folder / name for name in ("kineto.json", "kymo.pftrace", "kymo.json"))
    train = [sys.executable, str(HERE / "train.py"), *rest]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KYMOGRAPH_")}
    settings = [word for setting in options.set for word in ("--set", setting)]
    for command in (
        [*train, "--profile", str(kineto)],
        [options.kymo, "record", "-o", str(trace), *settings, "--", *train],
        [options.kymo, "convert", str(trace), str(ours)],
    ):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-3000:]}")
        if command[1] == "record":
            print(done.stderr.strip())
    return kineto, ours


def differences(what, theirs, ours):
    """The names whose counts differ, printed; how many of them nothing explains."""
    left = 0
    for name in sorted(set(theirs) | set(ours)):
        if theirs[name] == ours[name]:
            continue
        why = next((why for pattern, why in EXPLAINED[what] if re.search(pattern, name)), None)
        left += why is None
        print(f"  {theirs[name]:6} {ours[name]:6}  {name[:110]}  [{why or 'UNEXPLAINED'}]")
    return left


def compare(theirs, ours):
    rows = [("", "torch.profiler", "kymo")]
    rows += [(what, sum(getattr(theirs, field).values()), sum(getattr(ours, field).values()))
             for what, field in KINDS]
    rows += [(f"  names of {what}", len(getattr(theirs, field)), len(getattr(ours, field)))
             for what, field in KINDS]
    rows += [
        ("steps", len(theirs.steps), len(ours.steps)),
        ("ms of work on devices", round(theirs.micros / 1e3, 2), round(ours.micros / 1e3, 2)),
        ("spans of ranges on devices", sum(theirs.annotations.values()), sum(ours.annotations.values())),
        ("work without a call", theirs.without_call, ours.without_call),
        ("operators of other threads", sum(theirs.elsewhere.values()), sum(ours.elsewhere.values())),
        ("processes", len(theirs.processes), len(ours.processes)),
    ]
    for row in rows:
        print(f"{row[0]:36}{row[1]:>16}{row[2]:>12}")
    left = 0
    for what, field in KINDS:
        print(f"\n{what}: torch.profiler, kymo")
        left += differences(what, getattr(theirs, field), getattr(ours, field))
    unlike = [n for n in range(max(len(theirs.steps), len(ours.steps)))
              if theirs.by_step[n] != ours.by_step[n]]
    print(f"\nsteps whose kernels, copies and sets differ: {unlike or 'none'}")
    lost = [name for name in theirs.annotations if name not in ours.annotations]
    print(f"ranges that only torch.profiler shows on devices: {lost or 'none'}")
    more = [name for name in ours.annotations if name not in theirs.annotations]
    print(f"ranges that only kymo shows on devices (torch.profiler keeps the innermost): {more or 'none'}")
    return left + len(unlike)


KINDS = [
    ("operators", "operators"),
    ("calls that ask for work", "calls"),
    ("kernels, copies and sets", "work"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kymo", default="kymo", help="the command to record with")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for kymo record")
    parser.add_argument("--keep", metavar="FOLDER", help="where the traces are left")
    parser.add_argument("--traces", nargs=2, metavar=("KINETO", "KYMO"), help="compare these")
    options, rest = parser.parse_known_args()
    kineto, ours = options.traces or record(options, rest)
    left = compare(Trace(kineto), Trace(ours))
    print(f"\n{left} differences unexplained")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
