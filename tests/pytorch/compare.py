# usage: compare.py OURS.json THEIRS.json
#
# Compares one process recorded by us and by torch.profiler at once: the operators and annotations
# of theirs must be in ours by name, count and arguments, in the time that theirs lasted; the
# arrows, the allocations, and the work of devices under the same operators as well. Says every
# difference, and ends with 1 if there is one.
import collections
import json
import re
import sys

ours, theirs = (json.load(open(path)) for path in sys.argv[1:3])
COLLECTIVE = ("Collective name", "dtype", "In msg nelems", "Out msg nelems", "In split size",
              "Out split size", "Group size", "Process Group Name", "Process Group Description",
              "Process Group Ranks", "Dst Rank", "Src Rank", "Seq")
ARGS = ("Sequence number", "Fwd thread id", "Input Dims", "Input Strides", "Input type",
        "Concrete Inputs", "Rank", "Global rank start", "Global rank stride") + COLLECTIVE
base = (ours["baseTimeNanoseconds"] - theirs["baseTimeNanoseconds"]) / 1000


def operators(trace):
    categories = ("cpu_op", "user_annotation")
    return [e for e in trace["traceEvents"] if e.get("cat") in categories and e["ph"] == "X"]


kineto = operators(theirs)
first = min(e["ts"] for e in kineto) - base - 100
last = max(e["ts"] + e["dur"] for e in kineto) - base + 100


def inside(events):
    return [e for e in events if first <= e["ts"] and e["ts"] + e.get("dur", 0) <= last]


def memory(trace):
    return [e for e in trace["traceEvents"] if e["name"] == "[memory]"]


def says(events, arg):
    return collections.Counter(
        (e["cat"], e["name"], json.dumps(e.get("args", {}).get(arg))) for e in events)


bad = 0


def compare(what, ours, theirs):
    global bad
    for key, count in ((theirs - ours) + collections.Counter()).items():
        print("%s: only torch.profiler has %d of %s" % (what, count, key))
        bad = 1
    for key, count in ((ours - theirs) + collections.Counter()).items():
        print("%s: only kymo has %d of %s" % (what, count, key))
        bad = 1


# Steps that optimizers count are not there in theirs unless the program steps it.
named = {e["name"] for e in kineto}
mine = [e for e in inside(operators(ours))
        if not e["name"].startswith("ProfilerStep#") or e["name"] in named]
for arg in ARGS:
    compare(arg, says(mine, arg), says(kineto, arg))
for kind in "sf":
    arrows = [collections.Counter(e["ph"] for e in events if e.get("cat") == "fwdbwd")[kind]
              for events in (inside(ours["traceEvents"]), theirs["traceEvents"])]
    compare("arrows", collections.Counter({kind: arrows[0]}), collections.Counter({kind: arrows[1]}))
def work(trace, operators):
    """Kernels, copies and sets by name and by the operator around their launch."""
    names = {e["args"]["External id"]: e["name"] for e in operators}
    # Demanglers differ in blanks and in suffixes of numbers.
    spelled = lambda name: re.sub(r"(?<=[0-9])u?l{0,2}(?=[,>)])", "", re.sub(r"\s+", "", name))
    found = collections.Counter()
    for event in trace["traceEvents"]:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            operator = names.get(event["args"].get("External id"))
            if operator is not None:
                found[event["cat"], spelled(event["name"]), operator] += 1
    return found


def collectives(trace, operators):
    """What kernels say of the collective that they are of."""
    names = {e["args"]["External id"] for e in operators}
    kernels = [e["args"] for e in trace["traceEvents"]
               if e.get("cat") == "kernel" and e["args"].get("External id") in names]
    return collections.Counter(
        tuple((arg, args[arg]) for arg in COLLECTIVE if arg in args) for args in kernels)


compare("collectives", collectives(ours, mine), collectives(theirs, kineto))
launched = work(theirs, kineto)
compare("work", work(ours, mine), launched)
def calls(trace, first, last):
    """Calls of Python functions by name and caller, in a time; built-in ones are not recorded."""
    functions = [e for e in trace["traceEvents"]
                 if e.get("cat") == "python_function" and e["ph"] == "X"]
    by_id = {e["args"]["Python id"]: e for e in functions}
    # The folder before a module's differs in how it is shortened. Theirs have the line at which a
    # generator goes on, ours that of its definition: without lines they are the same.
    spelled = lambda name: re.sub(r"^.*/(?=[^/]*\.py\()|(?<=\.py)\([0-9]+\)", "", name)
    is_built_in = lambda event: event["name"].startswith("<")

    def caller(event):
        event = by_id.get(event["args"]["Python parent id"])
        while event is not None and is_built_in(event):
            event = by_id.get(event["args"]["Python parent id"])
        return event

    found = collections.Counter()
    for event in functions:
        if first <= event["ts"] and event["ts"] + event["dur"] <= last and not is_built_in(event):
            around = caller(event)
            # What was open before is not the same.
            if around is not None and first <= around["ts"]:
                found[spelled(event["name"]), spelled(around["name"])] += 1
    return found


python = calls(theirs, first + 100 + base, last - 100 + base)
if python:
    compare("python_function", calls(ours, first + 100, last - 100), python)
    print("  %d calls of Python compared" % sum(python.values()))
blocks = memory(theirs)
if blocks:
    allocated = [collections.Counter((e["args"]["Bytes"], e["args"]["Device Type"],
                                      e["args"]["Device Id"]) for e in events)
                 for events in (inside(memory(ours)), blocks)]
    compare("[memory]", *allocated)
print("  %d operators and annotations, %d allocations, %d kernels, copies and sets compared"
      % (len(kineto), len(blocks), sum(launched.values())))
sys.exit(bad)
