"""Where the tools work: a generated repository, a worktree for each condition, one environment."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

from demo import commit, git

from benchmarks.peers.finding import CONDITIONS

TEMPLATE = Path(__file__).parent / "work"


class ToolFailed(Exception):
    """A tool gave no answer: it crashed, ran out of time, or left a benchmark out."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """The repository with a branch for each condition, and checkouts of them."""

    scratch: Path

    @property
    def repository(self) -> Path:
        """Return the repository, with ``base`` checked out."""
        return self.scratch / "repository"

    def tree(self, branch: str) -> Path:
        """Return the checkout of ``branch``: all paths are equally long, as memory layout is."""
        return self.scratch / "trees" / branch.ljust(5, "_")

    def environment(self, tree: Path | None = None) -> dict[str, str]:
        """Return what every tool's processes see; ``tree`` goes on the import path."""
        inherited = {name: v for name, v in os.environ.items() if name != "PYTHONPATH"}
        path = {} if tree is None else {"PYTHONPATH": str(tree)}
        return {
            **inherited,
            **path,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(self.scratch / "inductor"),
            "PERFCI_CACHE_DIR": str(self.scratch / "perfci"),
        }


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs a measurement's commands, keeps their output in ``folder``, ends them in time."""

    place: Workplace
    folder: Path
    timeout: float

    def python(
        self,
        *arguments: str,
        tree: Path | None = None,
        cwd: Path | None = None,
        accepted: tuple[int, ...] = (0,),
        more: dict[str, str] | None = None,
    ) -> str:
        """Run this Python with ``arguments`` in ``tree`` and return what it printed."""
        number = len(list(self.folder.glob("*.log")))
        log = self.folder / f"{number:02}.log"
        errors = log.with_suffix(".err")
        with log.open("w", encoding="utf-8") as out, errors.open("w", encoding="utf-8") as err:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=cwd or tree,
                env={**self.place.environment(tree), **(more or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                code = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        said = log.read_text(encoding="utf-8")
        if code is None:
            raise ToolFailed(f"no end after {self.timeout:.0f} s: {' '.join(arguments)}")
        if code not in accepted:
            tail = (errors.read_text(encoding="utf-8") or said)[-600:]
            raise ToolFailed(f"exit {code}: {' '.join(arguments)}: {tail}")
        return said


def prepare(scratch: Path) -> Workplace:
    """Build the repository and its checkouts below ``scratch``, unless these are there."""
    place = Workplace(scratch)
    mark = scratch / "complete"
    if mark.exists() and mark.read_text(encoding="ascii") == digest():
        return place
    for leftover in (place.repository, scratch / "trees"):
        shutil.rmtree(leftover, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TEMPLATE, place.repository, ignore=ignored)
    git(place.repository, "init", "--quiet", "--initial-branch=base")
    commit(place.repository, "The library")
    for condition, share in CONDITIONS.items():
        git(place.repository, "checkout", "--quiet", "-b", condition, "base")
        if share:
            _change(place.repository / "peerwork" / "share.py", "SHARE = 0.0", f"SHARE = {share}")
        else:
            _change(place.repository / "NOTES.txt", ": 0", ": 1")
        commit(place.repository, f"A share of {share} slower")
    git(place.repository, "checkout", "--quiet", "base")
    for branch in ("base", *CONDITIONS):
        arguments = ("worktree", "add", "--quiet", "--detach", str(place.tree(branch)), branch)
        git(place.repository, *arguments)
    mark.write_text(digest(), encoding="ascii")
    return place


def digest() -> str:
    """Return the hash of what is benchmarked: results of different works don't belong together."""
    found = hashlib.sha256(repr(CONDITIONS).encode())
    for file in sorted(TEMPLATE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            found.update(f"{file.relative_to(TEMPLATE)}\0".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def _change(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    if before not in text:
        raise ToolFailed(f"{file}: no {before!r} to change")
    file.write_text(text.replace(before, after), encoding="utf-8")
