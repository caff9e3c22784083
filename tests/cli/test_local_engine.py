"""``compare --engine local``: shards as processes of their own, merged to one verdict."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from perfci.measure.machine.cores import available_cores, physical_cores
from tests.builders.project import NOISE_PASSES, QUICK, Project

CORES = physical_cores(available_cores())
ENGINE = ("--engine", "local", "--shards", "2", "--parallel", "2")


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


def submitted(job: Path, number: str) -> int:
    end = time.monotonic() + 20.0
    while time.monotonic() < end:
        path = job / "submitted.json"
        if path.exists() and number in (kept := json.loads(path.read_text())):
            return kept[number]["pid"]
        time.sleep(0.05)
    raise AssertionError("no shard was submitted")


def test_a_shard_that_died_is_named_and_measured_by_the_same_command(
    parted: Project, tmp_path: Path
) -> None:
    out, job = tmp_path / "report.json", tmp_path / "job"
    arguments = ("compare", "main", "feature", *ENGINE, "--json", str(out), "--job-dir", str(job))
    with parted.start(*arguments) as first:
        os.kill(submitted(job, "2"), signal.SIGKILL)
        said = first.communicate(timeout=60)
    assert first.returncode == 3, said
    report = json.loads(out.read_text())
    assert (report["verdict"]["status"], report["missing"]) == ("inconclusive", ["2/2"])
    assert any(
        note.startswith("Shard 2 of 2 is missing: killed by SIGKILL") for note in report["notes"]
    )
    assert "the same command measures what is missing" in said[1]
    kept = (job / "shard-1.json").stat().st_mtime_ns
    settings = (parted.folder / "pyproject.toml").read_text()
    parted.write("pyproject.toml", settings.replace("rounds = 5", "rounds = 6"))
    other = parted.process(*arguments)
    parted.write("pyproject.toml", settings)
    assert other.code == 2, other.text
    assert "another configuration" in other.err
    done = parted.process(*arguments)
    assert done.code == 0, done.text
    assert f"taking up the shards in {job}" in done.err
    report = json.loads(out.read_text())
    assert (report["shard"], report["missing"], report["verdict"]["status"]) == ("", [], "pass")
    assert {row["case"] for row in report["results"]} == {"counting", "steady"}
    assert kept
    assert sorted(path.name for path in job.iterdir()) == ["lock", "shard-1.log", "shard-2.log"]


@pytest.mark.skipif(len(CORES) < 2, reason="one core can't be parted")
def test_a_job_is_taken_up_on_the_cores_that_it_began_with(parted: Project, tmp_path: Path) -> None:
    """Two parts of this machine, or all of it: a shard of either is on other cores."""
    job = tmp_path / "job"
    job.mkdir()
    arguments = ("compare", "main", *ENGINE, "--job-dir", str(job), "--head-python", "/nowhere")
    assert parted.process(*arguments).code == 2
    slots = json.loads((job / "slots.json").read_text())
    assert len(slots) == 2
    once = parted.process(*arguments, "--parallel", "1")
    assert "1 shard at once, on the cores that this job began with" in once.err, once.text
    kept = json.loads((job / "submitted.json").read_text())
    assert [one["slot"] for one in kept.values()] == [0, 0]
    assert json.loads((job / "slots.json").read_text()) == slots
    (job / "slots.json").write_text('[{"cores": [100000], "device": ""}]')
    away = parted.process(*arguments).without_traceback()
    assert (away.code, "cores that this process may not use" in away.err) == (2, True), away.text


def test_check_has_its_shards_measured_against_the_baseline(
    parted: Project, tmp_path: Path
) -> None:
    nothing = parted.perfci("check", "HEAD", *ENGINE).without_traceback()
    assert (nothing.code, "there are no baselines" in nothing.err) == (2, True), nothing.text
    refused = parted.perfci("check", "HEAD", *ENGINE, "--if-stored").without_traceback()
    assert (refused.code, "--if-stored doesn't go with --engine" in refused.err) == (2, True)
    parted.git("checkout", "--quiet", "-b", "stored")
    assert parted.perfci("baseline", "update").code == 0
    parted.commit("baselines")
    out = tmp_path / "report.json"
    done = parted.process("check", "HEAD", *ENGINE, "--json", str(out))
    quiet = parted.folder / "pyproject.toml"
    quiet.write_text(quiet.read_text() + "[tool.perfci.quiet]\nmalloc = false\n")
    parted.commit("another environment")
    alone, others = (parted.process("check", "HEAD", *engine) for engine in ((), ENGINE))
    parted.git("checkout", "--quiet", "feature")
    assert done.code == 0, done.text
    assert "2 shards at once, as --parallel says" in done.err
    report = json.loads(out.read_text())
    assert (report["shard"], report["missing"]) == ("", [])
    assert {row["case"] for row in report["results"]} == {"counting", "steady"}
    assert {row["method"] for row in report["results"]} & {"welch_t", "paired_t"}
    assert (alone.code, others.code) == (2, 2), others.text
    assert "no baseline is of this environment" in alone.err
    said = alone.err[alone.err.index("perfci: no baseline is of") :]
    assert others.err.endswith(said), others.err


def test_ctrl_c_leaves_no_shard_running(parted: Project, tmp_path: Path) -> None:
    job = tmp_path / "job"
    with parted.start("compare", "main", *ENGINE, "--job-dir", str(job)) as process:
        shards = [submitted(job, number) for number in ("1", "2")]
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)
    assert process.returncode in {3, 130}, said
    assert not any(Path(f"/proc/{pid}").exists() for pid in shards)


def test_options_go_to_every_shard_and_what_they_say_is_shown(
    parted: Project, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    own = ("-k", "counting or steady", "--inject=latency=2%", "--no-why", "--rounds", "6")
    done = parted.process(
        "compare", "main", ".", *own, *ENGINE, "--job-dir", str(job),
        "--head-python", "/nowhere/python", "--benchmarks-of", "main", "-v",
    )  # fmt: skip
    assert done.code == 2
    assert "Shard 1 of 2" not in done.err, "both shards say the same"
    assert "/nowhere/python" in done.err
    plan = json.loads((job / "plan.json").read_text())
    base, head = (parted.git("rev-parse", name).strip() for name in ("main", "feature"))
    assert plan["commands"][1][4:] == [
        "compare", base, head, "-k", "counting or steady", "--inject", "latency=2%", "--no-why",
        "--rounds", "6", "--head-python", "/nowhere/python", "--benchmarks-of", base,
        "--log-format", "json", "--shard", "2/2", "--json", str(job / "shard-2.json"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("main", "--engine", "local"), "--engine and --shards belong together"),
        (("main", "--shards", "2"), "--engine and --shards belong together"),
        (("main", "--parallel", "2"), "--parallel, --sbatch and --job-dir need --engine and"),
        (("main", *ENGINE, "--shard", "1/2"), "--shard doesn't go with --engine"),
        (("main", *ENGINE, "--fail-fast"), "--fail-fast doesn't go with --engine"),
        (("main", *ENGINE, "--sbatch", "exclusive"), "--sbatch is for --engine slurm"),
        (("feature", *ENGINE), "the same commit"),
        (("main", "--engine=slurm", "--shards=2", "--parallel=2"), "--parallel is for"),
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


def test_a_job_folder_that_can_not_be_made_is_said_with_what_to_do(parted: Project) -> None:
    arguments = ("compare", "main", *ENGINE, "--job-dir", "/proc/none")
    done = parted.perfci(*arguments).without_traceback()
    assert (done.code, "/proc/none can't be the job's folder" in done.err) == (4, True), done.text
    assert "Give --job-dir a folder that can be written" in done.err


def test_a_second_command_for_the_same_shards_is_refused(parted: Project, tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    with subprocess.Popen(["flock", str(job / "lock"), "sleep", "20"]) as holder:
        time.sleep(0.5)
        done = parted.perfci("compare", "main", *ENGINE, "--job-dir", str(job)).without_traceback()
        holder.terminate()
    assert (done.code, "another perfci waits" in done.err) == (2, True), done.text
