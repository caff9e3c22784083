"""What all tests share: a project of a user's."""

from __future__ import annotations

import gc
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.builders.project import Project, one_round
from tests.builders.simulated import Simulated
from tests.builders.warm import Warm
from tests.core import is_core

# The same examples in each run, and no clock: a run fails for the code alone. New examples:
# `pytest --hypothesis-profile=default`.
settings.register_profile(
    "tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

_TOLD = ("PERFCI_", "GIT_", "GITHUB_", "GH_", "ACTIONS_", "RUNNER_")
_TOLD_TO_TERMINALS = {"FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES"}
_GITS_PLACES = {"GIT_EXEC_PATH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"}


def pytest_configure() -> None:
    """Keep out the machine's variables, its git configuration, and a repository around TMPDIR."""
    for name in list(os.environ):
        if name in _TOLD_TO_TERMINALS or (name.startswith(_TOLD) and name not in _GITS_PLACES):
            del os.environ[name]
    os.environ.update(
        GIT_CONFIG_GLOBAL=os.devnull,
        GIT_CONFIG_NOSYSTEM="1",
        GIT_CEILING_DIRECTORIES=str(Path(tempfile.gettempdir()).resolve()),
        TORCHINDUCTOR_COMPILE_THREADS="1",  # else as many processes with torch as there are cores
        TORCHINDUCTOR_VEC_ISA_OK="1",  # as perfci's workers have it: spares a compile and a torch
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--refresh-golden`` writes the golden files instead of comparing with them."""
    parser.addoption("--refresh-golden", action="store_true", help="rewrite tests/data/golden")


@pytest.hookimpl(tryfirst=True)  # before -m chooses by the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the modules, mark the core, and skip what this machine can't run."""
    for item in items:
        if is_core(item.nodeid):
            item.add_marker("core")
    _longest_first(items)
    _skip_without_torch_or_gpu(items)


def pytest_collection_finish() -> None:
    """Have fewer passes of the collector over all that was collected: they took a twentieth."""
    gc.collect()
    gc.set_threshold(20_000, 20, 50)


def _longest_first(items: list[pytest.Item]) -> None:
    """Begin with the modules of long tests: one that begins last would run alone in the end."""
    longest, slow, processes = (
        {item.path for item in items if item.get_closest_marker(name)}
        for name in ("timeout", "slow", "processes")
    )
    items.sort(key=lambda item: [item.path not in these for these in (longest, slow, processes)])


def _skip_without_torch_or_gpu(items: list[pytest.Item]) -> None:
    """Skip, with the reason, what needs torch or a GPU where there is none."""
    if importlib.util.find_spec("torch") is None:
        without = pytest.mark.skip(reason="torch is not installed")
        for item in items:
            if any(item.get_closest_marker(name) for name in ("torch", "compile", "gpu")):
                item.add_marker(without)
        return
    if any(item.get_closest_marker("gpu") for item in items):
        import torch

        if not torch.cuda.is_available():
            for item in items:
                if item.get_closest_marker("gpu"):
                    item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    """An empty repository with a quick configuration.

    Its workers are simulated, but for tests that are marked ``processes``: real ones are what
    they are about.
    """
    real = request.node.get_closest_marker("processes")
    return Project(tmp_path / "project", None if real else Simulated())


@pytest.fixture
def single_round() -> Iterator[None]:
    """Sessions of one round a case, for tests of which code ran and what was said of it."""
    with one_round():
        yield


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """A process that has torch and forks."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    process = Warm()
    yield process
    process.close()
