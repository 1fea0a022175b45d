"""See `survey`, which runs this."""

import collections
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

KYMO, ORACLE, TOOLS = os.environ["KYMO"], os.environ["ORACLE"], os.environ["TOOLS"]
SHOWN = 3  # differences of a file
STATS = """SELECT name, value FROM stats WHERE value > 0
    AND (severity IN ('error', 'data_loss') OR name IN ('flow_step_without_start', 'flow_end_without_start'))"""
COUNTS = """SELECT (SELECT count(*) FROM slice) AS slices,
    (SELECT coalesce(sum(dur), 0) FROM slice WHERE dur > 0) AS nanoseconds,
    (SELECT count(*) FROM flow) AS arrows, (SELECT count(*) FROM counter) AS samples"""


def ask(trace, *queries):
    """What trace_processor answers: rows of each query."""
    assets = pathlib.Path(TOOLS, "trace-processor")
    asked = "".join(json.dumps(line) + "\n" for line in ({"load": str(trace)}, *queries))
    done = subprocess.run(
        ["node", ORACLE, assets], input=asked, capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    rows = [line["rows"] for line in lines if "rows" in line]
    if len(rows) != len(queries):
        errors = [line["error"] for line in lines if "error" in line] or [done.stderr[-200:]]
        sys.exit(f"survey: trace_processor does not answer about {trace}: {errors[0]}")
    return rows


def events(path):
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as file:
        trace = json.load(file)
    return trace["traceEvents"] if isinstance(trace, dict) else trace


def plain(event):
    """An event as text, so that equal ones are equal: times as floats, no empty arguments."""
    if not isinstance(event, dict):
        return json.dumps(event)
    event = {key: value for key, value in event.items() if (key, value) != ("args", {})}
    for time in ("ts", "dur"):
        if isinstance(event.get(time), (int, float)):
            event[time] = round(float(event[time]), 3)
    return json.dumps(event, sort_keys=True)


def convert(source, target):
    done = subprocess.run([KYMO, "convert", source, target], capture_output=True, text=True)
    return done.returncode, [line for line in done.stderr.splitlines() if line]


def survey(path, folder):
    """A row of the table, and what differs."""
    through, back = folder / "through.pftrace", folder / "back.json"
    status, remarks = convert(path, through)
    if status != 0:
        return ("-", "-", "-", "-", "refused"), remarks
    status, more = convert(through, back)
    if status != 0:
        return ("-", "-", "-", "-", "does not come back"), more
    stats, counts = ask(through, STATS, COUNTS)
    complaints = [f"trace_processor: {name}: {value}" for name, value in stats]
    before = after = None
    try:
        before = [plain(event) for event in events(path)]
        after = [plain(event) for event in events(back)]
    except ValueError as error:
        remarks.append(f"the original is no JSON to Python ({error}): not compared")
    found = list(complaints)
    if before is not None and before != after:
        gone = collections.Counter(before) - collections.Counter(after)
        new = collections.Counter(after) - collections.Counter(before)
        found += [f"gone: {event[:200]}" for event in list(gone)[:SHOWN]]
        found += [f"new: {event[:200]}" for event in list(new)[:SHOWN]]
        total = sum(gone.values()), sum(new.values())
        verdict = f"{total[0]} gone, {total[1]} new" if any(total) else "another order"
    else:
        verdict = "same" if before is not None else "not compared"
    if complaints:
        verdict += f"; {len(complaints)} complaints"
    slices, _, arrows, _ = counts[0]
    size = through.stat().st_size / max(1, path.stat().st_size)
    return (len(before or []) or "?", slices, arrows, f"{size:.2f}", verdict), found + remarks


def main():
    files = []
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        inside = [p for p in sorted(path.rglob("*")) if p.name.endswith((".json", ".json.gz", ".json.zst"))]
        files += inside if path.is_dir() else [path]
    rows, differs = [], 0
    for path in files:
        with tempfile.TemporaryDirectory() as folder:
            row, found = survey(path, pathlib.Path(folder))
        differs += row[-1] not in ("same", "refused")
        rows.append((path.name, *row))
        for line in found:
            print(f"{path.name}: {line}", file=sys.stderr)
    print("| trace | events | slices | arrows | size | |\n|---|---|---|---|---|---|")
    for row in rows:
        print("|", " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row), "|")
    print(f"\n{len(rows)} traces, {differs} of them with differences")
    sys.exit(1 if differs else 0)


if __name__ == "__main__":
    main()
