"""What the screen's outcomes say, for docs/evidence.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.screen.outcomes import FULL, LISTED, Outcome
from benchmarks.statistics.scoring import markdown

RESULTS = Path(__file__).parent / "results.json"


def kept_outcomes(file: Path = RESULTS) -> list[Outcome]:
    """Return the outcomes of the last run of each question."""
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [Outcome(**{**row, "differing": tuple(row["differing"])}) for row in rows]


def text(outcomes: Sequence[Outcome]) -> str:
    """Return the tables, with what follows from them."""
    equal = [row for row in outcomes if row.set == "equal"]
    missed = [row for row in equal if row.screened(FULL)]
    return _TEXT.format(
        summary=_summary(outcomes),
        equal=markdown(
            ("planted", "a call takes", "differs in"),
            [
                (row.case, f"{row.ratio:.1f}×", ", ".join(row.differing) or "nothing")
                for row in equal
            ],
        ),
        missed=len(missed),
        made=len(equal),
    )


def _summary(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for label, chosen in (
        ("corpus, 14 kinds by four shares", [row for row in outcomes if row.set == "planted"]),
        ("faults of [why](results/why.md)", [row for row in outcomes if row.set == "faults"]),
        ("made to keep their counts", [row for row in outcomes if row.set == "equal"]),
        ("identical sides", [row for row in outcomes if row.set == "identical"]),
        ("commits of einops", [row for row in outcomes if row.set == "real" and row.changed]),
    ):
        others = sum(row.processes for row in chosen)
        screened = (sum(row.screened(kinds) for row in chosen) for kinds in (LISTED, FULL))
        rows.append((label, len(chosen), others, *screened))
    columns = ("sides", "pairs", "other processes", "equal", "equal in lines and strides, too")
    return markdown(columns, rows)


_TEXT = """\
**A screen by counts** for suites that are larger than the budget (`python -m benchmarks.screen`). A
process of each side counts what is deterministic: operators with types and shapes, sizes of
allocations, Dynamo's graphs, and calls of each Python function, in a second column lines of each
function and strides as well. Equal counts would mark a case as `screened`. Work of other processes
isn't counted: such cases can't be screened.

{summary}

The corpus plants more of the same work, which counts see by how it is made; only a loop without
calls (*tiny*) keeps its calls. Slow-downs of another kind keep their counts. The times are
of single processes on a busy machine:

{equal}

{missed} of {made} would be called `screened`.
"""
