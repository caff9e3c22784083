"""The tests of other environments: each library that perfci needs is called by some of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.environments import CALLING, OF_THE_NEWEST, WITH_PYTHON

ROOT = Path(__file__).resolve().parent.parent


def test_each_library_is_called_in_its_oldest_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["postgres"]]
    assert {Requirement(text).name for text in needed} == set(CALLING)


@pytest.mark.parametrize("path", [*WITH_PYTHON, *OF_THE_NEWEST, *sum(CALLING.values(), ())])
def test_what_is_named_is_there(path: str) -> None:
    file, _, function = path.partition("::")
    assert (ROOT / "tests" / file).exists()
    assert not function or f"def {function}(" in (ROOT / "tests" / file).read_text("utf-8")
