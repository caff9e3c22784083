"""How long the tests of each folder take.

    .venv/bin/python -m pytest --junitxml=/tmp/tests.xml
    .venv/bin/python -m tests.durations /tmp/tests.xml

It prints a Markdown table: each folder's tests, their seconds (set-up included) and the slowest.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import defaultdict


def main(path: str) -> None:
    """Print the table for a JUnit file of pytest."""
    folders: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for case in ET.parse(path).iter("testcase"):
        parts = case.attrib["classname"].split(".")
        folders["/".join(parts[:2])].append((float(case.attrib["time"]), parts[-1]))
    print("| folder | tests | s | slowest module, s |\n|---|--:|--:|---|")
    for folder, taken in sorted(folders.items(), key=lambda each: -sum(s for s, _ in each[1])):
        modules: dict[str, float] = defaultdict(float)
        for seconds, module in taken:
            modules[module] += seconds
        slowest = max(modules, key=modules.__getitem__)
        total = sum(modules.values())
        print(f"| {folder} | {len(taken)} | {total:.0f} | {slowest} {modules[slowest]:.0f} |")


if __name__ == "__main__":
    main(sys.argv[1])
