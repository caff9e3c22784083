"""docs/design.md: the layout and the layers, as they are."""

from __future__ import annotations

import re
import sys
import tomllib

from tests.docs.pages import ROOT, page

MODULES = {
    one.stem
    for one in (ROOT / "perfci").iterdir()
    if one.suffix == ".py" or (one / "__init__.py").is_file()
} - {"__init__", "__main__"}


def layers() -> list[set[str]]:
    """Return the modules of each layer of the contract, the highest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        one for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers"
    )
    return [
        {name.strip().removeprefix("perfci.") for name in re.split("[|:]", layer)}
        for layer in contract["layers"]
    ]


def test_the_layers_are_those_that_the_contract_holds() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page("design.md"), flags=re.MULTILINE)
    assert [int(floor) for floor, _ in rows] == list(range(len(rows), 0, -1))
    assert [set(packages.split(", ")) for _, packages in rows] == layers()


def test_everything_in_the_package_is_in_a_layer_and_in_the_layout() -> None:
    assert set().union(*layers()) == MODULES
    (tree,) = re.findall(r"^    perfci/\n((?:      .*\n)+)", page("design.md"), re.MULTILINE)
    shown = re.findall(r"^      (\S+/|(?:\S+\.py ?)+)", tree, flags=re.MULTILINE)
    assert {one.removesuffix(".py").strip("/") for line in shown for one in line.split()} == MODULES


def test_no_folder_of_benchmarks_hides_a_module_from_the_scripts_beside_it() -> None:
    folders = {path.parent.name for path in (ROOT / "benchmarks").glob("*/__init__.py")}
    assert not folders & sys.stdlib_module_names
