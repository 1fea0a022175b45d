# As train.py, with a PyTorch that has something in the memory of a GPU. With `unused` in the
# arguments it has not used one.

import sys
import types

import torch

kept = []
memory = types.ModuleType("torch.cuda.memory")
memory._snapshot = lambda: {"segments": [{"device": 0, "total_size": 4096}], "kept": list(kept)}
memory._record_memory_history = kept.append
torch.cuda = types.SimpleNamespace(is_initialized=lambda: "unused" not in sys.argv)
torch._C._cuda_isHistoryEnabled = lambda: bool(kept) and kept[-1] is not None
sys.modules["torch.cuda.memory"] = memory

import train
