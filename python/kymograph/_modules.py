"""Calls of PyTorch's modules, as slices: `nn.Module: Linear_0`, as Kineto names them."""

from __future__ import annotations

import threading
import weakref

from . import _kymograph

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class _Open(threading.local):
    """The modules that are being called on a thread, and their scopes."""

    def __init__(self) -> None:
        self.stack: list[tuple[Any, Any]] = []


def follow() -> Callable[[], None]:
    """Follows all modules of the process. Returns a function that ends it; without PyTorch there
    is nothing to follow."""
    import sys

    if "torch" not in sys.modules:
        return lambda: None
    from torch.nn.modules import module as modules

    names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
    numbers: dict[str, int] = {}
    local = _Open()

    def name(module: Any) -> str:
        known = names.get(module)
        if known is None:
            kind = type(module).__name__
            number = numbers[kind] = numbers.get(kind, -1) + 1
            known = names[module] = f"nn.Module: {kind}_{number}"
        return known

    def begins(module: Any, _: Any) -> None:
        scope = _kymograph.scope(name(module), category="python_function")
        scope.__enter__()
        local.stack.append((module, scope))

    def ends(module: Any, _: Any, __: Any) -> None:
        # An exception leaves modules without a word: those inside this one have ended with it.
        if all(open is not module for open, _ in local.stack):
            return
        while local.stack:
            open, scope = local.stack.pop()
            scope.__exit__(None, None, None)
            if open is module:
                return

    handles = [
        modules.register_module_forward_pre_hook(begins),
        modules.register_module_forward_hook(ends),
    ]

    def stop() -> None:
        for handle in handles:
            handle.remove()
        while local.stack:
            local.stack.pop()[1].__exit__(None, None, None)

    return stop
