"""``compare --slurm``: shards as an array of a played Slurm, merged to one verdict."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import time
from pathlib import Path

import pytest

from tests.builders.project import Done, Project

pytestmark = pytest.mark.processes
FAKE = Path(__file__).with_name("fake_slurm.py")
SLURM = ("--slurm", "2")


def faked(folder: Path) -> dict[str, str]:
    """Return the variables with which the programs of Slurm are those of ``fake_slurm``."""
    for name in ("programs", "slurm"):
        (folder / name).mkdir()
    for name in ("sbatch", "scancel"):
        program = folder / "programs" / name
        program.write_text(f"#!{sys.executable} -IS\n{FAKE.read_text()}", encoding="utf-8")
        program.chmod(stat.S_IRWXU)
    return {"PATH": f"{folder / 'programs'}:{os.environ['PATH']}", "FAKE_SLURM": f"{folder}/slurm"}


def by_slurm(project: Project, folder: Path, *arguments: str) -> Done:
    job = ("--job-dir", str(folder / "jobs"))
    return project.process(*arguments, *SLURM, *job, **faked(folder))


def test_shards_are_merged_and_leave_no_folder(parted: Project, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    done = by_slurm(parted, tmp_path, "compare", "main", "feature", "--json", str(out))
    assert done.code == 0, done.text
    report = json.loads(out.read_text())
    assert (report["shard"], report["missing"], report["verdict"]["status"]) == ("", [], "pass")
    assert {row["case"] for row in report["results"]} == {"counting", "steady"}
    assert list((tmp_path / "jobs").iterdir()) == []


def test_what_a_shard_says_is_shown_if_none_reports_and_options_are_those_given(
    parted: Project, tmp_path: Path
) -> None:
    own = ("-k", "counting or steady", "--inject=latency=2%", "--rounds", "6", "-v")
    away = ("--head-python", "/nowhere/python", "--benchmarks-of", "main")
    done = by_slurm(parted, tmp_path, "compare", "main", ".", *own, *away)
    assert (done.code, "/nowhere/python" in done.err) == (3, True), done.text
    [job] = (tmp_path / "jobs").iterdir()
    base, head = (parted.git("rev-parse", name).strip() for name in ("main", "feature"))
    script = (job / "array.sh").read_text()
    assert (
        f"compare {base} {head} --benchmarks-of {base} -k 'counting or steady' "
        "--inject latency=2% --rounds 6 --head-python /nowhere/python "
        "--shard $SLURM_ARRAY_TASK_ID/2"
    ) in script


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("main", "--sbatch", "exclusive"), "--sbatch and --job-dir need --slurm"),
        (("main", *SLURM, "--sbatch", "array=1"), "--sbatch 'array=1'"),
        (("main", *SLURM, "--shard", "1/2"), "--shard doesn't go with --slurm"),
        (("feature", *SLURM), "the same commit"),
    ],
)
def test_what_can_not_be_submitted_is_refused(
    parted: Project, arguments: tuple[str, ...], said: str
) -> None:
    done = parted.perfci("compare", *arguments).without_traceback()
    assert (done.code, said in done.err) == (2, True), done.text


def test_changes_that_no_commit_has_are_refused(parted: Project) -> None:
    path = parted.write("new.py", "")
    done = parted.perfci("compare", "main", *SLURM).without_traceback()
    path.unlink()
    assert (done.code, "the working tree has changes" in done.err) == (2, True), done.text


def test_a_shard_that_ends_without_a_report_makes_no_verdict(
    parted: Project, tmp_path: Path
) -> None:
    own = faked(tmp_path)
    sbatch = tmp_path / "programs" / "sbatch"
    lost = """
if sys.argv[0].endswith("sbatch"):
    script = Path(sys.argv[-1])
    stop = '[ "$SLURM_ARRAY_TASK_ID" = 2 ] && echo no torch && exit 2'
    script.write_text(script.read_text().replace("exec", stop + "\\nexec", 1))
"""
    text = sbatch.read_text().replace('if __name__ == "__main__":', f"{lost}if __name__:")
    sbatch.write_text(text, encoding="utf-8")
    out = tmp_path / "report.json"
    job = ("--job-dir", str(tmp_path / "jobs"))
    arguments = ("compare", "main", "feature", *SLURM, *job, "--json", str(out))
    done = parted.process(*arguments, **own)
    assert done.code == 3, done.text
    report = json.loads(out.read_text())
    assert (report["missing"], report["verdict"]["status"]) == (["2/2"], "inconclusive")
    assert "Shard 2 of 2 is missing. Its last line: no torch" in report["notes"]
    (tmp_path / "slurm" / "away").touch()
    refused = parted.process("compare", "main", "feature", *SLURM, *job, **own)
    assert (refused.code, "Unable to contact slurm controller" in refused.err) == (4, True)


def test_ctrl_c_cancels_the_array(parted: Project, tmp_path: Path) -> None:
    arguments = ("compare", "main", *SLURM, "--rounds", "8", "--job-dir", str(tmp_path / "jobs"))
    with parted.start(*arguments, **faked(tmp_path)) as process:
        end = time.monotonic() + 60.0
        while not list((tmp_path / "slurm").glob("task-2")):
            assert time.monotonic() < end, "the array never ran"
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=90)
    assert process.returncode in {3, 130}, said
    for task in (tmp_path / "slurm").glob("task-*"):
        assert not Path(f"/proc/{task.read_text()}").exists()
