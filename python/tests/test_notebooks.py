"""The notebooks of examples/notebooks run from their first cell to their last."""

import json
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.heavy
NOTEBOOKS = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples/notebooks").glob("*.ipynb"))

# As a notebook does: the last expression of a cell is shown.
RUN = """
import ast, json, sys
space = {}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] != "code":
        continue
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, sys.argv[1], "exec"), space)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), sys.argv[1], "eval"), space)
        for show in ("_repr_html_", "_repr_svg_", "__repr__"):
            if hasattr(value, show):
                assert value is None or getattr(value, show)()
                break
"""


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["latency_spike", "slow_training", "straggler"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", RUN, path], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs"), "notebooks are checked in without what they print"
