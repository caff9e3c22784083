"""What ``perfci doctor`` looks at: each finding, by the state of a machine that brings it up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfci.config.keys import MeasureSettings, QuietTable
from perfci.measure.machine.cores import available_cores, cpu_quota, quota_notes, throttled_s
from perfci.measure.machine.doctor import HardwareFinding, card_of, cores, gpu, quota
from tests.builders.project import Project
from tests.machine.fake_nvml import FIRST, FakeNvml, card, processes

ABSENT = 4095
"""A core that no machine here has."""


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    path.chmod(0o755)
    return path


def git_on_path(folder: Path, *lines: str) -> str:
    script(folder / "git", *lines)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def finding(project: Project, subject: str, **environment: str) -> tuple[str, str]:
    """Run ``perfci doctor``; return the mark and the rest of the line about ``subject``."""
    done = project.perfci("doctor", **environment).without_traceback()
    lines = done.out.splitlines()
    (at,) = [at for at, line in enumerate(lines) if f"  {subject}: " in line]
    mark, _, rest = lines[at].strip().partition(f"  {subject}: ")
    advice = lines[at + 1] if at + 1 < len(lines) and "→" in lines[at + 1] else ""
    return mark, rest + advice


@pytest.mark.parametrize("version", ["2.30.9", "1.8.3.1", "2.9.5 (Apple Git-50.3)"])
def test_an_old_git_stops(project: Project, tmp_path: Path, version: str) -> None:
    path = git_on_path(tmp_path / "bin", f"echo 'git version {version}'")
    mark, said = finding(project, "git", PATH=path)
    assert mark == "STOP"
    assert version.split(maxsplit=1)[0] in said
    assert "2.31" in said


@pytest.mark.parametrize("version", ["2.31.0", "2.39.5 (Apple Git-154)", "3.0.0-rc1"])
def test_a_git_that_is_new_enough_does(project: Project, tmp_path: Path, version: str) -> None:
    path = git_on_path(tmp_path / "bin", f"echo 'git version {version}'")
    assert finding(project, "git", PATH=path) == ("ok", version.split(maxsplit=1)[0])


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/job/step", {"job/cpu.max": "150000 100000", "job/step/cpu.max": "max 100000"}, 1.5),
        ("0::/", {"cpu.max": "50000 100000"}, 0.5),  # a container's own view
        ("0::/", {"cpu.max": "max 100000"}, None),
        (
            "1:cpu:/docker/1f\n0::/docker/1f",  # version 1: the path is the host's
            {"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"},
            1.5,
        ),
        (
            "3:cpu,cpuacct:/user",
            {
                "cpu,cpuacct/user/cpu.cfs_quota_us": "-1",
                "cpu,cpuacct/user/cpu.cfs_period_us": "100000",
            },
            None,
        ),
    ],
)
def test_a_quota_below_the_cores_makes_it_worse(
    tmp_path: Path, own: str, files: dict[str, str], expected: float | None
) -> None:
    for name, text in files.items():
        path = tmp_path / "cgroups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
        path.with_name("cpu.stat").write_text(
            "usage_usec 7\nthrottled_usec 250000\n"
            if "cpu.max" in name
            else "throttled_time 250000000"
        )
    (tmp_path / "own").write_text(f"{own}\n")
    allowed = cpu_quota(tmp_path / "cgroups", tmp_path / "own")
    assert allowed == expected
    stopped = throttled_s(tmp_path / "cgroups", tmp_path / "own")
    assert stopped == pytest.approx(0.25 if expected else 0.0)
    assert quota(allowed, 2).level == ("ok" if expected is None else "worse")
    assert bool(quota_notes(2, allowed)) == (expected is not None)
    assert quota(allowed, 1).level == ("worse" if expected == 0.5 else "ok")


def test_cores_that_workers_can_be_pinned_to_do() -> None:
    found = cores(available_cores(), MeasureSettings(), QuietTable())
    assert found.level == ("ok" if len(available_cores()) > 1 else "worse")


def test_cores_that_no_process_can_be_pinned_to_stop() -> None:
    found = cores((0, ABSENT), MeasureSettings(), QuietTable())
    assert found.level == "impossible"
    assert str(ABSENT) in found.observation
    assert "pin = false" in found.advice


def test_pinning_that_does_nothing_makes_it_worse(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deaf = script(tmp_path / "python", "echo 0 1 2 3")  # a sandbox that says yes and does nothing
    monkeypatch.setattr("sys.executable", str(deaf))
    found = cores((0, 1, 2), MeasureSettings(cores=1), QuietTable())
    assert (found.level, "0 1 2 3" in found.observation) == ("worse", True)


def test_a_configuration_that_cannot_be_read_is_a_finding(project: Project) -> None:
    project.write("pyproject.toml", "[tool.perfci]\nbudgte = '1m'\n")
    mark, said = finding(project, "configuration")
    assert (mark, "budgte" in said) == ("STOP", True)
    assert finding(project, "memory")


def seen(nvml: FakeNvml) -> HardwareFinding:
    return gpu(nvml, lambda: ("NVIDIA H200", FIRST))


def one(**answers: object) -> FakeNvml:
    return FakeNvml({f"GPU-{FIRST}": card(**answers)})


def test_a_card_that_others_use_makes_it_worse() -> None:
    found = seen(one(nvmlDeviceGetComputeRunningProcesses=processes(41, 42)))
    assert (found.level, found.subject) == ("worse", "GPU")
    assert "2 other processes" in found.observation
    assert "nvidia-smi" in found.advice


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("echo 'No module named torch' >&2", "exit 1"), "No module named torch"),
        ((":",), "is_available() is False"),
        (("exit 3",), "without a word"),
    ],
)
def test_a_torch_that_has_no_card_beside_a_driver_makes_it_worse(
    tmp_path: Path, lines: tuple[str, ...], said: str
) -> None:
    python = script(tmp_path / "python", *lines)
    found = gpu(one(), lambda: card_of(str(python), {}))
    assert found.level == "worse"
    assert said in found.observation
    assert "CUDA_VISIBLE_DEVICES" in found.advice


def test_the_python_behind_a_launcher_is_named(project: Project) -> None:
    project.write(
        "pyproject.toml", '[tool.perfci]\nlauncher = ["env", "A=1"]\npython = "python3"\n'
    )
    said = finding(project, "Python")[1]
    assert f" at {os.sep}" in said
    assert "python3, behind the launcher" in said
