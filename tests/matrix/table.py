"""What perfci measures of each cell, as a table for the docs.

    python -m tests.matrix.table                        all cells (a quarter of an hour), written
    python -m tests.matrix.table --only src FINDINGS    those with this word; nothing written

FINDINGS is a JSON file in which findings are kept; what it has already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from tests.matrix.cells import CELLS, Built, Cell, Finding
from tests.matrix.installs import INSTALLS
from tests.matrix.layouts import LAYOUTS, Content
from tests.matrix.places import PLACES

PAGE = Path(__file__).parents[2] / "docs" / "results" / "what-ran.md"
BEGIN, END = "<!-- matrix: python -m tests.matrix.table -->", "<!-- /matrix -->"
MEASURED, WRONG, UNMEASURED = "measured", "**the wrong code**", "**not measured**"

_SETTINGS = re.compile(r"then (`[^|]*`) \|")
"""In a cell of the table; below it each is written once."""

Words = Mapping[str, str]
"""What is said of each place, by its name."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("findings", nargs="?", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--apart", action="store_true", help="each place in a session of its own")
    options = parser.parse_args()
    kept: dict[str, Words] = {}
    if options.findings and options.findings.exists():
        kept = json.loads(options.findings.read_text(encoding="utf-8"))
    for cell in CELLS:
        if cell.left_out or str(cell) in kept or options.only not in str(cell):
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            findings = Built(cell, Path(folder), apart=options.apart).findings()
        kept[str(cell)] = {place.name: said(one, cell) for place, one in findings.items()}
        print(
            f"{cell} ({time.monotonic() - started:.1f} s): {summary(kept[str(cell)])}", flush=True
        )
        if options.findings:
            options.findings.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    if not options.only:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{table(kept)}{END}{after}", encoding="utf-8")


def said(finding: Finding, cell: Cell) -> str:
    """Return the words for one place of a cell."""
    if finding.last.markers is None:
        return UNMEASURED
    if finding.last.markers != cell.expected:
        return WRONG
    settings = " and ".join(f"`{line}`" for line in finding.first.setting.splitlines())
    return f"refused, then {settings}" if finding.after else MEASURED


def summary(words: Words) -> str:
    """Return what is said of all places at once, or of each that differs."""
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    parts: dict[str, list[str]] = {}
    for place in PLACES:
        parts.setdefault(words[place.name], []).append(place.name)
    return "; ".join(f"{', '.join(places)}: {text}" for text, places in parts.items())


def table(kept: Mapping[str, Words]) -> str:
    """Return Markdown: a row for each layout and install, a column for each content."""
    contents = get_args(Content)
    lines = [f"| layout | install | {' | '.join(contents)} |", "|---" * (2 + len(contents)) + "|"]
    for layout in LAYOUTS:
        for how in INSTALLS:
            cells = (Cell(layout, how, content) for content in contents)
            texts = [
                "–"
                if one.left_out
                else summary(kept[str(one)])
                if str(one) in kept
                else "not tried"
                for one in cells
            ]
            lines.append(f"| {layout.name} | {how.name} | {' | '.join(texts)} |")
    text = "\n".join(lines)
    settings = list(dict.fromkeys(_SETTINGS.findall(text)))
    for number, setting in enumerate(settings, 1):
        text = text.replace(f"then {setting} |", f"then {number} |")
    notes = [f"{number}. {setting}" for number, setting in enumerate(settings, 1)]
    return "\n".join([text, "", *notes, ""])


if __name__ == "__main__":
    main()
