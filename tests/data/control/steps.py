# A program that works in iterations until its standard input ends. Says on stdout when it
# has begun, and in the end how many there were. Knows Kymograph only as the library that
# `kymo record` has loaded.

import ctypes
import os
import sys
import threading

library = ctypes.CDLL(None)
library.kymo_register.restype = ctypes.c_uint32
category = library.kymo_category_register(b"app")
work = library.kymo_register(category, b"work")
steps = "steps" in sys.argv
# Works most of the time, instead of waiting.
busy = "busy" in sys.argv

if "fork" in sys.argv and os.fork() == 0:
    sys.argv.append("child")

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()

library.kymo_push(work, None, 0)
library.kymo_pop()
if steps:
    library.kymo_step()
os.write(1, b"begun %d\n" % os.getpid())
count = 0
while not ended.wait(0.002):
    if steps:
        library.kymo_step()
    library.kymo_push(work, None, 0)
    if busy:
        ended.wait(0.02)
    library.kymo_pop()
    count += 1
if "child" not in sys.argv:
    print("ended", count, flush=True)
