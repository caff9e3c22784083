"""Slurm itself, of two nodes: `make slurm-check` has three minutes for it, other runs skip it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.project import Project
from tests.slurm.real_slurm import LACKING, Slurm

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif("CHECK_SLURM" not in os.environ, reason="run by make slurm-check"),
    pytest.mark.skipif(bool(LACKING), reason=f"slurm-wlm and munge: no {', '.join(LACKING)}"),
]
EXAMPLE = Path(__file__).parents[2] / "examples/slurm/compare.sh"
SLURM = ("--slurm", "2", "--sbatch", "partition=gpu constraint=fast")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def wait_until_both_run(slurm: Slurm) -> None:
    end = time.monotonic() + 30.0
    while sorted(slurm.running()) != ["n1", "n2"]:
        assert time.monotonic() < end, "the array never ran on both nodes"
        time.sleep(0.2)


def test_a_node_that_dies_in_mid_array_is_named_and_a_new_comparison_is_whole(
    slurm: Slurm, parted: Project, tmp_path: Path
) -> None:
    out = tmp_path / "report.json"
    arguments = ("compare", "main", *SLURM, "--rounds", "6", "--json", str(out))
    with parted.start(*arguments, **slurm.environment) as first:
        wait_until_both_run(slurm)
        time.sleep(1.0)
        slurm.end_node("n2")
        said = first.communicate(timeout=150)
    assert first.returncode == 3, said
    report = json.loads(out.read_text())
    assert report["verdict"]["status"] == "inconclusive"
    assert len(report["missing"]) == 1
    assert any("is missing" in note for note in report["notes"]), said
    slurm.start_node("n2")
    slurm.wait_for("idle", "n2")
    done = parted.process(*arguments, **slurm.environment)
    assert done.code == 0, done.text
    report = json.loads(out.read_text())
    assert (report["missing"], report["verdict"]["status"]) == ([], "pass")
    assert {row["case"] for row in report["results"]} == {"counting", "steady"}


def test_the_example_exits_by_the_verdict_and_leaves_its_files(
    slurm: Slurm, parted: Project, tmp_path: Path
) -> None:
    own = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [EXAMPLE, "main", "HEAD"],
        cwd=parted.folder,
        env=parted.environment(**slurm.environment) | own | {"JOB_DIR": str(tmp_path / "job")},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((parted.folder / "report.json").read_text())
    assert (report["missing"], report["verdict"]["status"]) == ([], "pass")
    assert (parted.folder / "comment.md").read_text().startswith("<!-- perfci -->")
    parted.git("clean", "-fd", "report.json", "comment.md")


def test_ctrl_c_cancels_the_array(slurm: Slurm, parted: Project) -> None:
    with parted.start("compare", "main", *SLURM, "--rounds=8", **slurm.environment) as process:
        wait_until_both_run(slurm)
        process.send_signal(2)
        said = process.communicate(timeout=60)
    assert process.returncode in {3, 130}, said
    assert slurm.running() == []
