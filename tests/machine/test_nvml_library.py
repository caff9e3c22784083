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
from perfci.measure.machine.gpu_watch import GpuWatches
from perfci.measure.machine.gpu_watch import set_aside_reason

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
        return self.run(READING, json.dumps(answers), uuid, str(own))

    def run(self, source: str, *arguments: str) -> Any:
        """Return what a process of its own session prints."""
        ran = subprocess.run(
            [sys.executable, "-c", source, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("nvml") / "driver")


def test_a_sound_card_is_read_through_the_binding(library: Library) -> None:
    seen = library.read("pid 7", "pid 7")
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
        ("pid 7", f"status {IS_LOST}", ""),
    ],
)
def test_a_burst_is_excluded_for_what_the_card_did(
    library: Library, before: str, after: str, reason: str
) -> None:
    assert library.read(before, after)["apart"] == [reason]


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


IN_A_SESSION = """
import json, os, subprocess
from pathlib import Path
from perfci.measure.machine.gpu_watch import GpuWatches

answers, watches = Path(os.environ["NVML_FAKE"]), GpuWatches(driver=Path("/dev/null"))
with subprocess.Popen(["sleep", "60"]) as child:
    seen = []
    for pids in (f"{child.pid}", f"1 {child.pid}", "1", f"{os.getpid()}", ""):
        answers.write_text(f"pid {pids}")
        cards = watches.of_session(os.getpid())
        seen.append(len(cards))
    answers.write_text("mig 1")
    seen.append(len(watches.of_session(os.getpid())))
    child.kill()
print(json.dumps([seen, watches.notes()]))
"""


def test_the_cards_of_a_workers_own_processes_are_known_and_no_others(library: Library) -> None:
    assert library.run(IN_A_SESSION) == [[1, 1, 0, 0, 0, 0], []]
