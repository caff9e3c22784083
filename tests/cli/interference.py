"""A project whose benchmarks and whose git do something to perfci at a chosen moment.

No moment is told by a clock: a benchmark counts its workers, and git the trees that it is asked
for. What is to happen lies as files in a folder that both know.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from pathlib import Path
from typing import Any

from tests.builders.project import QUICK, Done, Project

LIBRARY = "def due():\n    pass\n"
EXPIRING = """\
import os

def due():
    if os.path.exists(os.environ["STEP_IN"] + "/expired"):
        raise RuntimeError("expired")
"""
_BENCHMARKS = """\
import os
import signal
import subprocess
import time
from pathlib import Path

import lib
import perfci

FOLDER = Path(os.environ["STEP_IN"])
TWO_SIGNALS = "kill -INT {0}; sleep 0.3; kill -TERM {0}"  # at once, a thread may get both


def begin(case):
    count = FOLDER / case
    with count.open("a") as file:
        file.write("x")
    number = count.stat().st_size
    print("worker", number)
    if (FOLDER / f"interrupt-{case}-{number}").exists():
        # apart from this worker: it must not be ended with it
        both = ["/bin/sh", "-c", TWO_SIGNALS.format(os.getppid())]
        subprocess.run(both, env={}, start_new_session=True)
        time.sleep(600)
    if (FOLDER / f"hang-{case}-{number}").exists():
        time.sleep(600)


@perfci.benchmark
def one():
    begin("one")
    return lambda: sum(range(500))


@perfci.benchmark
def two():
    begin("two")
    lib.due()
    return lambda: sum(range(500))
"""
_GIT = """\
#!/bin/sh
case "$*" in
*"worktree add"*)
    printf x >> "$STEP_IN/trees"
    if [ -e "$STEP_IN/interrupt-tree-$(wc -c < "$STEP_IN/trees")" ]; then
        kill -INT $PPID
        exit 1
    fi
esac
exec {git} "$@"
"""
_NO_FORK_SERVER = "[tool.perfci.quiet]\nfork = false  # a worker's parent is perfci itself\n"


def _quicker(session: dict[str, Any], times: int) -> dict[str, Any]:
    """Return a session whose latencies are so many ``times`` less."""
    copied = copy.deepcopy(session)
    for worker in copied["workers"]:
        for name in worker["values"]:
            if name.startswith("latency"):
                worker["values"][name] /= times
    return copied


class SteppedInto(Project):
    """A project and its ``steps``: the folder of what is to happen, and of what has."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._make_steps()
        self.write("pyproject.toml", f'{QUICK}pass_env = ["STEP_IN"]\n{_NO_FORK_SERVER}')
        self.write("benchmarks/bench_two.py", _BENCHMARKS)
        self.write("lib.py", LIBRARY)

    def copy(self, folder: Path) -> SteppedInto:
        """Return a copy of it at ``folder``, to which nothing has happened."""
        shutil.copytree(self.folder, folder)
        copied = object.__new__(SteppedInto)
        copied.folder = folder
        copied.cache = folder.parent / f"{folder.name}-cache"
        copied._make_steps()
        return copied

    def step(self, name: str) -> None:
        """Say that something is to happen: ``interrupt-one-5``, at the fifth worker of one."""
        (self.steps / name).touch()

    def count(self, what: str) -> int:
        """Return how many workers a case had, or how many ``trees`` git was asked for."""
        counted = self.steps / what
        return counted.stat().st_size if counted.exists() else 0

    def perfci(self, *arguments: str, **environment: str) -> Done:
        """Run it in a process of its own, which the steps send signals."""
        path = f"{self.steps / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return self.process(*arguments, PATH=path, STEP_IN=str(self.steps), **environment)

    def baseline(self, case: str) -> Path:
        """Return the file of one case's baseline."""
        (path,) = (self.folder / "baselines").glob(f"*/{case}-*.json")
        return path

    def make_suspect(self, case: str, sha: str) -> None:
        """Make ``case``'s baseline a thousand times quicker than it was measured, and ``sha``'s.

        It has three sessions, 1 % apart: one alone shows no regression.
        """
        path = self.baseline(case)
        kept = json.loads(path.read_text())
        kept["sha"] = sha
        (measured,) = kept["sessions"]
        measured["sha"] = sha
        kept["sessions"] = [_quicker(measured, 990 + 10 * number) for number in range(3)]
        path.write_text(json.dumps(kept))

    def _make_steps(self) -> None:
        self.steps = self.folder.parent / f"{self.folder.name}-steps"
        git = self.steps / "bin" / "git"
        git.parent.mkdir(parents=True)
        git.write_text(_GIT.format(git=shutil.which("git")))
        git.chmod(0o755)
