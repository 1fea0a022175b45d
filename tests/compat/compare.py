"""Whether other tools say the same about our JSON as about the original.

usage: tests/compat/compare FILE.json[.gz] ...

Converts each file to Perfetto's format and back with `kymo`, asks HolisticTraceAnalysis and
torch-tb-profiler about both, and prints a table for docs/COMPATIBILITY.md. Ends with 1 if
something differs. $KYMO names the command to test; else it is built.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FEW = 3  # differences that are shown


def said(path):
    done = subprocess.run(
        [sys.executable, HERE / "what_tools_say.py", path], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def same(one, other):
    """Numbers are equal to seven digits: tools add up floats, in the order of the file."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-7 * max(abs(one), abs(other), 1)
    return one == other


def differences(one, other, at=""):
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if key in one and key in other:
                yield from differences(one[key], other[key], f"{at}/{key}")
            else:
                yield f"{at}/{key}", one.get(key), other.get(key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other)):
            yield from differences(*pair, f"{at}/{index}")
    elif not same(one, other):
        yield at, one, other


def values(said):
    if isinstance(said, dict):
        return sum(values(value) for value in said.values())
    if isinstance(said, list):
        return sum(values(value) for value in said)
    return 1


def converted(kymo, path, folder):
    through = folder / "through.pftrace"
    # Its name is in what tools say.
    back = folder / "back.json.gz"
    subprocess.run([kymo, "convert", path, through], check=True, stderr=subprocess.DEVNULL)
    subprocess.run([kymo, "convert", through, back], check=True, stderr=subprocess.DEVNULL)
    return back


def main():
    kymo = os.environ["KYMO"]
    failed = False
    rows = []
    for path in map(pathlib.Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            before, after = said(path), said(converted(kymo, path, pathlib.Path(folder)))
        for tool, analyses in before.items():
            for analysis, one in analyses.items():
                other = after[tool].get(analysis)
                found = list(differences(one, other))
                failed |= bool(found)
                if isinstance(one, str):
                    verdict = "fails alike" if not found else "fails otherwise"
                else:
                    verdict = "same" if not found else f"{len(found)} of {values(one)} differ"
                rows.append((path.name.split(".")[0], tool, analysis, values(one), verdict))
                for at, old, new in found[:FEW]:
                    text = f"{path.name}: {tool}: {analysis}{at}: {old!r} became {new!r}"
                    print(text[:400], file=sys.stderr)
    print("| trace | tool | analysis | values | |\n|---|---|---|---|---|")
    for row in rows:
        print("|", " | ".join(map(str, row)), "|")
    sys.exit(failed)


if __name__ == "__main__":
    main()
