"""The watch on a card through the real binding, against a libnvidia-ml.so.1 that is built here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lacking import lacking
from tests.machine.fake_nvml import FIRST

pytestmark = pytest.mark.processes

SOURCE = Path(__file__).with_name("fake_nvml.c")
IS_LOST, NOT_LOADED = 15, 9
READING = """
import dataclasses, json, os, sys
from pathlib import Path
import pynvml
from perfci.measure.machine.gpu_watch import GpuWatches, set_aside_reason

answers, uuid, own = sys.argv[1], sys.argv[2], [int(sys.argv[3])]
watches, states = GpuWatches(), []
for text in json.loads(answers):
    Path(os.environ["NVML_FAKE"]).write_text(text)
    watch = watches.of(uuid)
    states.append(watch.read() if watch else None)
apart = [
    set_aside_reason(before, after, own)
    for before, after in zip(states, states[1:])
    if before and after
]
print(json.dumps({
    "energy": [state and state.energy for state in states],
    "known": watch and [watch.temperature(), watch.sm_clock()],
    "apart": apart,
    "notes": watches.notes(),
}))
"""


class Library:
    """The compiled library, and what a process reads through it."""

    def __init__(self, folder: Path, *options: str) -> None:
        compiler = shutil.which("cc") or lacking("no C compiler")
        folder.mkdir()
        library = folder / "libnvidia-ml.so.1"
        flags = ("-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *options)
        subprocess.run([compiler, *flags, "-o", library, SOURCE], check=True)
        self._environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(folder),
            "NVML_FAKE": str(folder / "answers"),
        }

    def read(self, *answers: str, uuid: str = FIRST, own: int = 7) -> dict[str, Any]:
        """Return what the watch saw, reading once for each of the card's ``answers``."""
        ran = subprocess.run(
            [sys.executable, "-c", READING, json.dumps(answers), uuid, str(own)],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("nvml") / "driver")


def test_a_sound_card_is_read_through_the_binding(library: Library) -> None:
    seen = library.read("pid 7", "pid 7\necc 3")
    assert seen["energy"] == [0.25, 0.5]
    assert seen["known"] == [34, 1980]
    assert (seen["apart"], seen["notes"]) == ([""], [])


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("", "reasons 0x44", "hardware thermal slowdown"),
        ("reasons 0x80", "", "power brake"),
        ("", "reasons 0x1", ""),
        ("pid 7", "pid 7 99", "beside a foreign process (99)"),
        ("pid 7 8 9 10 11 12", "pid 7", "beside a foreign process (8)"),
        ("pid 99", "pid 99", ""),  # a container's: ours isn't seen either
        ("ecc 2", "ecc 3", "uncorrected memory errors"),
        ("ecc 3", "ecc 3", ""),
        ("", "ecc 3", ""),  # ECC wasn't readable before: nothing is known to have risen
        ("pid 7", f"status {IS_LOST}", ""),
    ],
)
def test_a_burst_is_excluded_for_what_the_card_did(
    library: Library, before: str, after: str, reason: str
) -> None:
    assert library.read(before, after)["apart"] == [reason]


def test_a_card_that_falls_off_the_bus_is_noted_once_and_ends_nothing(library: Library) -> None:
    lost = f"status {IS_LOST}"
    seen = library.read("pid 7", lost, lost)
    assert seen["energy"] == [0.25, None, None]
    unread = "slowdowns, energy, processes, memory errors, temperature, clocks"
    assert seen["notes"] == [f"NVML can't read the card's {unread} (GPU is lost)."]


def test_clocks_that_the_user_set_are_reported_and_exclude_nothing(library: Library) -> None:
    seen = library.read("reasons 0x2", "reasons 0x2")
    assert seen["apart"] == [""]
    assert "clocks that its user set" in seen["notes"][0]


@pytest.mark.parametrize(
    ("answers", "uuid", "said"),
    [
        ("mig 1", FIRST, "a part of a card (MIG)"),
        ("", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "Not Found"),
        (f"init {NOT_LOADED}", FIRST, "Driver Not Loaded"),
    ],
)
def test_a_card_that_cannot_be_watched_is_noted(
    library: Library, answers: str, uuid: str, said: str
) -> None:
    (note,) = library.read(answers, uuid=uuid)["notes"]
    assert "was not watched" in note
    assert said in note


def test_a_driver_before_535_is_asked_by_the_older_name(tmp_path: Path) -> None:
    library = Library(tmp_path / "driver", "-DOLD_DRIVER")
    seen = library.read("", "reasons 0x20")
    assert (seen["apart"], seen["notes"]) == (["software thermal slowdown"], [])
