"""A report is built in one place, of what was measured and judged."""

from __future__ import annotations

import ast
from pathlib import Path

import perfci

PACKAGE = Path(perfci.__file__).parent


def test_no_other_module_builds_a_report() -> None:
    builders = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Report"
    }
    assert builders == {"verdict/decision.py"}
