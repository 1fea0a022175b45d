"""Whether other tools say the same about our JSON as about the original.

usage: tests/compat/compare FILE.json[.gz] | FOLDER ...

Converts each file to Perfetto's format and back with `kymo`, asks HolisticTraceAnalysis,
traceinsight and torch-tb-profiler about both, and prints a table for docs/COMPATIBILITY.md. The
files of a folder are the ranks of one job. Ends with 1 if something differs. $KYMO names the
command to test; else it is built.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FEW = 3  # differences that are shown


# Tools, and where their modules are if not with the others.
TOOLS = {"HTA": None, "traceinsight": "traceinsight", "TB": None}


def said(paths):
    """Each analysis of each tool, as `tool/analysis`."""
    answers = {}
    for tool, folder in TOOLS.items():
        if tool == "TB" and len(paths) > 1:
            continue
        # They number names in the order of sets of them.
        env = dict(os.environ, PYTHONHASHSEED="0")
        if folder:
            env["PYTHONPATH"] = str(HERE.parent / ".tools" / folder)
        done = subprocess.run(
            [sys.executable, HERE / "what_tools_say.py", "TB" if tool == "TB" else "HTA", *paths],
            stdout=subprocess.PIPE,
            check=True,
            env=env,
        )
        answers[tool] = json.loads(done.stdout)
    return answers


def same(one, other):
    """To the last digit that tools are asked for: nine."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
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
    back = folder / (path.name if path.name.endswith(".gz") else path.name + ".gz")
    subprocess.run([kymo, "convert", path, through], check=True, stderr=subprocess.DEVNULL)
    subprocess.run([kymo, "convert", through, back], check=True, stderr=subprocess.DEVNULL)
    return back


def compare(kymo, name, paths, rows):
    with tempfile.TemporaryDirectory() as folder:
        before = said(paths)
        after = said([converted(kymo, path, pathlib.Path(folder)) for path in paths])
    failed = False
    for tool, analyses in before.items():
        total, alike, wrong = 0, [], []
        for analysis, one in analyses.items():
            other = after[tool].get(analysis)
            # Their own paths are in some messages.
            found = list(differences(one, other))
            total += values(one)
            if found:
                wrong.append(f"{analysis}: {len(found)} of {values(one)}")
            elif isinstance(one, str):
                alike.append(analysis)
            for at, old, new in found[:FEW]:
                text = f"{name}: {tool}: {analysis}{at}: {old!r} became {new!r}"
                print(text[:400], file=sys.stderr)
        failed |= bool(wrong)
        verdict = "; ".join(wrong) or "same"
        if alike:
            verdict += f" ({len(alike)} fail alike)"
        rows.append((name, tool, len(analyses), f"{total:,}", verdict))
    return failed


def main():
    kymo = os.environ["KYMO"]
    failed = False
    rows = []
    for path in map(pathlib.Path, sys.argv[1:]):
        folder = sorted(path.glob("*.json*")) if path.is_dir() else [path]
        failed |= compare(kymo, path.name.split(".json")[0], folder, rows)
    print("| trace | tool | analyses | values | |\n|---|---|---|---|---|")
    for row in rows:
        print("|", " | ".join(map(str, row)), "|")
    sys.exit(failed)


if __name__ == "__main__":
    main()
