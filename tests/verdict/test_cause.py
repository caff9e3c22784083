"""What a reader should blame for a row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfci.finding import because, finding
from perfci.model.report import Comparison
from perfci.verdict.caveats import cause_of
from tests.report.examples import EAGER, bare, row

ROW = row(EAGER, "latency_p50", 1.0, 1.1, "inconclusive")
NOISY = replace(ROW, findings=(finding("near-threshold", change=0.1, threshold=0.05),))
FEW = finding("too-few", count=2, what="round", needed=5, setting="rounds")
GROUPS = finding("round-groups", low=0.9, high=1.1, low_count=3, high_count=3)
ROUNDS = finding("few-rounds", rounds=5, needed=6, setting="rounds")


@pytest.mark.parametrize(
    ("of", "wanted"),
    [
        (replace(ROW, status="regressed"), "code"),
        (replace(ROW, status="improved"), "code"),
        (replace(ROW, status="unchanged"), ""),
        (bare("x", "new", "no baseline"), ""),
        (bare("x", "failed", "it crashed"), "code"),
        (bare("x", "not_comparable", "another environment"), "method"),
        (NOISY, "noise"),
        (replace(NOISY, disturbance="core taken"), "machine"),
        (replace(ROW, findings=(FEW,), disturbance="core taken"), "method"),
        (replace(ROW, findings=(FEW, because("looks-regressed", GROUPS))), "noise"),
        (replace(ROW, findings=(because("looks-regressed", ROUNDS),)), "method"),
    ],
)
def test_each_row_has_its_class(of: Comparison, wanted: str) -> None:
    assert cause_of(of) == wanted
