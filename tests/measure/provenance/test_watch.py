"""What one watched process writes down of files that it opens and libraries that it loads."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from perfci.worker.hook.perfci_watch.ownership import HOOK, VARIABLE, encoded
from perfci.worker.hook.perfci_watch.record import decoded_events

LOADED = "ctypes.CDLL(f'{OWN}/wrap.so').marker()"
POOL = """
with multiprocessing.get_context("{method}").Pool(1) as pool:
    pool.apply(eval, ("__import__('ctypes').CDLL(" + repr(OWN + '/wrap.so') + ").marker()",))
"""
SWAPPED = """
link = OWN + "/link"
os.symlink(OWN + "/inner", link)
open(link + "/value.txt").close()
os.unlink(link)
os.symlink(CHECKOUT, link)
open(link + "/value.txt").close()
"""


class Watched:
    """A tree, a checkout, and what a process that is watched found of the latter."""

    def __init__(self, folder: Path) -> None:
        self.own, self.checkout = folder / "own", folder / "checkout"
        for one in (self.own / "inner", self.checkout):
            one.mkdir(parents=True)
            (one / "value.txt").write_text("1")
        self._events = folder / "events"
        self._events.touch()

    def run(self, body: str) -> list[list[str]]:
        """Return what was found of a process that ends by a signal, so that nothing is late."""
        names = ("strange", "copies", "harness", "spared", "clones", "names", "installed")
        names = (*names, "distributions")
        settings = {
            **dict.fromkeys((*names, "pythons", "temporary", "twins", "changed"), ()),
            "python_path": (str(self.own),),
            "own": (f"{self.own}/",),
            "checkout": (f"{self.checkout}/",),
            "events": (str(self._events),),
        }
        text = (
            "import ctypes, multiprocessing, os, signal, sqlite3, sys\n"
            f"OWN, CHECKOUT = {str(self.own)!r}, {str(self.checkout)!r}\n{body}\n"
            "sys.stdout.flush()\nsignal.raise_signal(signal.SIGKILL)\n"
        )
        environment = {**os.environ, VARIABLE: encoded(settings), "PYTHONPATH": HOOK}
        command = [sys.executable, "-c", text]
        done = subprocess.run(command, env=environment, cwd=self.own, check=False)
        assert done.returncode == -signal.SIGKILL
        return decoded_events(self._events.read_bytes())

    def of_checkout(self, body: str) -> set[str]:
        found = self.run(body)
        return {Path(path).name for _, path, _ in found if path.startswith(f"{self.checkout}/")}


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        LOADED,
        f"if os.fork() == 0:\n    {LOADED}\n    os._exit(0)\nos.wait()",
        POOL.format(method="fork"),
        POOL.format(method="spawn"),
    ],
    ids=["signal", "exit", "fork", "spawn"],
)
def test_a_library_that_comes_with_another_is_seen_before_its_process_ends(
    watched: Watched, body: str
) -> None:
    """A dependency's path is in no event: only the process's maps have it."""
    for folder, name, text, more in (
        (watched.checkout, "libcore", "int core(void) { return 1; }", []),
        (
            watched.own,
            "wrap",
            "int core(void); int marker(void) { return core(); }",
            [f"-L{watched.checkout}", f"-Wl,-rpath,{watched.checkout}", "-lcore"],
        ),
    ):
        source = folder / f"{name}.c"
        source.write_text(text)
        target = str(folder / f"{name}.so")
        subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", target, *more], check=True)
    assert watched.of_checkout(body) == {"libcore.so"}


def test_the_maps_of_a_process_that_this_one_ends_are_looked_at(watched: Watched) -> None:
    """What loads its library by no event, and never ends by itself."""
    body = (
        "import mmap, time\n"
        "ready, told = os.pipe()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    libc = ctypes.CDLL(None)\n"
        "    file = libc.open((CHECKOUT + '/value.txt').encode(), 0)\n"
        "    kept = mmap.mmap(file, 0, access=mmap.ACCESS_READ)\n"
        "    os.write(told, b'1')\n"
        "    time.sleep(60)\n"
        "os.read(ready, 1)\n"
        "os.kill(pid, signal.SIGTERM)\n"
    )
    assert watched.of_checkout(body) == {"value.txt"}


@pytest.mark.parametrize(
    "body",
    [
        "os.open('value.txt', os.O_RDONLY, dir_fd=os.open(CHECKOUT, os.O_RDONLY))",
        SWAPPED,
    ],
    ids=["dir_fd", "swapped link"],
)
def test_a_file_that_is_opened_in_other_words_is_seen(watched: Watched, body: str) -> None:
    assert "value.txt" in watched.of_checkout(body)


def test_a_database_that_is_named_by_an_address_is_seen(watched: Watched) -> None:
    sqlite3.connect(watched.checkout / "my data.db").close()
    body = "sqlite3.connect(f'file:{CHECKOUT}/my%20data.db?mode=ro', uri=True)"
    assert watched.of_checkout(body) == {"my data.db"}


def test_a_subinterpreter_cannot_be_watched(watched: Watched) -> None:
    body = (
        "try:\n    import _interpreters as made\n"
        "except ImportError:\n    import _xxsubinterpreters as made\nmade.create()"
    )
    told = [name for how, _, name in watched.run(body) if how == "unwatched"]
    assert len(told) == 1
    assert told[0].startswith("a subinterpreter")


AWAY = """
events = OWN + "/../events"
os.rename(events, events + "-away")
open(CHECKOUT + "/value.txt").close()
import colorsys
os.rename(events + "-away", events)
open(OWN + "/inner/value.txt").close()
"""


def test_what_could_not_be_written_down_is_no_error_of_the_users_code_and_comes_later(
    watched: Watched,
) -> None:
    assert watched.of_checkout(AWAY) == {"value.txt"}


def test_what_was_removed_is_not_begun_anew(watched: Watched, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="events"):
        watched.run("os.unlink(OWN + '/../events')\nopen(CHECKOUT + '/value.txt').close()")
