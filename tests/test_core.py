"""The core of the tests: few, and there."""

from __future__ import annotations

import re

import pytest

from tests.core import CORE, MOST, is_core
from tests.test_vocabulary import ROOT


def test_they_are_few() -> None:
    assert sum(map(len, CORE.values())) <= MOST


@pytest.mark.parametrize("module", CORE)
def test_each_is_there(module: str) -> None:
    there = set(re.findall(r"^def (test_\w+)", (ROOT / "tests" / module).read_text(), re.MULTILINE))
    assert {name.partition("[")[0] for name in CORE[module]} <= there


def test_a_test_is_known_by_its_name_and_the_beginning_of_its_parameters() -> None:
    matrix = "tests/matrix/test_matrix.py::test_each_side_runs_its_own_code"
    assert is_core(f"{matrix}[src, setuptools, compat, pure]")
    assert not is_core(f"{matrix}[src, setuptools, strict, compiled beside]")
    compare = "tests/cli/test_compare.py::test_two_pythons_can_be_compared"
    assert is_core(compare)
    assert not is_core(f"{compare}_again")
