"""What the page's scripts draw and list, as one JSON value: every row in a few hundred bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perfci.model.report import Comparison, Estimate, Report
from perfci.model.status import traits
from perfci.render.clean import clean_line
from perfci.render.page.words import facts
from perfci.render.rows import (
    change_text,
    has_numbers,
    interval_text,
    note,
    replay_command,
    selection_of,
    side_text,
)
from perfci.render.site.benchmark_data import pack
from perfci.verdict.cause import cause_of
from perfci.verdict.margin import margin

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST_NOTE = 600
_PAIRED, _UNPAIRED = 1, 0
_RATIO, _DIFFERENCE = 0, 1
_SENSES = {"worse": 1, "better": -1, "steady": 0}


class Texts:
    """Texts by number: most notes and facts are those of many rows."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._seen: dict[tuple[str, int], int] = {}

    def place(self, text: str, limit: int = 300) -> int:
        """Return the number of ``text``, made visible."""
        if (known := self._seen.get((text, limit))) is not None:
            return known
        place = self._places.setdefault(clean_line(text, limit), len(self._places))
        self._seen[text, limit] = place
        return place

    @property
    def every(self) -> list[str]:
        """All texts, by number."""
        return list(self._places)


def payload(report: Report) -> dict[str, Any]:
    """Return what the scripts need: the rows as lists, in the report's order, and their texts."""
    texts = Texts()
    rows = report.results
    statuses = list(dict.fromkeys(row.status for row in rows))
    statuses.sort(key=lambda status: traits(status).rank)
    metrics = list(dict.fromkeys((row.metric, row.unit) for row in rows))
    same_code = frozenset(report.same_code)
    causes = list(dict.fromkeys(cause_of(row, same_code) for row in rows))
    return {
        "metrics": [[clean_line(name, 100), clean_line(unit, 30)] for name, unit in metrics],
        "statuses": [status.replace("_", " ") for status in statuses],
        "causes": causes,
        "replay": replay_command(report),
        "rows": [
            [
                texts.place(row.case),
                metrics.index((row.metric, row.unit)) if has_numbers(row) else -1,
                statuses.index(row.status),
                causes.index(cause_of(row, same_code)),
                _sense(row),
                texts.place(change_text(row)),
                texts.place(interval_text(row)),
                texts.place(side_text(row.base, row.unit)),
                texts.place(side_text(row.head, row.unit)),
                texts.place(note(row), _LONGEST_NOTE),
                [texts.place(text) for fact in facts(row) for text in fact],
                texts.place(selection_of(row.case), 2000),
                _change(row),
                [_values(side) for side in (row.base, row.head)],
                list(row.outliers),
                _PAIRED if row.method == "paired_t" else _UNPAIRED,
            ]
            for row in rows
        ],
        "texts": texts.every,
    }


def _sense(row: Comparison) -> int:
    """Return 1 for worse, -1 for better, 0 for neither."""
    return _SENSES[traits(row.status).sense]


def _change(row: Comparison) -> list[Any] | None:
    """Return the change, its interval and the margin: ratios, or differences in the unit."""
    if row.difference is not None:
        ends = (row.difference_lo, row.difference_hi, -row.threshold, row.threshold)
        return [_DIFFERENCE, row.difference, *map(_short, ends)]
    if row.ratio is None:
        return None
    return [_RATIO, *map(_short, (row.ratio, row.ratio_lo, row.ratio_hi, *margin(row.threshold)))]


def _values(side: Estimate | None) -> list[Any] | None:
    """Return a side's centre, its workers' values, its calls' quantiles and first calls, packed."""
    if side is None or side.center is None:
        return None
    drawn = (side.values, side.quantiles, side.first_calls)
    return [_short(side.center), *(_packed(values) for values in drawn)]


def _packed(values: Sequence[float]) -> list[Any]:
    import numpy as np

    array: NDArray[Any] = np.asarray(values, dtype=float)
    packed = pack(array)
    return [packed.scale, *packed.deltas] if len(array) else []


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")
