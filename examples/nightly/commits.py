"""The 60 commits of the nightly demo: what each costs, and the repository made of them.

Three things are planted. A step: commit 24 makes ``tokenise`` 12 % slower. A ramp: commits 34 to
45 make ``encode`` 1 % slower each, which no pull request's gate would see. And one that is none:
in the night of commit 30 the machine was busy and ``parse`` took 60 % longer; its code is the same.
"""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

COMMITS = 60
STEP, STEP_SHARE = 24, 0.12
RAMP, RAMP_SHARE = range(34, 46), 0.01
OUTLIER, OUTLIER_SHARE = 30, 0.60
TAGS = {1: "v0.1", 20: "v0.2", 40: "v0.3"}
LOOPS = 5000

_CONFIGURATION = """\
[tool.perfci]
benchmarks = "benchmarks"
rounds = 4
max_rounds = 5
round_time = 0.05
burst = 0.005
warmup = 0.1
budget = "40s"
"""
_LIBRARY = '''\
"""The work of {name}."""

LOOPS = {loops}


def {name}():
    total = 0
    for index in range(LOOPS):
        total += index * index
    return total
'''
_BENCHMARKS = """\
import perfci
from words import encoding, parsing, tokenising


@perfci.benchmark
def tokenise():
    return tokenising.tokenise


@perfci.benchmark
def encode():
    return encoding.encode


@perfci.benchmark
def parse():
    return parsing.parse
"""
_MODULES = {"tokenise": "tokenising", "encode": "encoding", "parse": "parsing"}
_SUBJECTS = (
    "Explain the arguments",
    "Sort the imports",
    "Correct a spelling",
    "Say what is returned",
    "Name the default",
)


def loops(benchmark: str, number: int) -> int:
    """Return what ``benchmark`` costs at commit ``number`` (from 1): the planted truth."""
    if benchmark == "tokenise" and number >= STEP:
        return round(LOOPS * (1.0 + STEP_SHARE))
    if benchmark == "encode":
        slower = sum(number >= one for one in RAMP)
        return round(LOOPS * (1.0 + RAMP_SHARE) ** slower)
    return LOOPS


def near(benchmark: str, before: int, after: int) -> bool:
    """Whether a change between these two commits is within two of where one was planted.

    Noise can make a step fit the ramp best: it counts where it lies within the ramp's place.
    """
    planted = {"tokenise": (STEP - 1, STEP), "encode": (RAMP.start - 1, RAMP.stop - 1)}
    if benchmark not in planted:
        return False
    first, last = planted[benchmark]
    return first - 2 <= before < after <= last + 2


def subject(number: int) -> str:
    """Return the first line of commit ``number``'s message."""
    if number == 1:
        return "Words: three functions and their benchmarks"
    if number == STEP:
        return "Normalise before splitting"
    if number in RAMP:
        return f"Encode one more script ({number - RAMP.start + 1} of {len(RAMP)})"
    return _SUBJECTS[number % len(_SUBJECTS)]


def build(folder: Path, newest: datetime) -> Path:
    """Make the repository in ``folder`` anew, one commit a day, the last one at ``newest``."""
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "words").mkdir(parents=True)
    (folder / "benchmarks").mkdir()
    (folder / "pyproject.toml").write_text(_CONFIGURATION)
    (folder / "benchmarks" / "bench_words.py").write_text(_BENCHMARKS)
    (folder / "words" / "__init__.py").write_text("")
    git(folder, "init", "--quiet", "--initial-branch=main")
    for number in range(1, COMMITS + 1):
        for name, module in _MODULES.items():
            text = _LIBRARY.format(name=name, loops=loops(name, number))
            (folder / "words" / f"{module}.py").write_text(text)
        (folder / "NOTES").write_text(f"{number}: {subject(number)}\n")
        _commit(folder, number, newest - timedelta(days=COMMITS - number))
    return folder


def git(folder: Path, *arguments: str, **environment: str) -> str:
    """Run git in ``folder`` and return what it printed."""
    return subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**_clean(), **environment},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def _commit(folder: Path, number: int, moment: datetime) -> None:
    date = moment.astimezone(UTC).isoformat(timespec="seconds")
    git(folder, "add", "--all")
    git(
        folder,
        *("-c", "user.name=perfci demo", "-c", "user.email=demo@example.invalid"),
        *("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", subject(number)),
        GIT_AUTHOR_DATE=date,
        GIT_COMMITTER_DATE=date,
    )
    if number in TAGS:
        git(folder, "tag", TAGS[number])


def _clean() -> dict[str, str]:
    """Return this process's environment without what a git hook would have set."""
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
