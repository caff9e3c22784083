"""What was tried against perfci, how often, and what failed: the tables of a page.

    python -m tests.attacks

writes those of docs/results/faults.md from what ``tests.fuzz``, ``tests.faults`` and
``tests.faults.kills`` left in docs/results/attacks.json under ``--keep``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from perfci.files import write_file

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "results" / "attacks.json"
PAGE = ROOT / "docs" / "results" / "faults.md"
_WHAT = {
    "fuzz": "damaged {name}",
    "disks": "failing-disk `{name}`",
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


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    marks = ("---", *("--:" for _ in head[1:]))
    return "".join(f"|{'|'.join(row)}|\n" for row in (head, marks, *rows))


def _rows() -> Iterator[tuple[str, ...]]:
    every = _every()
    for kind, what in _WHAT.items():
        for name, counts in every.get(kind, {}).items():
            yield what.format(name=name), *_numbers(counts, ("tried", "refused", "faults"))


def _numbers(counts: Counts, names: Sequence[str]) -> Iterator[str]:
    return (f"{counts[one]:,.0f}" for one in names)


def _of(kind: str, head: Sequence[str], names: Sequence[str]) -> str:
    return _table(head, ((name, *_numbers(one, names)) for name, one in kept(kind).items()))


def tables() -> Mapping[str, str]:
    """Return the tables in Markdown, by the marks that they stand between."""
    disks = ("command", "changes to files", "failures tried", "refused", "faults")
    kills = ("command", "killed", "had ended before", "faults")
    return {
        "attacks": _table(("what", "tried", "refused", "failed"), _rows()),
        "disks": _of("disks", disks, ("changes", "tried", "refused", "faults")),
        "kills": _of("kills", kills, ("tried", "late", "faults")),
    }


def with_tables(page: str) -> str:
    """Return ``page`` with its tables as they are now."""
    for name, table in tables().items():
        between = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)
        page = between.sub(f"\n{table}\n", page, count=1)
    return page


if __name__ == "__main__":
    write_file(PAGE, with_tables(PAGE.read_text(encoding="utf-8")))
