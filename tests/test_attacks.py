"""The tables of attacks are those of the counts which the campaigns kept."""

from __future__ import annotations

from tests import attacks
from tests.fuzz.targets import TARGETS


def test_the_page_has_the_tables_of_what_was_kept() -> None:
    page = attacks.PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- end of ") == 3
    assert attacks.with_tables(page) == page
    assert attacks.with_tables(page.replace("|0|", "|7|")) == page


def test_each_reader_of_strangers_bytes_is_in_it_and_nothing_failed() -> None:
    assert set(attacks.kept("fuzz")) == set(TARGETS)
    every = [
        counts for kind in ("fuzz", "disks", "kills") for counts in attacks.kept(kind).values()
    ]
    assert all(one["tried"] > 0 == one["faults"] for one in every)
