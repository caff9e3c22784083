"""Which changes a benchmark should exercise, and which it need not."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.measure.checkout.trees import TreeChanges, kind_of
from tests.builders.project import Project


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("lib/a.py", "sources"),
        ("csrc/kernel.cu", "sources"),
        ("csrc/kernel.inl", "sources"),
        ("csrc/kernel.S", "sources"),
        ("src/solver.F90", "sources"),
        ("shaders/add.metal", "sources"),
        ("uv.lock", "locks"),
        ("requirements/gpu.txt", "requirements"),
        ("requirements-dev.txt", "requirements"),
        ("environment.yml", "requirements"),
        ("setup.py", "packaging"),
        ("Cargo.toml", "packaging"),
        ("Makefile", ""),
        ("cmake/flags.cmake", "packaging"),
        (".gitmodules", "submodules"),
        (".github/workflows/perf.yml", "ci"),
        ("docker/Dockerfile.gpu", "ci"),
        ("README.md", ""),
        ("docs/conf.py", ""),
        ("docs/requirements.txt", ""),
        ("tests/test_a.py", ""),
        ("lib/a_test.py", ""),
        (".github/ISSUE_TEMPLATE/bug.yml", ""),
        ("weights.bin", ""),
    ],
)
def test_each_file_has_its_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind


PYPROJECT = """\
[project]
version = "{version}"
dependencies = ["torch=={torch}"]
[tool.ruff]
line-length = {length}
"""


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        ({"version": 2, "torch": 1, "length": 99}, {}),
        ({"version": 1, "torch": 2, "length": 80}, {"packaging": ("pyproject.toml",)}),
    ],
)
def test_of_pyproject_only_what_runs_counts(
    project: Project, tmp_path: Path, after: dict[str, int], kinds: dict[str, tuple[str, ...]]
) -> None:
    base, head = tmp_path / "base", tmp_path / "head"
    trees = []
    for root, values in ((base, {"version": 1, "torch": 1, "length": 80}), (head, after)):
        project.commit("one", **{"pyproject.toml": PYPROJECT.format(**values)})
        trees.append(project.git("rev-parse", "HEAD^{tree}").strip())
        project.git("worktree", "add", "--quiet", "--detach", str(root))
    changes = TreeChanges.between(head, (trees[0], trees[1]))
    assert changes.by_kind(base, head) == kinds
