"""A report is built in one place, of what was measured and decided."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import perfci
from perfci.model.report import Report
from perfci.verdict.decision import build_report, opened
from tests.report.examples import alone_report, hostile_report, passing_report, rich_report
from tests.verdict.shards import shard

PACKAGE = Path(perfci.__file__).parent


@pytest.mark.parametrize(
    "report",
    [rich_report(), passing_report(), alone_report(), hostile_report("x"), shard(1, 2)],
)
def test_an_opened_report_builds_the_same_again(report: Report) -> None:
    assert build_report(*opened(report)) == report


def test_no_other_module_builds_a_report_or_patches_one() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                first = node.args[0] if node.args else None
                patched = isinstance(first, ast.Name) and first.id in {"report", "told", "joined"}
                if node.func.id == "Report" or (node.func.id == "replace" and patched):
                    found.add(str(path.relative_to(PACKAGE)))
    assert found == {"verdict/decision.py"}
