"""The tables of attacks are those of the counts which the campaigns kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import attacks
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize(("path", "tables"), [(attacks.PAGE, 1), (attacks.FAULTS, 2)])
def test_the_page_has_the_tables_of_what_was_kept(path: Path, tables: int) -> None:
    page = path.read_text(encoding="utf-8")
    assert page.count("<!-- end of ") == tables
    assert attacks.with_tables(page) == page
    assert attacks.with_tables(page.replace("|0|", "|7|")) == page


def test_each_reader_of_strangers_bytes_is_in_it_and_nothing_failed() -> None:
    assert set(attacks.kept("fuzz")) == set(TARGETS)
    every = [
        counts for kind in ("fuzz", "disks", "kills") for counts in attacks.kept(kind).values()
    ]
    assert all(one["tried"] > 0 == one["faults"] for one in every)
