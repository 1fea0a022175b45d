"""Whether inputs of PyTorch's operators are recorded: a warning where they cannot be.

The first recording that finds PyTorch, imported before or after it began, decides for as long as
the process lives: PyTorch gets an observer then, and is asked only once what that is to see.
"""

from __future__ import annotations

import os
import sys

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What the recording before asked for, None without one; and what was decided.
_before: bool | None = None
_decided: bool | None = None


def check(config: dict[str, Any], adopted: bool) -> None:
    """A recording with these options has begun (`adopted`: it is that of `kymo record`). Warns if
    it asks for inputs and gets none."""
    global _before, _decided
    wanted = config.get("pytorch") == "shapes"
    if adopted:
        if wanted and os.environ.get("KYMOGRAPH_PYTORCH") != "shapes":
            _warn("kymo record was started without `--pytorch shapes`")
        return
    if config.get("pytorch") == "off" or "categories" in config:
        # This may not observe PyTorch at all.
        return
    if _decided is None and "torch" in sys.modules:
        _decided = wanted if _before is None else _before
    _before = wanted
    if wanted and _decided is False:
        _warn(
            "the first recording of this process was without, and PyTorch is asked only once; "
            'start with record_shapes=True or pytorch="shapes"'
        )


def _warn(why: str) -> None:
    import warnings

    text = f"what PyTorch's operators are called with is not recorded: {why}"
    warnings.warn(text, RuntimeWarning, stacklevel=_outside())


def _outside() -> int:
    """How far up the program is that uses this package."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level
