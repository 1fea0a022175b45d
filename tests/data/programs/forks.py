"""os.fork, of which Python 3.12 warns if the process has threads."""

import os

import nvtx

nvtx.mark("before")
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print("done")
