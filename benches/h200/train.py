#!/usr/bin/env python3
"""Trains a small transformer: what a recording of it is compared with.

usage: train.py [--steps N] [--compile] [--shapes] [--profile FILE]

A step takes a batch from a DataLoader with two worker processes, goes forward and backward,
and steps the optimizer; on a GPU it also works on two side streams and replays a CUDA graph
that was captured before. After three steps of warming up, N steps (10) are done within a
range called `measured`, each in one called `step`, whose parts have ranges of their own.
Without a GPU it does what a CPU can.

With --profile the measured steps run under torch.profiler, which writes FILE.
"""
import argparse

import torch
from torch.autograd.profiler import record_function

WORDS, WIDTH, LENGTH, BATCH = 97, 128, 32, 16
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return (torch.arange(LENGTH) + index) % WORDS


def batches():
    return iter(torch.utils.data.DataLoader(
        Sentences(), BATCH, num_workers=2, pin_memory=DEVICE == "cuda"))


class Streams:
    """Work beside the step's: products on two streams, and a graph of ten products."""

    def __init__(self):
        self.side = [torch.cuda.Stream() for _ in range(2)]
        self.x = torch.ones(128, 128, device="cuda")
        self.on_side_streams()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for _ in range(10):
                self.x.mm(self.x)

    def on_side_streams(self):
        here = torch.cuda.current_stream()
        for stream in self.side:
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                self.x.mm(self.x)
            here.wait_stream(stream)

    def step(self):
        with record_function("streams"):
            self.on_side_streams()
        with record_function("graph"):
            self.graph.replay()


class Training:
    def __init__(self, compiled):
        layers = [
            torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True, dropout=0.0)
            for _ in range(2)
        ]
        parts = [torch.nn.Embedding(WORDS, WIDTH), *layers, torch.nn.Linear(WIDTH, WORDS)]
        net = torch.nn.Sequential(*parts).to(DEVICE)
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
        self.loss = torch.nn.CrossEntropyLoss()
        self.net = torch.compile(net) if compiled else net
        self.streams = Streams() if DEVICE == "cuda" else None

    def step(self, batch):
        batch = batch.to(DEVICE, non_blocking=True)
        with record_function("forward"):
            out = self.net(batch)
            loss = self.loss(out.flatten(0, 1), batch.flatten())
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            self.optimizer.step()
            self.optimizer.zero_grad()
        if self.streams:
            self.streams.step()

    def run(self, steps, source):
        for _ in range(steps):
            with record_function("step"):
                self.step(next(source))
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    def measured(self, steps, source):
        with record_function("measured"):
            self.run(steps, source)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    parser.add_argument("--shapes", action="store_true", help="let torch.profiler record shapes")
    parser.add_argument("--profile", metavar="FILE", help="run under torch.profiler")
    options = parser.parse_args()
    torch.manual_seed(1)
    source = batches()
    training = Training(options.compile)
    training.run(3, source)
    if options.profile is None:
        return training.measured(options.steps, source)
    with torch.profiler.profile(record_shapes=options.shapes) as profiler:
        training.measured(options.steps, source)
    profiler.export_chrome_trace(options.profile)


if __name__ == "__main__":
    main()
