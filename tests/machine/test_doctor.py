"""What ``perfci doctor`` looks at: each finding, by the state of a machine that brings it up."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfci.measure.machine import doctor as examination
from perfci.measure.machine.cores import available_cores, cpu_quota, quota_notes, throttled_s
from perfci.measure.machine.doctor import (
    Card,
    HardwareFinding,
    card_of,
    cores,
    frequency_governor,
    gpu,
    load,
    quota,
    turbo,
)
from perfci.model.measuring import MeasureSettings, Quiet
from tests.builders.project import Project
from tests.builders.repository import mounted
from tests.machine.fake_nvml import FIRST, FakeNvml, card, error, processes

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
    "lines",
    [("echo 'libpcre2-8.so.0: no such file' >&2", "exit 127"), ("echo hello",), ("kill -9 $$",)],
    ids=["broken", "something else", "killed"],
)
def test_a_git_that_cannot_run_is_a_finding_and_the_others_are_made(
    project: Project, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    path = git_on_path(tmp_path / "bin", *lines)
    mark, said = finding(project, "git", PATH=path)
    assert (mark, "2.31" in said) == ("STOP", True)
    assert finding(project, "memory", PATH=path)


def test_a_git_for_another_machine_is_a_finding(project: Project, tmp_path: Path) -> None:
    path = git_on_path(tmp_path / "bin")
    (tmp_path / "bin" / "git").write_bytes(b"\x7fELF nothing of this machine's")
    mark, said = finding(project, "git", PATH=path)
    assert mark == "STOP"
    assert "can't be run" in said


@pytest.mark.parametrize(("gib", "level"), [(0.1, "worse"), (1.9, "worse"), (2.1, "ok")])
def test_little_room_on_the_disk_makes_it_worse(tmp_path: Path, gib: float, level: str) -> None:
    usage = SimpleNamespace(free=int(gib * 2**30))
    found = examination._disk(tmp_path / "not" / "there" / "yet", lambda _: usage)
    assert (found.level, found.subject) == (level, "cache folder")
    assert ("PERFCI_CACHE_DIR" in found.advice) == (level == "worse")


def test_a_small_disk_is_told(project: Project, tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=8m", "tmpfs") as disk:
        mark, said = finding(project, "cache folder", PERFCI_CACHE_DIR=str(disk))
    assert mark == "worse"
    assert "0.0 GiB free" in said


def test_a_governor_that_follows_the_load_makes_it_worse(tmp_path: Path) -> None:
    assert frequency_governor(tmp_path).level == "ok"
    path = tmp_path / "cpu0" / "cpufreq" / "scaling_governor"
    path.parent.mkdir(parents=True)
    path.write_text("powersave\n")
    found = frequency_governor(tmp_path)
    assert (found.level, found.observation) == ("worse", "powersave")
    assert "performance" in found.advice
    path.write_text("performance\n")
    assert frequency_governor(tmp_path).level == "ok"


@pytest.mark.parametrize(
    ("file", "on", "off"), [("intel_pstate/no_turbo", "0", "1"), ("cpufreq/boost", "1", "0")]
)
def test_turbo_makes_it_worse_and_says_where_to_switch_it_off(
    tmp_path: Path, file: str, on: str, off: str
) -> None:
    assert turbo(tmp_path).level == "ok"
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text(f"{on}\n")
    found = turbo(tmp_path)
    assert found.level == "worse"
    assert str(path) in found.advice
    path.write_text(f"{off}\n")
    assert turbo(tmp_path).level == "ok"


def test_other_load_makes_it_worse() -> None:
    assert load(0.9, 2).level == "ok"
    assert load(1.1, 2).level == "worse"


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
    found = cores(available_cores(), MeasureSettings(), Quiet())
    assert found.level == ("ok" if len(available_cores()) > 1 else "worse")


def test_cores_on_another_node_than_the_card_make_it_worse() -> None:
    settings, every = MeasureSettings(cores=1), available_cores()
    far = cores(every, settings, Quiet(), frozenset({ABSENT}))
    assert (far.level, "1 of the workers' 1 are on another NUMA node" in far.observation) == (
        "worse", True,
    )  # fmt: skip
    if len(every) > 1:
        near = cores(every, settings, Quiet(), frozenset({every[0]}))
        assert (near.level, near.observation.partition(", ")[2]) == ("ok", "near the GPU")


def test_cores_that_no_process_can_be_pinned_to_stop() -> None:
    found = cores((0, ABSENT), MeasureSettings(), Quiet())
    assert found.level == "impossible"
    assert str(ABSENT) in found.observation
    assert "pin = false" in found.advice


def test_pinning_that_does_nothing_makes_it_worse(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deaf = script(tmp_path / "python", "echo 0 1 2 3")  # a sandbox that says yes and does nothing
    monkeypatch.setattr("sys.executable", str(deaf))
    found = cores((0, 1, 2), MeasureSettings(cores=1), Quiet())
    assert (found.level, "0 1 2 3" in found.observation) == ("worse", True)


def test_more_cores_than_there_are_stop() -> None:
    found = cores((0, 1), MeasureSettings(cores=3), Quiet())
    assert (found.level, "3" in found.observation) == ("impossible", True)


def test_pinning_switched_off_in_the_configuration_is_told(project: Project) -> None:
    assert finding(project, "cores")[0] in {"ok", "worse"}
    project.write("pyproject.toml", "[tool.perfci.quiet]\npin = false\n")
    mark, said = finding(project, "cores")
    assert mark == "worse"
    assert "not pinned" in said


def test_a_configuration_that_cannot_be_read_is_a_finding(project: Project) -> None:
    project.write("pyproject.toml", "[tool.perfci]\nbudgte = '1m'\n")
    mark, said = finding(project, "configuration")
    assert (mark, "budgte" in said) == ("STOP", True)
    assert finding(project, "memory")


def seen(nvml: FakeNvml) -> HardwareFinding:
    return gpu(nvml, lambda: Card("NVIDIA H200", FIRST))


def one(**answers: object) -> FakeNvml:
    return FakeNvml({f"GPU-{FIRST}": card(**answers)})


def test_a_card_that_others_use_makes_it_worse() -> None:
    found = seen(one(nvmlDeviceGetComputeRunningProcesses=processes(41, 42)))
    assert (found.level, found.subject) == ("worse", "GPU")
    assert "2 other processes" in found.observation
    assert "nvidia-smi" in found.advice


def test_a_card_that_is_slowed_down_makes_it_worse() -> None:
    found = seen(one(nvmlDeviceGetCurrentClocksEventReasons=0x40))
    assert (found.level, "hardware thermal slowdown" in found.observation) == ("worse", True)


def test_a_sound_card_is_named_with_its_temperature_and_clock() -> None:
    assert seen(one()) == HardwareFinding("ok", "GPU", "NVIDIA H200, 34 °C, SM clock 1980 MHz")


def test_what_nvml_cannot_tell_of_a_card_is_told_and_stops_nothing() -> None:
    refused = error("NOT_SUPPORTED")
    found = seen(
        one(
            nvmlDeviceGetTemperature=refused,
            nvmlDeviceGetComputeRunningProcesses=refused,
            nvmlDeviceGetCurrentClocksEventReasons=refused,
        )
    )
    assert found.level == "ok"
    for what in ("temperature", "processes", "slowdowns"):
        assert f"{what} unknown to NVML (Not Supported)" in found.observation


@pytest.mark.parametrize("code", ["LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED"])
def test_a_machine_without_a_driver_is_fine(code: str) -> None:
    assert seen(FakeNvml({}, init=error(code))).level == "ok"


@pytest.mark.parametrize("code", ["LIB_RM_VERSION_MISMATCH", "UNKNOWN", "NO_PERMISSION"])
def test_a_driver_that_nvml_cannot_be_read_of_makes_it_worse(code: str) -> None:
    found = seen(FakeNvml({}, init=error(code)))
    assert (found.level, "nvidia-smi" in found.advice) == ("worse", True)


def test_a_card_that_is_split_makes_it_worse() -> None:
    found = seen(one(nvmlDeviceGetMigMode=[1, 1]))
    assert (found.level, "MIG" in found.observation) == ("worse", True)


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


def test_the_card_is_the_one_that_the_workers_torch_names(tmp_path: Path) -> None:
    python = script(tmp_path / "python", "echo a warning", "echo 'NVIDIA H200'", f"echo {FIRST}")
    assert card_of(str(python), {}) == Card("NVIDIA H200", FIRST)
    assert card_of(str(tmp_path / "absent"), {}).level == "worse"


@pytest.mark.gpu
def test_the_card_of_this_machine_is_named() -> None:
    import sys

    import pynvml
    import torch

    found = gpu(pynvml, lambda: card_of(sys.executable, dict(os.environ)))
    assert torch.cuda.get_device_name(0) in found.observation


def test_the_configuration_can_be_a_file_of_another_name(project: Project) -> None:
    other = project.write("other.toml", "rounds = 1\n")
    done = project.perfci("doctor", "--config", str(other)).without_traceback()
    assert done.code == 3
    assert "other.toml: `rounds`" in done.out


def test_a_launcher_is_tried_and_the_python_behind_it_named(project: Project) -> None:
    project.write(
        "pyproject.toml", '[tool.perfci]\nlauncher = ["env", "A=1"]\npython = "python3"\n'
    )
    assert finding(project, "launcher") == ("ok", "`env A=1` becomes Python")
    said = finding(project, "Python")[1]
    assert f" at {os.sep}" in said
    assert "python3, behind the launcher" in said
    done = project.perfci("doctor", "--launcher", "/nowhere/launcher").without_traceback()
    assert (done.code, "STOP  launcher: the launcher `/nowhere/launcher`" in done.out) == (3, True)
    assert "docker run IMAGE perfci compare" in done.out
    assert " Python: " not in done.out  # nothing is known of it
    assert finding(project, "memory")
