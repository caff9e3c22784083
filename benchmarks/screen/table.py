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
    real = [row for row in outcomes if row.set == "real"]
    planted = [row for row in outcomes if row.set == "planted" and not row.processes]
    return _TEXT.format(
        summary=_summary(outcomes),
        listed=sum(row.screened(LISTED) for row in planted),
        planted=len(planted),
        differing=sum(
            not row.processes and not row.screened(FULL)
            for row in outcomes
            if row.set == "identical"
        ),
        equal=markdown(
            ("planted", "a call takes", "differs in"),
            [
                (row.case, f"{row.ratio:.1f}×", ", ".join(row.differing) or "nothing")
                for row in equal
            ],
        ),
        missed=sum(row.screened(FULL) for row in equal),
        made=len(equal),
        commits=len({row.plant for row in real}),
        pairs=len(real),
        unchanged=sum(not row.changed for row in real),
        changed=sum(row.changed for row in real),
        spared=sum(row.changed and row.screened(FULL) for row in real),
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
allocations, Dynamo's graphs, and calls of each Python function. The last column counts lines of
each function and strides, too. A case whose counts are equal would be `screened` and not be
measured. Work of other processes isn't seen, so those cases can't be screened.

{summary}

It was to become a part of perfci if it missed fewer than one in twenty of the corpus. With the
counts of the first column it misses {listed} of {planted} that can be screened: a loop without
calls keeps its calls (*tiny*), and 1 % adds nothing to 50 units (*compiled*). With lines it sees
all that is planted, but the corpus plants only more of the same work, which is what counts see.
{differing} identical pairs differ, where threads, the clock or entropy have a part.

Slow-downs of another kind keep their counts. Times are of single processes, next to other work:

{equal}

{missed} of {made} would be `screened`, and a reader would take that for `unchanged`. It would save
little: in {commits} commits of einops with three cases each, {unchanged} of {pairs} load no changed
code, which `compare` knows without it. It would spare {spared} of the other {changed}. So it was
left out. A budget that is too short is spent on [cases of changed code
first](how-do-i.md#measure-a-suite-that-is-larger-than-the-budget).
"""
