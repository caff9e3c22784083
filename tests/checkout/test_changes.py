"""Which changes a benchmark should exercise, and which it need not."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.measure.checkout.git import git
from perfci.measure.checkout.trees import changed_lines, is_source


@pytest.mark.parametrize("name", ["lib/a.py", "tools/attention.py"])
def test_python_is_a_source(name: str) -> None:
    assert is_source(name)


@pytest.mark.parametrize(
    "name", ["setup.py", "uv.lock", "docs/conf.py", "tests/a.py", "lib/a_test.py", "weights.bin"]
)
def test_what_no_benchmark_imports_is_none(name: str) -> None:
    assert not is_source(name)


@pytest.mark.parametrize(
    ("base", "head", "lines"),
    [
        ("a\nb\nc\n", "a\nx\nc\n", ({2}, {2})),
        ("a\nb\nc\n", "a\nb\nnew\nmore\nc\n", ({2, 3}, {3, 4})),
        ("a\nb\nc\n", "a\nc\n", ({2}, {1, 2})),
        ("a\n-- b\nc\n", "a\n++ d.py\nc", ({2, 3}, {2, 3})),
        (None, "a\nb\n", ({0, 1}, {1, 2})),
        ("a\nb\n", None, ({1, 2}, {0, 1})),
    ],
    ids=["other", "new", "removed", "like names", "new file", "removed file"],
)
@pytest.mark.parametrize("name", ["lib.py", "deep/with blank.py", "naïve.py"])
def test_the_lines_that_differ_are_known_on_both_sides(
    tmp_path: Path, name: str, base: str | None, head: str | None, lines: tuple[set[int], set[int]]
) -> None:
    git(tmp_path, "init", "-q")
    trees = []
    for text in (base, head):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        (tmp_path / "other.txt").write_text(str(text))
        git(tmp_path, "add", "-A")
        trees.append(git(tmp_path, "write-tree"))
    assert changed_lines(tmp_path, (trees[0], trees[1])) == {name: lines}
