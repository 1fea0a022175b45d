import threading

from torch import _C
from torch._C import _autograd

_enable_profiler = _autograd._enable_profiler
_disable_profiler = _autograd._disable_profiler

from torch.autograd import profiler


def operator(name):
    config = _C._states.get(threading.get_ident())
    if config is None or config.state not in ("NVTX", "ITT"):
        return
    if config.state == "ITT":
        import ittapi

        with ittapi.task(name, domain="PyTorch"):
            return
    import nvtx

    nvtx.push_range(name)
    nvtx.pop_range()
