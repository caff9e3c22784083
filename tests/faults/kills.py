"""Commands killed at random moments: nothing lost, nothing double, no process left, no wrong word.

    python -m tests.faults.kills [--most N] [--seed N] [--part I/N] [--only NAME]… [--keep]

Each starts from the same state, gets SIGKILL, and is run again, to its end. Prints a row for each;
``--keep`` puts it into docs/results/attacks.json, and adds each part after the first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from perfci.errors import PerfciError
from perfci.history.store import open_history
from perfci.model.run import GateOutcome, RecordedRun
from tests.attacks import keep, kept
from tests.builders.project import Project
from tests.faults.scenarios import HISTORY, SCENARIOS, contents, records
from tests.forges.github.server import REPOSITORY, TOKEN, FakeGitHub, Pull

_ENDS_S = 20.0
"""How soon the processes of a killed command are gone."""
_HANGS_S = 120.0


class Subject:
    """A command and its first state, in a folder of its own."""

    command: tuple[str, ...]
    code = 0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "now"
        self.first = folder / "first"
        self.prepare(self.first)

    def prepare(self, folder: Path) -> None:
        """Make the first state."""

    def fresh(self) -> None:
        """Go back to the first state."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.first, self.place)

    def environment(self) -> Mapping[str, str]:
        """Return what the command finds besides this process's own."""
        return {}

    def now(self) -> object:
        """Return what a user finds; what an undisturbed command leaves is compared with it."""
        raise NotImplementedError

    def wrong(self) -> Iterator[str]:
        """Yield what is wrong just after the kill."""
        return iter(())

    def close(self) -> None:
        """Let go of what ``fresh`` opened: the process would not end."""

    def start(self) -> subprocess.Popen[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "GH_"))}
        return subprocess.Popen(
            [sys.executable, "-m", "perfci", *self.command],
            cwd=self.place,
            env={**kept, "PERFCI_CACHE_DIR": str(self.folder / "cache"), **self.environment()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


class Writing(Subject):
    """A command of ``scenarios`` that measures nothing."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self.scenario = SCENARIOS[self.name]
        self.command = self.scenario.command
        super().__init__(folder)
        self.before = contents(self.first, self.scenario)

    def prepare(self, folder: Path) -> None:
        folder.mkdir()
        self.scenario.prepare(folder)

    def now(self) -> object:
        left = {path.name for path in self.place.iterdir() if "sqlite-" not in path.name}
        return contents(self.place, self.scenario), records(self.place), sorted(left)

    def wrong(self) -> Iterator[str]:
        found = contents(self.place, self.scenario)
        whole = self.after[0] if isinstance(self.after, tuple) else {}
        for name, text in found.items():
            if text not in (self.before[name], whole[name]):
                yield f"{name} is neither what it was nor what it should be"
        yield from double(self.place / HISTORY)

    after: object = None


class Import(Writing):
    name = "history import"


class Export(Writing):
    name = "history export"


class Measuring(Subject):
    """A command that measures a small project."""

    def prepare(self, folder: Path) -> None:
        project = Project(folder)
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
        text = text.replace("rounds = 5", "rounds = 2").replace("max_rounds = 9", "max_rounds = 2")
        project.write("pyproject.toml", text)
        for loops in (1000, 1010):
            project.counting(loops)
            project.commit(str(loops))


class Nightly(Measuring):
    command = ("nightly", "main", "--last", "2", "--history", HISTORY, "--budget", "3m")
    """A fifth is for the tip against itself: enough on a busy machine, or it is left out."""

    def now(self) -> object:
        with open_history(str(self.place / HISTORY)) as history:
            return sorted(map(kept_of, history.export()))

    def wrong(self) -> Iterator[str]:
        yield from double(self.place / HISTORY)


def kept_of(record: object) -> str:
    """Return what of a record doesn't change from night to night: commits and cases."""
    match record:
        case RecordedRun(sha=sha, points=points, failed=failed):
            return f"{sha}: {sorted({one.case for one in points})}, failed: {sorted(failed)}"
        case GateOutcome(base_sha=base, head_sha=head, same=same):
            return f"{base} and {head}, same: {same}"
    raise AssertionError(record)


def double(history: Path) -> Iterator[str]:
    """Yield what is wrong with a history: unreadable, or a run twice."""
    if not history.exists():
        return
    try:
        every = records(history.parent)
    except PerfciError as error:
        yield f"the history can't be read: {error}"
        return
    yield from (f"twice: {one[:80]}" for one, times in Counter(every).items() if times > 1)


class BaselineUpdate(Measuring):
    command = ("baseline", "update", "HEAD", "--rounds", "2", "--budget", "30s")

    def now(self) -> object:
        stored = (self.place / "baselines").rglob("*")
        return sorted(str(path.relative_to(self.place)) for path in stored)

    def wrong(self) -> Iterator[str]:
        for path in (self.place / "baselines").rglob("*.json"):
            try:
                json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                yield f"half of {path.name} is stored"


class Commenting(Subject):
    """A report on the tests' own GitHub."""

    command = ("comment", "report.json", "--pull", "7", "--config", "perfci.toml")
    github: FakeGitHub | None = None

    def prepare(self, folder: Path) -> None:
        from perfci.report.exporters.json import render as render_json
        from tests.forges.github.conftest import HEAD, report_of

        folder.mkdir()
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
        (folder / "perfci.toml").write_text("", encoding="utf-8")
        (folder / "report.json").write_text(render_json(report_of(HEAD)), encoding="utf-8")

    def fresh(self) -> None:
        from tests.forges.github.conftest import BASE, HEAD

        super().fresh()
        self.close()
        self.github = FakeGitHub()
        self.github.pulls[7] = Pull(7, HEAD)
        self.github.commits |= {BASE: (), HEAD: (BASE,)}
        self.github.branches["main"] = BASE
        self.github.comment("looks good", "Ada")

    def close(self) -> None:
        if self.github is not None:
            self.github.close()

    def environment(self) -> Mapping[str, str]:
        assert self.github is not None
        return {
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_API_URL": self.github.url,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": "12",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SERVER_URL": "https://github.com",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def now(self) -> object:
        assert self.github is not None
        checks = [(one["name"], one["conclusion"]) for one in self.github.checks]
        counted = [len(self.github.annotations[one["id"]]) for one in self.github.checks]
        return [one["body"] for one in self.github.comments], checks, counted

    def wrong(self) -> Iterator[str]:
        assert self.github is not None
        yield from self.github.violations


SUBJECTS: Mapping[str, tuple[type[Subject], int]] = {
    "nightly": (Nightly, 50),
    "baseline update": (BaselineUpdate, 50),
    "history import": (Import, 20),
    "history export": (Export, 30),
    "comment": (Commenting, 50),
}
"""How many kills of each make 200."""


@dataclass(slots=True)
class Killed:
    """How many were tried, how many ended before the kill, and what was wrong."""

    tried: int = 0
    too_late: int = 0
    faults: list[str] = field(default_factory=list)


def killed(
    make: Callable[[Path], Subject], folder: Path, most: int, seed: int, part: str = "1/1"
) -> Killed:
    """Kill the command at a ``part`` of ``most`` moments of its time, and look."""
    with closing(make(folder)) as subject:
        return _killed(subject, most, seed, part)


def _killed(subject: Subject, most: int, seed: int, part: str) -> Killed:
    subject.fresh()
    began = time.monotonic()
    done, code = _ended(subject.start())
    took = time.monotonic() - began
    if code != subject.code:
        raise AssertionError(f"undisturbed: exit code {code}: {done[-400:]}")
    whole = subject.now()
    if isinstance(subject, Writing):
        subject.after = whole
    rng, outcome = random.Random(seed), Killed()
    which, parts = map(int, part.split("/"))
    for share in [rng.random() for _ in range(most)][which - 1 :: parts]:
        subject.fresh()
        at = share * took
        process = subject.start()
        time.sleep(at)
        outcome.too_late += process.poll() is not None
        process.kill()
        _ended(process)
        outcome.tried += 1
        wrong = [*left_running(subject.folder / "cache"), *subject.wrong()]
        said, code = _ended(subject.start())
        if code != subject.code or "Traceback" in said or "[internal]" in said:
            wrong.append(f"again: exit code {code}: {said[-300:]}")
        elif subject.now() != whole:
            wrong.append(f"again: {str(subject.now())[:300]}, not {str(whole)[:300]}")
        outcome.faults += [f"at {at:.2f} s of {took:.2f}: {one}" for one in wrong]
    return outcome


def _ended(process: subprocess.Popen[str]) -> tuple[str, int]:
    try:
        _, said = process.communicate(timeout=_HANGS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "it hangs", -1
    return said, process.returncode


def left_running(cache: Path) -> Iterator[str]:
    """Yield the processes that a command with this cache folder leaves behind."""
    end = time.monotonic() + _ENDS_S
    while left := _running(cache):
        if time.monotonic() > end:
            yield f"still running: {', '.join(left)}"
            return
        time.sleep(0.05)


def _running(cache: Path) -> Sequence[str]:
    """Return the command lines of processes that know this folder."""
    mark, found = os.fsencode(cache), []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes():
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                found += [os.fsdecode(line)[:200]] if line else []  # a zombie has none
        except OSError:  # gone, or another user's
            continue
    return found


def main() -> int:
    """Return 0 where nothing was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, help="kills of each command (default: 200 in all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1", metavar="I/N", help="a part of the moments")
    parser.add_argument("--only", action="append", choices=SUBJECTS)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    print("| command | killed | had ended before | faults |\n|---|--:|--:|--:|")
    found = 0
    for name in chosen.only or SUBJECTS:
        make, most = SUBJECTS[name]
        with tempfile.TemporaryDirectory(prefix="perfci-kills-") as folder:
            outcome = killed(make, Path(folder), chosen.most or most, chosen.seed, chosen.part)
        print(
            f"| {name} | {outcome.tried} | {outcome.too_late} | {len(outcome.faults)} |",
            flush=True,
        )
        for fault in outcome.faults:
            print(f"  {fault}")
        found += len(outcome.faults)
        if chosen.keep:
            counts = {
                "tried": outcome.tried,
                "late": outcome.too_late,
                "refused": 0,
                "faults": len(outcome.faults),
            }
            before = {} if chosen.part.startswith("1/") else kept("kills").get(name, {})
            keep("kills", name, {key: one + before.get(key, 0) for key, one in counts.items()})
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
