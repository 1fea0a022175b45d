#!/usr/bin/env python3
"""usage: tile.py TRACE N OUT

A Kineto trace N times one after the other, as if the program had gone on: times, correlation
numbers, flow ids, `External id`s, Python ids and numbers of steps go on, too. TRACE may be packed
with gzip, and OUT is if its name ends with .gz. For measuring on traces of any size.
"""

import gzip
import json
import sys

source, times, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
opened = gzip.open(source) if source.endswith(".gz") else open(source, "rb")
trace = json.load(opened)
events = trace.pop("traceEvents")
timed = [event for event in events if "ts" in event and event.get("ph") != "M"]
begin = min(event["ts"] for event in timed)
span = max(event["ts"] + event.get("dur", 0) for event in timed) - begin + 1000
NUMBERS = ("correlation", "External id", "external id", "Ev Idx", "Python id", "Python parent id",
           "wait_on_cuda_event_record_corr_id", "Sequence number", "Record function id")


def most(values):
    return max((v for v in values if isinstance(v, int)), default=0) + 1


args = [event.get("args", {}) for event in events]
ahead = {name: most(of.get(name) for of in args) for name in NUMBERS}
ids = most(event.get("id") for event in events)
steps = [event["name"] for event in timed if event.get("name", "").startswith("ProfilerStep#")]
steps = [int(name.split("#")[1]) for name in steps]
step = max(steps) - min(steps) + 1 if steps else 0
# Names of this kind of argument are numbers of one series: calls wait for those of others.
ahead["wait_on_cuda_event_record_corr_id"] = ahead["correlation"]

write = gzip.open if out.endswith(".gz") else open
with write(out, "wt") as file:
    head = json.dumps(trace)[:-1]
    file.write(head + (", " if len(head) > 1 else "") + '"traceEvents": [\n')
    first = True
    for n in range(times):
        for event in events:
            own = event
            if n:
                if event.get("ph") == "M":
                    continue
                own = dict(event)
                if "ts" in own:
                    own["ts"] = round(own["ts"] + n * span, 3)
                if isinstance(own.get("id"), int):
                    own["id"] += n * ids
                name = own.get("name", "")
                if name.startswith("ProfilerStep#"):
                    own["name"] = f"ProfilerStep#{int(name.split('#')[1]) + n * step}"
                if "args" in own:
                    of = own["args"] = dict(own["args"])
                    for key in NUMBERS:
                        if isinstance(of.get(key), int) and of[key] > 0:
                            of[key] += n * ahead[key]
            file.write(("" if first else ",\n") + json.dumps(own))
            first = False
    file.write("\n]}\n")
