# Runs inside a Python program that uses PyTorch on a GPU, when a snapshot of its memory is
# requested: what torch.cuda.memory._dump_snapshot writes, under its name once it is whole.
#
# snapshot.rs puts `path`, `begin`, `end` and `answer` into the globals. `begin`: allocations are
# kept from now on, unless the program does so itself. `end`: they need not be any more.

import sys


def allocations(memory, wanted):
    """Has PyTorch keep what is allocated, as the program has not; whether that was changed."""
    keeps = getattr(sys.modules["torch"]._C, "_cuda_isHistoryEnabled", None)
    if keeps is None or keeps() == wanted:
        return False
    memory._record_memory_history("all" if wanted else None)
    return True


def take():
    torch = sys.modules.get("torch")
    memory = sys.modules.get("torch.cuda.memory")
    if memory is None or not hasattr(memory, "_snapshot"):
        return "the program has not imported PyTorch (with torch.cuda.memory._snapshot)"
    if not torch.cuda.is_initialized():
        return "PyTorch has not used a GPU in this process yet"
    if begin:
        return "changed" if allocations(memory, True) else ""
    import os
    import pickle

    part = path + ".part"
    try:
        with open(part, "wb") as file:
            pickle.dump(memory._snapshot(), file)
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)
        if end:
            allocations(memory, False)
    return ""


try:
    answer(take())
except Exception as error:
    answer("%s: %s" % (type(error).__name__, error) or "?")
