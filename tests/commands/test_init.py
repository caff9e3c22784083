"""A first configuration names the Python that measures."""

from __future__ import annotations

import sys
import tomllib
import venv
from pathlib import Path

import pytest

from perfci.commands.first_benchmark import first_benchmark, package_models
from perfci.commands.init import initialise
from perfci.commands.workflows import CiOptions
from perfci.measure.checkout.git import open_repository
from perfci.outputs import silent
from tests.builders.project import Project

OPTIONS = CiOptions(install=("pip install .",), action=f"o/perfci@{40 * 'a'}")


@pytest.mark.parametrize(
    ("folder", "workflows", "python"),
    [
        (".venv", None, ".venv/bin/python"),
        ("venv", None, "venv/bin/python"),
        ("environment", None, "environment/bin/python"),
        (".venv", OPTIONS, None),  # the jobs that it writes have an environment of their own
    ],
)
def test_a_virtual_environment_in_the_folder_is_what_measures(
    project: Project, folder: str, workflows: CiOptions | None, python: str | None
) -> None:
    (project.folder / "pyproject.toml").unlink()
    (project.folder / folder / "bin").mkdir(parents=True)
    (project.folder / folder / "bin" / "python").symlink_to(sys.executable)
    project.commit("first")
    initialise(open_repository(project.folder), "benchmarks", silent, workflows=workflows)
    written = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written.get("python") == python


@pytest.mark.parametrize(
    ("folder", "name", "python_path"),
    [
        ("src", "toy-codec", None),
        (".", "Toy.Codec", None),
        ("python", "toy-codec", ["python"]),
        ("libs/codec/src", "another", ["libs/codec/src"]),
    ],
)
def test_the_first_benchmark_is_of_the_projects_own_package_and_runs(
    project: Project, folder: str, name: str, python_path: list[str] | None
) -> None:
    project.write("pyproject.toml", f'[project]\nname = "{name}"\nversion = "1"\n')
    if python_path:
        project.write(f"{folder.removesuffix('/src')}/pyproject.toml", "")
    project.write(f"{folder}/toy_codec/__init__.py", "")
    project.commit("first")
    initialise(open_repository(project.folder), "benchmarks", silent)
    written = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written.get("python_path") == python_path
    first = (project.folder / "benchmarks" / "bench_first.py").read_text()
    assert "import toy_codec\n" in first
    done = project.perfci("list")
    assert (done.code, done.out.split()[0]) == (0, "importing")


def environment(project: Project, name: str, *, torch: bool = False) -> None:
    """Make an environment without perfci, and with a torch of no content."""
    venv.create(project.folder / name, symlinks=True)
    if torch:
        (packages,) = (project.folder / name).glob("lib/python*/site-packages")
        (packages / "torch.py").write_text("")


ENCODER = """\
import torch
from torch import nn
from toy.blocks import Block
class Encoder(nn.Module):
    def __init__(self, width: int, depth=2):
        super().__init__()
        self.blocks = nn.Sequential(Block(width), Block(width))
    def forward(self, x): return self.blocks(x)
"""
BLOCK = """\
from torch import nn
class Block(nn.Module):
    def __init__(self, size, wide=256):
        super().__init__()
        self.up, self.down = nn.Linear(size, wide), nn.Linear(wide, size)
    def forward(self, x): return self.down(self.up(x))
"""
BASE = """\
from abc import abstractmethod
from torch import nn
class Operation(nn.Module):
    def __init__(self): self.layer = nn.Linear(8, 8)
    def forward(self, x): return x
    @abstractmethod
    def run(self): ...
"""


def test_the_first_benchmark_measures_the_model_that_the_package_exports(tmp_path: Path) -> None:
    package = tmp_path / "toy"
    package.mkdir()
    for name, text in (("a_base", BASE), ("blocks", BLOCK), ("encoder", ENCODER)):
        (package / f"{name}.py").write_text(text)
    (package / "__init__.py").write_text("from toy.encoder import Encoder\n")
    assert [model.name for model in package_models(package)] == ["Encoder", "Block"]
    text = first_benchmark(package)
    assert "from toy import Encoder\n" in text
    assert "model = Encoder(width=64).eval()" in text
    assert "perfci.inference(model, torch.randn(batch, 64), items=batch)" in text
    (package / "__init__.py").write_text("")
    assert package_models(package)[0].module == "toy.encoder"  # it is made of the other
