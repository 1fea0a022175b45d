# Threads that get their names at different times, and each record one range or two of the name
# that they are expected to have. Knows Kymograph only as the library that `kymo record` has
# loaded.

import ctypes
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

library = ctypes.CDLL(None)


def work(name):
    library.kymo_push_str(0, name.encode(), None, 0)
    library.kymo_pop()


def run(target, *args, **kwargs):
    thread = threading.Thread(target=target, args=args, **kwargs)
    thread.start()
    thread.join()


def renamed_first():
    threading.current_thread().name = "renamed before its first range"
    work("renamed before its first range")


def renamed_later():
    work("renamed after its first range")
    threading.current_thread().name = "renamed after its first range"


class Odd(threading.Thread):
    @property
    def name(self):
        raise RuntimeError("no name")

    @name.setter
    def name(self, value):
        pass

    def run(self):
        work("odd")


if "early" in sys.argv:
    # Before anything was recorded.
    ready, go = threading.Event(), threading.Event()

    def wait():
        ready.set()
        go.wait()
        work("was there before the first range of all")

    early = threading.Thread(target=wait, name="was there before the first range of all")
    early.start()
    ready.wait()
    work("the main one")
    go.set()
    early.join()

run(work, "named with more than fifteen bytes", name="named with more than fifteen bytes")
run(renamed_first, name="x")
run(renamed_later, name="y")
run(work, "Ünïcode → 名前", name="Ünïcode → 名前")
run(work, "surrogate", name="surr\udc80gate")

ready, go = threading.Event(), threading.Event()


def wait():
    work("renamed by another")
    ready.set()
    go.wait()


other = threading.Thread(target=wait, name="z")
other.start()
ready.wait()
other.name = "renamed by another"
go.set()
other.join()

with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
    pool.submit(work, "pool_0").result()
# Named, and never started.
threading.Thread(name="never").name = "never at all"
Odd().start()

if os.fork() == 0:
    run(work, "in a child", name="in a child")
    sys.stdout.flush()
    os._exit(0)
os.wait()

threading.current_thread().name = "trainer"
work("trainer")
print(threading.Thread.name.__doc__ is not None, threading.Thread._set_ident.__name__)
