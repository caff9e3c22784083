"""``compare --engine slurm``: shards as an array of a played Slurm, merged to one verdict."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from tests.builders.project import NOISE_PASSES, QUICK, Done, Project
from tests.engine.test_slurm import FAKE

pytestmark = pytest.mark.processes
ENGINE = ("--engine", "slurm", "--shards", "2")


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """``main`` and ``feature``, of which the library differs, and nothing gets slower."""
    project = Project(tmp_path_factory.mktemp("parts") / "project")
    project.write("pyproject.toml", QUICK + NOISE_PASSES)
    project.counting(1000)
    project.commit("base")
    project.git("checkout", "--quiet", "-b", "feature")
    project.counting(1001)
    project.commit("head")
    return project


def by_slurm(project: Project, folder: Path, *arguments: str) -> Done:
    """Run perfci where the programs of Slurm are those of ``fake_slurm``."""
    for name in ("programs", "slurm"):
        (folder / name).mkdir()
    for name in ("sbatch", "squeue", "scancel", "sacct"):
        program = folder / "programs" / name
        program.write_text(f"#!{sys.executable} -IS\n{FAKE.read_text()}", encoding="utf-8")
        program.chmod(stat.S_IRWXU)
    own = {"PATH": f"{folder / 'programs'}:{os.environ['PATH']}", "FAKE_SLURM": f"{folder}/slurm"}
    job = ("--job-dir", str(folder / "jobs"))
    return project.process(*arguments, *ENGINE, *job, **own)


def test_shards_are_merged_and_leave_no_folder(parted: Project, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    done = by_slurm(parted, tmp_path, "compare", "main", "feature", "--json", str(out))
    assert done.code == 0, done.text
    report = json.loads(out.read_text())
    assert (report["shard"], report["missing"], report["verdict"]["status"]) == ("", [], "pass")
    assert {row["case"] for row in report["results"]} == {"counting", "steady"}
    assert list((tmp_path / "jobs").iterdir()) == []


def test_an_error_of_all_shards_is_one_and_their_options_are_those_given(
    parted: Project, tmp_path: Path
) -> None:
    own = ("-k", "counting or steady", "--inject=latency=2%", "--rounds", "6", "-v")
    away = ("--head-python", "/nowhere/python", "--benchmarks-of", "main")
    done = by_slurm(parted, tmp_path, "compare", "main", ".", *own, *away)
    assert (done.code, "Shard 1 of 2" in done.err) == (2, False), done.text
    assert "/nowhere/python" in done.err
    [job] = (tmp_path / "jobs").iterdir()
    base, head = (parted.git("rev-parse", name).strip() for name in ("main", "feature"))
    script = (job / "array.sh").read_text()
    assert (
        f"compare {base} {head} -k 'counting or steady' --inject latency=2% --rounds 6 "
        f"--head-python /nowhere/python --benchmarks-of {base} --log-format json --shard 2/2"
    ) in script


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("main", "--engine", "slurm"), "--engine and --shards belong together"),
        (("main", "--shards", "2"), "--engine and --shards belong together"),
        (("main", "--sbatch", "exclusive"), "--sbatch and --job-dir need --engine and"),
        (("main", *ENGINE, "--shard", "1/2"), "--shard doesn't go with --engine"),
        (("feature", *ENGINE), "the same commit"),
    ],
)
def test_what_can_not_be_submitted_is_refused(
    parted: Project, arguments: tuple[str, ...], said: str
) -> None:
    done = parted.perfci("compare", *arguments).without_traceback()
    assert (done.code, said in done.err) == (2, True), done.text


def test_changes_that_no_commit_has_are_refused(parted: Project) -> None:
    path = parted.write("new.py", "")
    done = parted.perfci("compare", "main", *ENGINE).without_traceback()
    path.unlink()
    assert (done.code, "the working tree has changes" in done.err) == (2, True), done.text
