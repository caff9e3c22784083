"""Say which facts differ between two report files of the same measurements.

    python benchmarks/same_facts.py OLD.json NEW.json
    python benchmarks/same_facts.py OLD_FOLDER NEW_FOLDER       of each file in OLD_FOLDER

Facts are all fields of OLD but its words (``warnings``, ``doubt``, ``reasons``, ``notes``), the
time it was written and the version that wrote it. Fields that only NEW has are no difference.
Numbers may differ by rounding, 1e-9 of themselves. Exits with 1 where a fact differs. Reports of
the demo's kept measurements come from ``python -m tests.verdict.kept judge FOLDER``.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = frozenset({"warnings", "doubt", "reasons", "notes"})
OF_THE_WRITING = frozenset({"created_at", "perfci_version"})
_ROUNDING = 1e-9


def differences(old: Any, new: Any, place: str = "$") -> Iterator[str]:
    """Yield each fact of ``old`` that ``new`` has otherwise, or lacks, by its place."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in old.items():
            if name in WORDS | OF_THE_WRITING:
                continue
            if name in new:
                yield from differences(value, new[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}: {value!r}, now missing"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place}: {len(old)} items, now {len(new)}"
        for number, pair in enumerate(zip(old, new, strict=False)):
            yield from differences(*pair, f"{place}[{number}]{_of(pair[0])}")
    elif not _same(old, new):
        yield f"{place}: {old!r}, now {new!r}"


def _of(item: Any) -> str:
    """Return which case and metric an item of a list is of, where it is of one."""
    named = [item[name] for name in ("case", "metric") if item.get(name)] if _is_row(item) else []
    return f" ({' '.join(named)})" if named else ""


def _is_row(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("case"), str)


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=_ROUNDING, abs_tol=1e-300)
    return type(old) is type(new) and old == new


def main(old: Path, new: Path) -> int:
    """Print what differs, and return the exit code."""
    files = sorted(path.name for path in old.glob("*.json")) if old.is_dir() else [""]
    found = [
        f"{name or new.name}: {difference}"
        for name in files
        for difference in differences(
            json.loads((old / name).read_text()), json.loads((new / name).read_text())
        )
    ]
    for line in found:
        print(line)
    reports = f"{len(files)} report{'' if len(files) == 1 else 's'}"
    print(f"{reports}: {len(found)} facts differ" if found else f"{reports}: the same facts")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2])))
