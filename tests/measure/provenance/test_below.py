"""What the library sees that is loaded into a worker, whoever looks at a file in whatever way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfci.measure.machine.isolation import LooksLibrary, seen_from_below
from perfci.measure.provenance.events import CodePlaces
from perfci.worker.hook.perfci_watch.ownership import HOOK, VARIABLE
from perfci.worker.hook.perfci_watch.record import decoded_events

LOOKS = {
    "stat": "c.stat(p('stat'), room)",
    "lstat": "c.lstat(p('lstat'), room)",
    "fstatat": "c.fstatat(AT, p('fstatat'), room, 0)",
    "statx": "c.statx(AT, p('statx'), 0, 0xfff, room)",
    "old_stat": "c.__xstat(1, p('old_stat'), room)",
    "access": "c.access(p('access'), 0)",
    "faccessat": "c.faccessat(AT, p('faccessat'), 0, 0)",
    "open": "c.open(p('open'), 0)",
    "openat": "c.openat(AT, p('openat'), 0)",
    "fopen": "c.fopen(p('fopen'), b'r')",
    "readlink": "c.readlink(p('readlink'), room, 9)",
    "realpath": "c.realpath(p('realpath'), room)",
    "chdir": "c.chdir(p('chdir'))",
    "opendir": "c.opendir(p('opendir'))",
    "scandir": "c.scandir(p('scandir'), byref(c_void_p()), None, None)",
    "posix": "try_to(posix.stat, p('posix'))",
    "dots": "posix.access(b'%s/../own/./sub/../dots' % OWN, 0)",
    "relative": "os.chdir(OWN); posix.access(b'relative', 0)",
    "below_a_folder": "posix.access(b'below_a_folder', 0, dir_fd=os.open(OWN, os.O_RDONLY))",
    "thread": "t = Thread(target=posix.access, args=(p('thread'), 0)); t.start(); t.join()",
    "fork": "os.fork() or (posix.access(p('fork'), 0), os._exit(0)); os.wait()",
    "c_fork": "c.fork() or (c.access(p('c_fork'), 0), c._exit(0)); os.wait()",
    "program": "c.system(b'test -e ' + p('program'))",
    "killed": "os.fork() or (posix.access(p('killed'), 0), os.kill(os.getpid(), 9)); os.wait()",
}
HEADER = f"""
import os, posix, sys
from ctypes import CDLL, byref, c_void_p, create_string_buffer
from threading import Thread
sys.path.insert(0, {HOOK!r})
from perfci_watch.watch import begin_in_worker
c, room, AT, OWN = CDLL(None), create_string_buffer(9999), -100, os.fsencode(os.environ["OWN"])

def p(name):
    return OWN + b"/" + name.encode()

def try_to(look, path):
    try:
        look(path)
    except OSError:
        pass

