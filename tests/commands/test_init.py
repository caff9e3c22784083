"""``perfci init``: which Python, which file and which first benchmark it decides on."""

from __future__ import annotations

import ast
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from perfci.commands.init import first_benchmark, initialise
from perfci.commands.workflows import CiOptions
from perfci.config.loading import load_config
from perfci.errors import UsageError
from perfci.measure.checkout.git import open_repository
from perfci.outputs import silent
from tests.builders.project import Project

PYTHON = sys.executable
OPTIONS = CiOptions(install=("pip install .",), action=f"o/perfci@{40 * 'a'}")


def initialised(project: Project, **request: Any) -> list[str]:
    """Run init with these options; its notices."""
    said: list[str] = []
    initialise(open_repository(project.folder), said.append, **request)
    return said


def python_with(folder: Path, *modules: str) -> Path:
    """Make a virtual environment whose Python has these modules."""
    for name in ("pyvenv.cfg", *(f"site/{module}/__init__.py" for module in modules)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    python = folder / "bin" / "python"
    python.parent.mkdir()
    site = shlex.quote(str(folder / "site"))
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {PYTHON} -S "$@"\n')
    python.chmod(0o755)
    return python


def without_torch(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let perfci's own Python, and those on PATH, lack torch."""
    own = python_with(project.folder.parent / "own")
    monkeypatch.setattr(sys, "executable", str(own))
    monkeypatch.setenv("PATH", f"{own.parent}:/usr/bin:/bin")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)


def table_in(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads(path.read_text())
    table: dict[str, Any] = content["tool"]["perfci"]
    return table


@pytest.mark.parametrize(
    ("folder", "workflows", "python"),
    [
        (".venv", None, ".venv/bin/python"),
        ("venv", None, "venv/bin/python"),
        (".venv", OPTIONS, None),  # the jobs that it writes have an environment of their own
    ],
)
def test_a_virtual_environment_in_the_folder_is_what_measures(
    project: Project, folder: str, workflows: CiOptions | None, python: str | None
) -> None:
    project.write("pyproject.toml", '[project]\nname = "toy"\n')
    python_with(project.folder / folder, "torch")
    project.commit("first")
    initialised(project, workflows=workflows)
    assert table_in(project.folder / "pyproject.toml").get("python") == python


@pytest.mark.parametrize("code", ["import torch\n", "from torch import nn\n", None])
@pytest.mark.parametrize("in_venv", [(), ("numpy",)])
def test_nothing_is_written_before_a_python_with_torch_is_known(
    project: Project, monkeypatch: pytest.MonkeyPatch, code: str | None, in_venv: tuple[str, ...]
) -> None:
    without_torch(project, monkeypatch)
    (project.folder / "pyproject.toml").unlink()
    project.commit("first", **({"toy/__init__.py": code} if code else {}))
    if in_venv:
        python_with(project.folder / ".venv", *in_venv)
    elsewhere = python_with(project.folder.parent / "elsewhere", "torch")
    before = sorted(project.folder.iterdir())
    with pytest.raises(UsageError, match="torch") as caught:
        initialised(project)
    assert sorted(project.folder.iterdir()) == before
    assert "perfci init --python" in caught.value.advice
    monkeypatch.setenv("VIRTUAL_ENV", str(elsewhere.parent.parent))
    with pytest.raises(UsageError) as caught:
        initialised(project)
    assert caught.value.advice.endswith(f"perfci init --python {elsewhere}")
    said = initialised(project, python=str(elsewhere))
    assert load_config(project.folder).python == str(elsewhere)
    assert [line for line in said if "path of this machine" in line]


def test_a_python_in_the_repository_is_written_relative_to_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_torch(project, monkeypatch)
    python = python_with(project.folder / "env", "torch")
    project.write("pyproject.toml", "")
    project.commit("first", **{"toy/__init__.py": "import torch\n"})
    said = initialised(project, python=str(python))
    assert load_config(project.folder).python == "env/bin/python"
    assert not [line for line in said if "path of this machine" in line]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[tool.perfci]\nrounds = 6\n[tool.other]\na = 1\n"),
        ("pyproject.toml", "[tool.perfci]  # ours\r\nrounds = 6\r\n"),
        ("pyproject.toml", "[tool.perfci.metrics.latency_p50]\nthreshold = 0.1\n"),
        ("perfci.toml", "rounds = 6\n[metrics.latency_p50]\nthreshold = 0.1\n"),
        ("perfci.toml", "[tool.perfci]\nrounds = 6\n"),
    ],
)
@pytest.mark.parametrize("option", [{"python": sys.executable}, {"strict": True}])
def test_a_second_init_completes_the_configuration(
    project: Project, file: str, text: str, option: dict[str, Any]
) -> None:
    (project.folder / "pyproject.toml").unlink()
    project.write(file, text)
    project.commit("first", **{"toy/__init__.py": ""})
    before = load_config(project.folder)
    initialised(project, **option)
    now = load_config(project.folder)
    assert (now.python or now.policy.strict) == next(iter(option.values()))
    assert (now.settings.rounds, now.policy.metrics) == (
        before.settings.rounds,
        before.policy.metrics,
    )
    written = (project.folder / file).read_bytes()
    initialised(project, **option)
    assert (project.folder / file).read_bytes() == written


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ('[tool.perfci]\npython = "other"\n', {"python": sys.executable}),
        ("[tool.perfci]\nstrict = false\n", {"strict": True}),
        ("[tool]\nperfci = {rounds = 6}\n", {"strict": True}),
        ("tool.perfci.rounds = 6\n", {"strict": True}),
    ],
)
def test_what_is_configured_otherwise_is_left_as_it_is(
    project: Project, text: str, option: dict[str, Any]
) -> None:
    project.write("pyproject.toml", text)
    project.commit("first", **{"toy/__init__.py": ""})
    with pytest.raises(UsageError, match="configures perfci already"):
        initialised(project, **option)
    assert (project.folder / "pyproject.toml").read_text() == text


