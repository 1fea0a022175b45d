"""unshare(CLONE_NEWUSER), which a process with more than one thread may not do."""

import ctypes

import nvtx

CLONE_NEWUSER = 0x10000000

nvtx.mark("before")
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(CLONE_NEWUSER), ctypes.get_errno())