posix.access(p("too_early"), 0)
watch = begin_in_worker(os.environ)
"""


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> LooksLibrary:
    return seen_from_below(tmp_path_factory.mktemp("cache"), {})


class Process:
    """A Python whose tree is ``own``, and what it wrote down until its last look."""

    def __init__(self, folder: Path, looks: LooksLibrary) -> None:
        self.own, self._looks = folder / "own", looks
        (self.own / "sub").mkdir(parents=True)
        self.events = folder / "events"
        self.events.touch()

    def settings(self, events: Path) -> str:
        return CodePlaces(
            root=str(self.own),
            checkout=f"{self.own}-checkout/",
            cache=f"{self.own}-cache/",
            own=(f"{self.own}/",),
            spared=(),
            python_path=(str(self.own),),
        ).settings(str(events))

    def run(self, body: str, **more: str) -> list[list[str]]:
        environment = {
            **os.environ,
            VARIABLE: self.settings(self.events),
            "OWN": str(self.own),
            **self._looks.preloaded({}),
            **more,
        }
        text = f"{HEADER}{body}\nwatch.look()\nsys.stdout.flush()\nos._exit(0)\n"
        subprocess.run(
            [sys.executable, "-c", text], env=environment, cwd=self.own.parent, check=True
        )
        return decoded_events(self.events.read_bytes())

    def looked_at(self, events: list[list[str]]) -> dict[str, str]:
        return {
            path.removeprefix(f"{self.own}/"): how
            for how, path, _ in events
            if path.startswith(f"{self.own}/")
        }


@pytest.fixture
def process(tmp_path: Path, looks: LooksLibrary) -> Process:
    return Process(tmp_path, looks)


def test_each_way_to_look_at_a_file_is_seen(process: Process) -> None:
    seen = process.looked_at(process.run("\n".join(LOOKS.values())))
    assert {*LOOKS} == {name for name in seen if name in LOOKS}
    assert "too_early" not in seen
    assert {seen[name] for name in ("opendir", "scandir")} == {"list"}


def test_a_file_that_is_opened_is_told_from_one_that_is_not_there(process: Process) -> None:
    for name in ("read", "written"):
        (process.own / name).touch()
    body = "c.open(p('read'), 0); c.open(p('gone'), 0); c.open(p('written'), os.O_WRONLY)"
    assert process.looked_at(process.run(body)) == {"read": "open", "gone": "stat"}


def test_imports_say_which_module_they_look_for_and_nothing_else(process: Process) -> None:
    for name in ("there.py", "beside.py", "folder/inner.txt"):
        (process.own / name).parent.mkdir(exist_ok=True)
        (process.own / name).write_text("")
    body = (
        "import importlib.util\n"
        "[importlib.util.find_spec(one) for one in ('there', 'folder', 'never')]"
    )
    seen = process.looked_at(process.run(body))
    modules = {name for name in ("there", "folder", "never") if seen.pop(name) == "module"}
    assert modules == {"there", "folder", "never"}
    assert {how for name, how in seen.items() if name} <= {"module"}  # others of Python's own


def test_a_look_that_is_repeated_is_written_down_once(process: Process) -> None:
    body = "for _ in range(1000):\n    posix.access(p('again'), 0)"
    events = process.run(body)
    assert len([path for _, path, _ in events if path.endswith("/again")]) == 1


def test_what_cannot_be_written_down_is_told(process: Process) -> None:
    body = "for one in range(40000):\n    posix.access(p(str(one)), 0)"
    assert ["blind", "", "not all was written down"] in process.run(body)


def test_a_fork_that_goes_on_in_a_file_of_its_own_has_what_was_seen_before(
    process: Process,
) -> None:
    other = process.events.with_name("other")
    other.touch()
    body = (
        "posix.access(p('before'), 0)\n"
        "if os.fork() == 0:\n"
        f"    os.environ['{VARIABLE}'] = {process.settings(other)!r}\n"
        "    watch.go_on(os.environ)\n"
        "    posix.access(p('after'), 0)\n"
        "    watch.look()\n"
        "    os._exit(0)\n"
        "os.wait()"
    )
    first = process.looked_at(process.run(body))
    second = process.looked_at(decoded_events(other.read_bytes()))
    assert "after" not in first
    assert {"before": "stat", "after": "stat"}.items() <= second.items()


def test_nothing_that_a_program_is_told_changes(process: Process) -> None:
    (process.own / "there").touch()
    body = (
        "import ctypes\n"
        "told = ctypes.CDLL(None, use_errno=True)\n"
        "def errno_of(call, *arguments):\n"
        "    ctypes.set_errno(77)\n"
        "    return call(*arguments), ctypes.get_errno()\n"
        "assert errno_of(told.access, p('there'), 0) == (0, 77)\n"
        "assert errno_of(told.access, p('gone'), 0) == (-1, 2)\n"
        "assert errno_of(told.stat, None, room) == (-1, 14)\n"
        "assert errno_of(told.stat, p('there/below'), room) == (-1, 20)\n"
        "assert errno_of(told.open, b'', 0) == (-1, 2)"
    )
    process.run(body)


def test_a_record_that_the_user_closed_is_opened_again(process: Process) -> None:
    body = (
        "os.fork() or (c.access(p('one'), 0), os.closerange(3, 4096), c.access(p('two'), 0), "
        "os._exit(0))\n"
        "os.wait()"
    )
    assert {"one", "two"} <= process.looked_at(process.run(body)).keys()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_what_processes_of_multiprocessing_look_at_is_seen(process: Process, method: str) -> None:
    body = (
        "import multiprocessing\n"
        f"context = multiprocessing.get_context({method!r})\n"
        f"child = context.Process(target=os.access, args=(p({method!r}), 0))\n"
        "child.start(); child.join()"
    )
    folder = Path("/tmp") if method == "forkserver" else process.own.parent  # short: a socket's
    assert process.looked_at(process.run(body, TMPDIR=str(folder)))[method] == "stat"


def test_a_python_without_the_library_says_so(process: Process) -> None:
    events = process.run("", LD_PRELOAD="")
    assert [how for how, _, _ in events if how == "blind"]
