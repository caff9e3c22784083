"""Building the library that sees which files a worker looks at; and where it can't be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.measure.machine.doctor import _looks
from perfci.measure.machine.isolation import (
    LOOKS_SWITCH,
    PRELOAD,
    LooksLibrary,
    _compiled,
    seen_from_below,
)


def test_it_is_built_once_and_kept(tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nexec cc "$@"\n')
    compiler.chmod(0o755)
    first = seen_from_below(tmp_path, {"CC": str(compiler)})
    assert _looks(first).level == "ok"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    _compiled.cache_clear()  # as in another process
    assert seen_from_below(tmp_path, {"CC": str(compiler)}) == first
    assert [one.name for one in (tmp_path / "looks").iterdir()] == [Path(first.library).name]


def test_a_damaged_one_is_written_anew(tmp_path: Path) -> None:
    library = Path(seen_from_below(tmp_path, {}).library)
    whole = library.read_bytes()
    library.write_bytes(b"half")
    library.with_name("another.so").touch()
    seen_from_below(tmp_path, {})
    assert library.read_bytes() == whole


def test_what_the_user_preloads_is_kept() -> None:
    looks = LooksLibrary(library="/cache/looks.so")
    assert looks.preloaded({PRELOAD: "/lib/a.so"}) == {PRELOAD: "/lib/a.so:/cache/looks.so"}
    assert looks.preloaded({}) == {PRELOAD: "/cache/looks.so"}
    assert LooksLibrary(why="no compiler").preloaded({PRELOAD: "/lib/a.so"}) == {}


@pytest.mark.parametrize(
    ("folder", "environment", "why", "advice"),
    [
        ("cache", {LOOKS_SWITCH: "off"}, "off", LOOKS_SWITCH),
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
    assert why in found.observation
    assert advice in found.advice