@pytest.mark.parametrize("file", ["setup.py", "setup.cfg", "requirements.txt", "toy/__init__.py"])
def test_a_pyproject_toml_is_never_created(project: Project, file: str) -> None:
    (project.folder / "pyproject.toml").unlink()
    project.commit("first", **{file: "", "toy/__init__.py": ""})
    initialised(project)
    assert not (project.folder / "pyproject.toml").exists()
    assert load_config(project.folder).benchmarks == "benchmarks"


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("first", ["[tool.perfci]\nrounds = 6\n", "rounds = 6\n", None])
def test_workflows_come_with_a_decision_on_inconclusive_verdicts(
    project: Project, strict: bool, asked: bool, first: str | None
) -> None:
    (project.folder / "pyproject.toml").unlink()
    project.commit("first", **{"toy/__init__.py": ""}, **({"perfci.toml": first} if first else {}))
    answer = {"ask_strict": lambda: strict} if asked else {"strict": strict}
    said = initialised(project, workflows=OPTIONS, **answer)
    assert load_config(project.folder).policy.strict is strict
    assert "strict = " in (project.folder / "perfci.toml").read_text()
    told = [line for line in said if "inconclusive" in line]
    assert len(told) == 1
    assert ("doesn't fail" in told[0]) is not strict
    again = initialised(project, workflows=OPTIONS)
    assert [line for line in again if "inconclusive" in line] == told


TEST = "def test_join(benchmark):\n    benchmark(','.join, 'ab')\n"
ASV = '{"version": 1, "benchmark_dir": "speed"}'
SUITES = {
    "tests/benchmarks/test_join.py": ("tests/benchmarks", "test_*.py", {}),
    "benchmarks/join_test.py": ("benchmarks", "*_test.py", {}),
    "tests/unit/test_join.py": ("tests/unit", "test_join.py", {}),
    "tests/test_perf_a.py": ("tests", "test_perf_*.py", {"tests/test_perf_b.py": TEST}),
    "tests/a/one_test.py": ("tests", "*_test.py", {"tests/two_test.py": TEST}),
    "speed/speed_a.py": ("speed", "speed_*.py", {"speed/speed_b.py": TEST}),
    "src/pkg/tests/test_join.py": ("src/pkg/tests", "test_join.py", {}),
    "test_perf.py": (
        ".",
        "test_perf.py",
        {"conftest.py": "def bench(benchmark):\n    benchmark()\n"},
    ),
    "perf/speed/join.py": ("perf/speed", "*.py", {"perf/asv.conf.json": ASV}),
    "perf/join.py": ("perf", "*.py", {"ci/asv.conf.json": ASV.replace("speed", "../perf")}),
    "speed/deep/join.py": ("speed", "*.py", {"asv.conf.jsonc": f"// asv's\n{ASV}"}),
}
"""Files of suites, with their folder, their pattern and other files."""


@pytest.mark.parametrize("file", SUITES)
@pytest.mark.parametrize("configured", [False, True])
def test_a_suite_for_another_tool_is_found_and_gets_no_first_benchmark(
    project: Project, file: str, configured: bool
) -> None:
    place, pattern, others = SUITES[file]
    (project.folder / "pyproject.toml").unlink()
    if configured:
        project.write("pyproject.toml", "[tool.perfci]\nrounds = 6\n")
    project.write("tests/test_other.py", "def test_other():\n    assert True\n")
    # a script of the project's own is no benchmark
    project.commit("suite", **{file: TEST, "benchmarks/bench_transport.py": "1 / 0\n", **others})
    said = initialised(project)
    assert not list(project.folder.rglob("bench_first.py"))
    assert any(f"{place}/" in line and pattern in line for line in said), said
    config = load_config(project.folder)
    assert (config.benchmarks, config.pattern) == (place, pattern)
    initialised(project)
    assert not list(project.folder.rglob("bench_first.py"))


