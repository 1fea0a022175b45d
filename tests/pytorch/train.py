# A small training, on a GPU (with AMP) if there is one. With a file it is recorded by
# torch.profiler as well, which writes its JSON there; with `memory` its allocations, too.
import sys
import threading

import torch
from torch.profiler import ProfilerActivity, profile, record_function

torch.manual_seed(1)
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
model = model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
samples = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(0, 4, (32,)))
loader = torch.utils.data.DataLoader(samples, batch_size=8)


def train():
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        with record_function("forward"), torch.autocast(device, enabled=cuda):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def on_a_thread():
    thread = threading.Thread(target=lambda: torch.ones(3).add_(1), daemon=True)
    thread.start()
    thread.join()


if len(sys.argv) > 1:
    memory = len(sys.argv) > 2
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * cuda
    # Before: what is done once only.
    train()
    with profile(activities=activities, record_shapes=True, profile_memory=memory) as profiler:
        train()
        if cuda:
            torch.cuda.synchronize()
    profiler.export_chrome_trace(sys.argv[1])
else:
    train()
on_a_thread()
