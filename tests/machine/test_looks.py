"""Building the library that sees which files a worker looks at; and where it can't be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.machine.doctor import _looks
from perfci.machine.looks import PRELOAD, SWITCH, Looks, seen_from_below


def test_it_is_built_once_and_kept(tmp_path: Path) -> None:
    first = seen_from_below(tmp_path, {})
    written = Path(first.library).stat().st_mtime_ns
    again = seen_from_below(tmp_path, {})
    assert (again.library, Path(again.library).stat().st_mtime_ns) == (first.library, written)
    assert [one.name for one in (tmp_path / "looks").iterdir()] == [Path(first.library).name]
    assert _looks(first).level == "ok"


def test_a_damaged_one_is_written_anew(tmp_path: Path) -> None:
    library = Path(seen_from_below(tmp_path, {}).library)
    whole = library.read_bytes()
    library.write_bytes(b"half")
    seen_from_below(tmp_path, {})
    assert library.read_bytes() == whole


def test_what_the_user_preloads_is_kept() -> None:
    looks = Looks(library="/cache/looks.so")
    assert looks.preloaded({PRELOAD: "/lib/a.so"}) == {PRELOAD: "/lib/a.so:/cache/looks.so"}
    assert looks.preloaded({}) == {PRELOAD: "/cache/looks.so"}
    assert Looks(why="no compiler").preloaded({PRELOAD: "/lib/a.so"}) == {}


@pytest.mark.parametrize(
    ("folder", "environment", "why", "advice"),
    [
        ("cache", {SWITCH: "off"}, "off", SWITCH),
        ("cache", {"CC": "no-such-compiler"}, "no C compiler (no-such-compiler)", "CC"),
        ("cache", {"CC": "false"}, "can't build", "CC"),
        ("cache", {"CC": "true"}, "doesn't bring it into", "CC"),
        ("a cache", {}, "space", "PERFCI_CACHE_DIR"),
    ],
)
def test_where_it_cannot_be_had_doctor_says_why_and_what_to_do(
    tmp_path: Path, folder: str, environment: dict[str, str], why: str, advice: str
) -> None:
    looks = seen_from_below(tmp_path / folder, environment)
    found = _looks(looks)
    assert (looks.library, found.level) == ("", "worse")
    assert why in found.found
    assert advice in found.advice
