"""Modes beside each other: which helps, what it costs, and what can't be said."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from perfci.model.report import Comparison, Estimate
from perfci.report.exporters.markdown import render as render_markdown
from perfci.report.modes import mode_tables, without_mode
from perfci.stats.evidence import summarise
from tests.report.examples import row
from tests.report.mode_reports import HELPS, USELESS, mode_comparison, mode_rows
from tests.report.rendered import with_markdown_it


@pytest.mark.parametrize(
    ("case", "split"),
    [
        ("encoder[batch=1,mode=eager]", ("encoder[batch=1]", "eager")),
        ("encoder[mode=backend:eager,batch=1]", ("encoder[batch=1]", "backend:eager")),
        ("saved[mode=default]", ("saved", "default")),
        ("encoder[batch=1]", None),
        ("tokenise", None),
        ("a[mode=x,mode=y]", None),
        ("[mode=x]", None),
        ("a[mode=x]b", None),
        ("", None),
    ],
)
def test_a_cases_mode_is_told_from_the_rest(case: str, split: tuple[str, str] | None) -> None:
    assert without_mode(case) == split


def test_no_mode_helps_where_every_interval_ends_below_the_threshold() -> None:
    (table,) = mode_tables(mode_rows(USELESS))
    assert table.advice == "no mode helps: none is 5 % faster than eager"


def test_fewer_than_five_processes_have_no_interval_and_no_advice() -> None:
    (table,) = mode_tables(mode_rows(HELPS, workers=4))
    assert table.advice.startswith("not decided: ")
    assert table.lines[2][2] == "1.97×"


def test_of_modes_that_are_no_faster_one_in_a_hundred_is_recommended_at_most() -> None:
    rng = random.Random(20261122)
    wrong = sum(_advice(rng, speedup=1.05) == "use" for _ in range(2000))
    assert wrong <= 33  # three standard errors above 1 % of 2,000: 20 + 3 * 4.4
    right = sum(_advice(rng, speedup=1.2) == "use" for _ in range(200))
    assert right >= 190


def _advice(rng: random.Random, speedup: float) -> str:
    """Return the advice on three modes of eight processes each that spread by 2 %."""
    rows = []
    for mode in ("eager", "default", "reduce-overhead", "max-autotune"):
        scale = 1e-3 if mode == "eager" or speedup < 1.1 else 1e-3 / speedup
        values = [scale * math.exp(rng.gauss(0.0, 0.02)) for _ in range(8)]
        rows.append(_of(mode, values))
    (table,) = mode_tables(rows)
    return table.advice.partition(" ")[0]


def _of(mode: str, values: list[float]) -> Comparison:
    known = summarise(values)
    head = Estimate(known.center, known.lo, known.hi, 8, 800, tuple(values))
    return replace(row(f"x[mode={mode}]", "latency_p50", 1.0, 1.0, "new"), base=None, head=head)


def test_the_comment_folds_what_changed() -> None:
    text = render_markdown(mode_comparison())
    fold = text.split("<details><summary>Modes that changed</summary>")[1].split("</details>")[0]
    assert "no mode helps: none is 5 % faster than eager; on base it was default" in fold
    assert "encoder" not in fold
    cells = with_markdown_it(fold).cells
    assert cells[: len(HELPS) + 2] == [
        "eager",
        "600\N{NO-BREAK SPACE}µs",
        "",
        "300\N{NO-BREAK SPACE}MiB",
        "",
        "",
    ]
