"""Writes docs/PYTHON_API.md: what the package has, from its docstrings.

usage: PYTHONPATH=FOLDER python reference.py            (python/stage makes the folder)
"""

import enum
import inspect
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Python looks beside the script first, where the package lies without its native part.
sys.path = [path for path in sys.path if pathlib.Path(path).resolve() != HERE]

import kymograph as ky  # noqa: E402
from kymograph import _events, _metrics, _plot, scale  # noqa: E402
from kymograph.compat import hta  # noqa: E402

TARGET = HERE.parent / "docs" / "PYTHON_API.md"

HEAD = """# The Python package: reference

Made by `python/reference.py` of docstrings; [PYTHON.md](PYTHON.md) is the introduction. The metrics
are methods of `Trace`; [ANALYSIS.md](ANALYSIS.md) has their options and columns.
"""


def signature(name, thing):
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return f"{name}(…)"
    # Annotations are texts, and longer than what they say.
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return name + str(inspect.Signature(plain))


def described(thing):
    return inspect.cleandoc(thing.__doc__ or "").replace("\n\n\n", "\n\n")


def members(kind):
    if issubclass(kind, (Exception, enum.Enum)):
        return {}
    own = {}
    for base in reversed(kind.__mro__):
        if base is not object and base is not list and base is not _metrics.Metrics:
            own.update(vars(base))
    # Native classes have theirs in any order.
    return {name: own[name] for name in sorted(own) if not name.startswith("_")}


def section(name, thing):
    lines = [f"## {name}", ""]
    if inspect.isclass(thing):
        if not issubclass(thing, (Exception, enum.Enum)):
            lines += [f"`{signature(name, thing)}`", ""]
        lines += [described(thing), ""]
        if issubclass(thing, enum.Enum):
            lines += [", ".join(f"`{member.name}`" for member in thing), ""]
        for member, value in members(thing).items():
            if isinstance(value, property) or inspect.isgetsetdescriptor(value):
                lines += [f"### {name}.{member}", "", described(value), ""]
            elif callable(value) and getattr(value, "__doc__", None):
                lines += [f"### {name}.{member}", "", f"`{signature(member, value)}`", ""]
                lines += [described(value), ""]
    elif callable(thing):
        lines += [f"`{signature(name, thing)}`", "", described(thing), ""]
    return "\n".join(lines).rstrip() + "\n"


def source():
    things = [(name, getattr(ky, name)) for name in ky.__all__ if name != "__version__"]
    things += [(n, getattr(_events, n)) for n in ("EventList", "FunctionEvent", "FunctionEventAvg")]
    things += [("Plot", _plot.Plot), ("compat.hta.TraceAnalysis", hta.TraceAnalysis)]
    things += [("scale.analyze", scale.analyze)]
    return HEAD + "".join("\n" + section(name, thing) for name, thing in things)


if __name__ == "__main__":
    TARGET.write_text(source(), encoding="utf-8")
