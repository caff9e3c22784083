"""A report begins in one place, undecided, with what was measured."""

from __future__ import annotations

import ast
from pathlib import Path

import perfci

PACKAGE = Path(perfci.__file__).parent


def test_no_other_module_begins_a_report() -> None:
    builders = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Report"
    }
    assert builders == {"commands/compare.py"}
