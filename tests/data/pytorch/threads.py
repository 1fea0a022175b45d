"""Operators in the threads of a program, and a profiler of its own in one."""

import threading

import torch
from torch.autograd import profiler


def work():
    torch.add()
    with profiler.profile():
        torch.add()
    torch.add()


def main():
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    work()
    with profiler.emit_nvtx():
        torch.add()
    try:
        profiler._disable_profiler()
    except RuntimeError as error:
        print(error)
    with profiler.profile():
        try:
            profiler.profile().__enter__()
        except RuntimeError as error:
            print(error)


main()
