#!/usr/bin/env python3
"""Runs commands and draws what they print as a terminal: an SVG that types them one after the other.

    docs/images/terminal.py [KYMO] > docs/images/terminal.svg

Nothing in the picture is made up: it is what `kymo` prints, cut to the lines and columns that fit.
"""

import html
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COLUMNS, LINE, WIDTH, MARGIN = 92, 18, 7.83, 16
# The command, and how many lines of what it prints are shown.
COMMANDS = [
    ("kymo record -o app.pftrace -- python3 app.py", 6),
    ("kymo info ddp.pftrace.gz", 16),
    ("kymo analyze ddp.pftrace.gz", 24),
]


def lines(kymo, folder):
    """Rows of the picture: their text, and whether it was typed."""
    environment = dict(os.environ, PATH=f"{kymo.parent}:{os.environ['PATH']}")
    for command, shown in COMMANDS:
        yield f"$ {command}", True
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, text=True, check=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        printed = done.stdout.replace(f"{folder}/", "").splitlines()
        for line in printed[:shown]:
            yield line[: COLUMNS - 1] + "…" if len(line) > COLUMNS else line, False
        if len(printed) > shown:
            yield "…", False
        yield "", False


def picture(rows):
    height = MARGIN * 2 + LINE * len(rows)
    width = round(MARGIN * 2 + WIDTH * COLUMNS)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="kymo on a terminal">',
        "<style>text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee9;"
        "white-space:pre;opacity:0;animation:show .01s forwards}.typed{fill:#a3be8c}"
        "@keyframes show{to{opacity:1}}@media(prefers-reduced-motion){text{animation:none;"
        "opacity:1}}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#20242c"/>',
    ]
    delay = 0.0
    for number, (text, typed) in enumerate(rows):
        delay += 0.9 if typed else 0.04
        if text:
            kind = ' class="typed"' if typed else ""
            y = MARGIN + LINE * number + 13
            out.append(f'<text x="{MARGIN}" y="{y}"{kind} style="animation-delay:{delay:.2f}s" '
                       f'xml:space="preserve">{html.escape(text)}</text>')
    return "\n".join(out + ["</svg>"])


def main():
    kymo = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/kymo")
    with tempfile.TemporaryDirectory() as folder:
        program = (ROOT / "packaging/ranges.py").read_text()
        (pathlib.Path(folder) / "app.py").write_text(program)
        # Two ranks on two H200s, of which one is late.
        recorded = ROOT / "analysis/tests/data/recordings/late_rank_2gpus.pftrace.gz"
        (pathlib.Path(folder) / "ddp.pftrace.gz").symlink_to(recorded)
        print(picture(list(lines(kymo.resolve(), folder))))


main()
