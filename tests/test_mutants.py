"""Each mutant changes a line that is there: ``python -m tests.mutants`` runs the tests on them."""

from __future__ import annotations

from pathlib import Path

import pytest

import perfci
from tests.mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_what_a_mutant_changes_stands_once_in_its_file(mutant: Mutant) -> None:
    text = (Path(perfci.__file__).parent / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