def test_a_folder_that_is_asked_for_gets_a_first_benchmark_beside_a_suite(
    project: Project,
) -> None:
    (project.folder / "pyproject.toml").unlink()
    project.commit("suite", **{"tests/benchmarks/test_join.py": TEST})
    initialised(project, benchmarks="perf")
    assert (project.folder / "perf/bench_first.py").is_file()
    assert load_config(project.folder).benchmarks == "perf"


@pytest.mark.parametrize(
    ("folder", "package", "python_path"),
    [
        ("src", "", None),
        (".", "", None),
        ("libs/codec/src", "libs/codec/src/toy_codec", ["libs/codec/src"]),
    ],
)
def test_the_first_benchmark_is_of_the_projects_own_package_and_runs(
    project: Project, folder: str, package: str, python_path: list[str] | None
) -> None:
    project.write("pyproject.toml", '[project]\nname = "toy-codec"\nversion = "1"\n')
    project.write(f"{folder}/toy_codec/__init__.py", "")
    project.write("src/another/__init__.py", "")
    project.commit("first")
    initialise(open_repository(project.folder), silent, package=package)
    written = tomllib.loads((project.folder / "pyproject.toml").read_text())["tool"]["perfci"]
    assert written.get("python_path") == python_path
    first = (project.folder / "benchmarks" / "bench_first.py").read_text()
    assert "import toy_codec\n" in first
    done = project.perfci("list")
    assert (done.code, done.out.split()[0]) == (0, "importing")


README = "# toy\n\nAn Encoder.\n\n    model = toy.Wrapper(\n        tokens = 5)\n    Inner()\n"
MODELS = {
    "a.py": "from torch import nn\nclass Deep(nn.Module):\n    def __init__(self, depth=64): ...\n"
    "class Inner(Deep): ...\nclass _Own(nn.Module): ...\nclass Encoder: ...\n",
    "b.py": "from torch.nn import Module\nfrom toy.a import Deep\nclass Wrapper(Deep):\n"
    "    def __init__(self, tokens, *, width, heads=8): ...\ndef f(): ...\n",
    "c.py": "class Tail(nn.Sequential): ...\nclass Lit(L.LightningModule): ...\n",
    "broken.py": "def broken(:\n",
}


@pytest.mark.parametrize(
    ("readme", "exports", "models"),
    [
        (
            README,
            "from .b import Wrapper\n",
            ["toy.Wrapper(tokens=..., width=...)", "toy.a.Inner()"],
        ),
        ("", "from .a import Inner, Deep\n", ["toy.Inner()", "toy.Deep()"]),
        ("", "from toy.b import *\n", ["toy.Wrapper(tokens=..., width=...)", "toy.a.Deep()"]),
        (README, "", ["toy.b.Wrapper(tokens=..., width=...)", "toy.a.Inner()"]),
        ("", "", ["toy.a.Deep()", "toy.a.Inner()"]),
        ("use Lit() here", "from toy.c import Tail\n", ["toy.c.Lit()", "toy.Tail()"]),
        (
            "",
            '"""Has Deep."""\nfrom toy import c\nclass Own(c.Tail): ...\n',
            ["toy.Own()", "toy.a.Deep()"],
        ),
    ],
)
def test_the_first_benchmark_names_first_the_models_that_the_project_shows_first(
    tmp_path: Path, readme: str, exports: str, models: list[str]
) -> None:
    package = tmp_path / "src" / "toy"
    package.mkdir(parents=True)
    for name, content in {**MODELS, "__init__.py": exports}.items():
        (package / name).write_text(content)
    if readme:
        (tmp_path / "README.md").write_text(readme)
    text = first_benchmark(package, tmp_path)
    listed = [line[4:] for line in text.splitlines() if line.startswith("#   toy")]
    assert listed[:2] == models
    assert not [line for line in listed if "_Own" in line or "Encoder" in line]
    example = text[text.index("# import torch") :].replace("\n# ", "\n").replace("\n#\n", "\n")[2:]
    assert f"model = {models[0]}" in ast.unparse(ast.parse(example)).replace("Ellipsis", "...")
    imported = models[0].partition("(")[0].rpartition(".")[0]
    assert f"import {imported}\n" in f"import toy\n{example}"
