"""Operators in forked and spawned children."""

import multiprocessing

import torch


def child():
    torch.add()


if __name__ == "__main__":
    torch.add()
    for method in ("fork", "spawn", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=child)
        process.start()
        process.join()
        print(method, process.exitcode)
