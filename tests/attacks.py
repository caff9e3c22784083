"""What was tried against perfci, how often, and what failed: the table of docs/security.md.

    python -m tests.attacks

writes that table anew from what ``tests.fuzz``, ``tests.faults`` and ``tests.faults.kills`` left in
docs/results/attacks.json under ``--keep``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfci.files import write_file

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "results" / "attacks.json"
PAGE = ROOT / "docs" / "security.md"
_TABLE = re.compile(r"(?<=<!-- attacks -->\n).*?(?=<!-- end of attacks -->)", re.DOTALL)
_WHAT = {
    "fuzz": "damaged {name}",
    "disks": "`{name}` on a disk that fails",
    "kills": "`{name}` killed",
}

Counts = Mapping[str, float]


def kept(kind: str) -> dict[str, dict[str, float]]:
    """Return the counts of one kind of attack, by what it was tried on."""
    return _every().get(kind, {})


def keep(kind: str, name: str, counts: Counts) -> None:
    """Put these counts in the place of earlier ones."""
    every = _every()
    every.setdefault(kind, {})[name] = dict(counts)
    write_file(KEPT, json.dumps(every, indent=1, sort_keys=True) + "\n")


def _every() -> dict[str, dict[str, dict[str, float]]]:
    if not KEPT.exists():
        return {}
    found: dict[str, dict[str, dict[str, float]]] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def table() -> str:
    """Return the table in Markdown."""
    return "".join(
        f"|{'|'.join(row)}|\n"
        for row in (("what", "tried", "refused", "failed"), ("---", "--:", "--:", "--:"), *_rows())
    )


def _rows() -> Iterator[tuple[str, ...]]:
    every = _every()
    for kind, what in _WHAT.items():
        for name, counts in every.get(kind, {}).items():
            numbers = (counts[one] for one in ("tried", "refused", "faults"))
            yield what.format(name=name), *(f"{one:,.0f}" for one in numbers)


def with_table(page: str) -> str:
    """Return ``page`` with the table as it is now."""
    return _TABLE.sub(lambda _: f"\n{table()}\n", page, count=1)


if __name__ == "__main__":
    write_file(PAGE, with_table(PAGE.read_text(encoding="utf-8")))
