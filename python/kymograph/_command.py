"""The command `kymo`, as the package installs it."""

import os
import sys


def path() -> str:
    """Where the program `kymo` is; `libkymograph.so` lies beside it."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "kymo")


def kymo() -> None:
    """Becomes `kymo`, with the arguments of this process."""
    program = path()
    try:
        os.execv(program, ["kymo", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"kymo: cannot run {program}: {error.strerror}; install kymograph anew")
