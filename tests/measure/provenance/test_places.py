"""Whose file is whose, without a session: what is meant, what counts as the project's, advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.measure.provenance.attribution import Provenance, provenance_of
from perfci.measure.provenance.events import CodeEvent, CodePlaces, packages_of


def judged(folder: Path, *events: CodeEvent, installed: tuple[str, ...] = ()) -> Provenance:
    tree, checkout = folder / "cache" / "tree", folder / "helper"
    for one in (tree, checkout):
        (one / "models").mkdir(parents=True)
        (one / "models" / "t.txt").write_text("1")
    places = CodePlaces(
        root=str(tree),
        checkout=f"{checkout}/",
        cache=f"{folder}/cache/",
        own=(f"{tree}/",),
        spared=(),
        python_path=(),
        installed=installed,
    )
    return provenance_of(events, places, (), built=False)


def test_a_checkout_whose_folder_has_an_installed_packages_name_is_not_meant(
    tmp_path: Path,
) -> None:
    path = f"{tmp_path}/helper/src/shapes/value.py"
    one = CodeEvent("import", path, "shapes.value")
    assert [w.where for w in judged(tmp_path, one, installed=("helper",)).wrong] == ["checkout"]


@pytest.mark.parametrize(
    "path", ["helper/lib/site-packages/helper/_C.so", "helper/elsewhere/helper/_C.so"]
)
def test_what_lies_in_an_installed_package_is_meant(tmp_path: Path, path: str) -> None:
    file = Path(tmp_path, path)
    package = CodeEvent("import", str(file.with_name("__init__.py")), "helper")
    found = judged(tmp_path, package, CodeEvent("map", str(file)), installed=("helper",))
    assert not found.wrong


def test_data_that_is_read_from_the_checkout_is_no_matter_of_python_path(tmp_path: Path) -> None:
    (wrong,) = judged(tmp_path, CodeEvent("open", f"{tmp_path}/helper/models/t.txt")).wrong
    assert "`__file__`" in wrong.advice
    assert "python_path" not in wrong.advice


def test_examples_named_as_other_peoples_packages_are_not_the_projects(tmp_path: Path) -> None:
    for name in ("src/core", "libs/extra", "examples/yaml", "benchmarks/numpy"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").touch()
    assert packages_of(tmp_path, ("src",)) == ("core", "extra")
    assert packages_of(tmp_path, ("src", "examples")) == ("core", "extra", "yaml")
