"""Says what a program can see of the import of PyTorch."""

import os
import sys

before = dict(os.environ)
path = [str(finder)[:40].split(" at ")[0] for finder in sys.meta_path]
import torch

print(sorted(vars(sys.modules["__main__"])))
print(torch.__spec__.origin, type(torch.__spec__), sorted(vars(torch.__spec__)))
print(torch.__loader__ is torch.__spec__.loader, vars(torch.__loader__))
print(path == [str(finder)[:40].split(" at ")[0] for finder in sys.meta_path], path)
print(sorted(name for name in sys.modules if "kymo" in name), before == dict(os.environ))
print(sys.flags, len(sys.path_hooks), sys.gettrace(), sys.getprofile())
print(sorted(name for name in vars(torch) if not name.startswith("__")))
import importlib

importlib.reload(torch)
print(type(torch.__spec__))
sys.exit(3)
