"""`python -m kymograph …` is `kymo …`; scripts in Python are run by this interpreter.

    python -m kymograph record [-o TRACE] script.py [ARGUMENT…]
"""

import os
import sys

from . import _command

# Options of `kymo record` that take a word of their own; a test compares it with `--help`.
_VALUED = (
    "-o --output --category --domain --duration --flight --memory --dump-on --rotate --keep --also"
    " --buffer --capture-range --capture-range-end --delay --flush-interval --policy --mode --gpu-counters --pytorch --python --pid --set"
).split()


def arguments(words: list[str]) -> list[str]:
    """The arguments for `kymo`: `record script.py` becomes `record -- PYTHON script.py`."""
    if words[:1] != ["record"] or "--" in words:
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _VALUED else 1
    if at < len(words) and words[at].endswith(".py"):
        return [*words[:at], "--", sys.executable, *words[at:]]
    return words


if __name__ == "__main__":
    program = _command.path()
    os.execv(program, ["kymo", *arguments(sys.argv[1:])])
