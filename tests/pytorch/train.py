# A small training on the CPU. With a file it is recorded by torch.profiler as well, which writes
# its JSON there.
import sys
import threading

import torch
from torch.profiler import ProfilerActivity, profile, record_function

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
samples = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(0, 4, (32,)))
loader = torch.utils.data.DataLoader(samples, batch_size=8)


def train():
    for x, y in loader:
        with record_function("forward"):
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
    with profile(
        activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=memory
    ) as profiler:
        train()
    profiler.export_chrome_trace(sys.argv[1])
else:
    train()
on_a_thread()
