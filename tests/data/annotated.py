"""An unmodified program that says what it does through NVTX and ITT, and keeps its own log.

usage: annotated.py LOG

It uses the PyPI packages `nvtx` and `ittapi`: threads, domains, nested and overlapping
ranges, a forked child and a spawned one. The log has a line of JSON for every range, with
the times (CLOCK_BOOTTIME, nanoseconds) right before and after the calls that began and
ended it, as the program saw them.
"""

import json
import multiprocessing
import os
import sys
import threading
import time

import ittapi
import nvtx


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Log:
    """Collects the ranges of one process and appends them to the file at the end."""

    def __init__(self, path):
        self.path, self.rows, self.lock = path, [], threading.Lock()

    def add(self, kind, name, domain, parent, begin, end, thread=None):
        row = {
            "pid": os.getpid(),
            "thread": thread or threading.current_thread().name,
            "kind": kind,
            "name": name,
            "domain": domain,
            "parent": parent,
            "begin": begin,
            "end": end,
        }
        with self.lock:
            self.rows.append(row)

    def write(self):
        with open(self.path, "a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in self.rows)


class Nvtx:
    """A range on this thread, in a domain; the innermost one around it is its parent."""

    stack = threading.local()

    def __init__(self, log, name, domain=None, **more):
        self.log, self.name, self.domain, self.more = log, name, domain, more

    def __enter__(self):
        stack = Nvtx.stack.__dict__.setdefault("names", [])
        self.parent = stack[-1] if stack else None
        stack.append(self.name)
        before = now()
        nvtx.push_range(self.name, domain=self.domain, **self.more)
        self.begin = (before, now())

    def __exit__(self, *_):
        before = now()
        nvtx.pop_range(domain=self.domain)
        end = (before, now())
        Nvtx.stack.names.pop()
        self.log.add("push", self.name, self.domain, self.parent, self.begin, end)


class Itt:
    """As Nvtx, with ITT tasks."""

    def __init__(self, log, name, domain):
        self.log, self.name, self.domain = log, name, domain
        self.task = ittapi.task(name, domain=domain)

    def __enter__(self):
        stack = Nvtx.stack.__dict__.setdefault("names", [])
        self.parent = stack[-1] if stack else None
        stack.append(self.name)
        before = now()
        self.task.begin()
        self.begin = (before, now())

    def __exit__(self, *_):
        before = now()
        self.task.end()
        end = (before, now())
        Nvtx.stack.names.pop()
        self.log.add("push", self.name, self.domain, self.parent, self.begin, end)


def nested(log, rounds):
    for n in range(rounds):
        with Nvtx(log, "step", color="blue", payload=n):
            with Nvtx(log, "forward", domain="model"):
                with Nvtx(log, f"layer {n % 3}", domain="model"):
                    pass
                with Itt(log, "kernel", "engine"):
                    pass
            with Nvtx(log, "backward", domain="model"):
                pass


def overlapping(log):
    """Ranges that cross each other, begun and ended by calls of their own."""
    open_ranges = []
    for n in range(6):
        before = now()
        handle = nvtx.start_range(f"request {n}", domain="server")
        open_ranges.append((n, handle, (before, now())))
        if n >= 2:
            end_range(log, open_ranges.pop(0))
    while open_ranges:
        end_range(log, open_ranges.pop())


def end_range(log, started):
    n, handle, begin = started
    before = now()
    nvtx.end_range(handle)
    log.add("range", f"request {n}", "server", None, begin, (before, now()))


def crossing(log):
    """Two domains on one thread, the outer one popped first."""
    before = now()
    nvtx.push_range("outer", domain="left")
    outer = (before, now())
    before = now()
    nvtx.push_range("crossing", domain="right")
    inner = (before, now())
    before = now()
    nvtx.pop_range(domain="left")
    around = getattr(Nvtx.stack, "names", [])
    log.add("push", "outer", "left", around[-1] if around else None, outer, (before, now()))
    before = now()
    nvtx.pop_range(domain="right")
    # It lies beside, not inside.
    log.add("push", "crossing", "right", None, inner, (before, now()))


def work(log, rounds):
    nested(log, rounds)
    overlapping(log)
    crossing(log)
    nvtx.mark("milestone", domain="server")


def child(path):
    # A forked child has its parent's stack; what is open there is open there only.
    Nvtx.stack.names = []
    log = Log(path)
    work(log, 20)
    log.write()


def main():
    path = sys.argv[1]
    log = Log(path)
    with Nvtx(log, "main"):
        threads = [threading.Thread(target=work, args=(log, 50), name=f"t{n}") for n in range(3)]
        for thread in threads:
            thread.start()
        work(log, 50)
        for thread in threads:
            thread.join()
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            process = context.Process(target=child, args=(path,))
            process.start()
            process.join()
    log.write()


if __name__ == "__main__":
    main()
