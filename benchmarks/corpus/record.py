"""Record sessions for the corpus: a kind of work, a share that is planted, a load.

    python -m benchmarks.corpus record -k 'tiny or eager' --share 0.05 --burners 4
    python -m benchmarks.corpus record --minutes 60
    python -m benchmarks.corpus record --library einops

Builds a git repository of ``kinds`` whose second commit is worse by the share, compares the two
with ``--keep-bursts``, and puts the file into ``data`` with a line in ``data/sessions.jsonl``.
``--minutes`` goes on with what the corpus has least of.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))

import real_world  # noqa: E402 (found by the path above)
from demo import commit, git  # noqa: E402

from benchmarks.corpus.sessions import DATA, INDEX, Recorded, plain, recorded_sessions  # noqa: E402
from perfci.measure.kept_bursts import read_kept  # noqa: E402

GROUPS = (
    *("tiny or python or memory_bound", "eager or generate or allocating"),
    *("tails or imports or child", "(memory and not memory_bound) or data_loader"),
    *("training or ranks", "compiled"),
)
"""Kinds that are recorded together: few, so that each gets all of its rounds in time."""
_WEIGHTS = {
    (0.0, 0): 6.0,
    **{(share, 0): 1.0 for share in (0.05, 0.10, 0.02, 0.20, 0.01)},
    **{(0.0, burners): 2.0 for burners in (4, 8)},
}
"""Sessions of a group that are wanted, relative to each other, by share and busy loops."""
_BURN = "while True: pass"


def build(repository: Path, share: float) -> None:
    """Make the branches ``main`` and ``planted``, which is worse by ``share``."""
    shutil.copytree(HERE / "kinds", repository)
    git(repository, "init", "--quiet", "--initial-branch=main")
    commit(repository, "A hundred units of each kind of work")
    git(repository, "checkout", "--quiet", "-b", "planted")
    planted = repository / "work" / "planted.py"
    text = planted.read_text()
    planted.write_text(text.replace(": 0.0", f": {share}"))
    if share:
        commit(repository, f"{share:.0%} more of them")
    git(repository, "checkout", "--quiet", "main")


@contextmanager
def burning(count: int) -> Iterator[None]:
    """Keep ``count`` processes busy meanwhile."""
    burners = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def lacking(recorded: Sequence[Recorded]) -> tuple[str, float, int]:
    """Return the words, the share and the busy loops of which the corpus has least."""
    counts = Counter((each.cases, each.share, each.burners) for each in recorded)
    wanted = {
        (words, share, burners): weight
        for (share, burners), weight in _WEIGHTS.items()
        for words in GROUPS
    }
    return min(wanted, key=lambda key: counts[key] / wanted[key])


def record(words: str, share: float, burners: int, budget: str) -> Recorded:
    """Record a session of planted work, and return its line of the index."""
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / "repository"
        build(repository, share)
        sides = ("main", "planted" if share else "main")
        with burning(burners):
            kept = _kept(repository, sides, ("-k", words, "--budget", budget))
    return _indexed(kept, f"{share * 100:.0f}", Recorded("", share, burners, words, 0))


def record_library(library: str, budget: str) -> Recorded:
    """Record two releases of a library. How they differ isn't known."""
    with tempfile.TemporaryDirectory() as scratch:
        repository, sides = real_world.build(library, Path(scratch) / "repository")
        config = ("--config", str(HERE / "kinds" / "pyproject.toml"))
        kept = _kept(repository, sides, (*config, "--budget", budget))
    return _indexed(kept, library, Recorded("", 0.0, 0, " to ".join(sides), 0, library))


def _kept(repository: Path, sides: tuple[str, str], options: Sequence[str]) -> Path:
    """Compare both sides in all rounds, and return the session's file in ``data``."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "perfci", "compare", *sides, *options]
        command += ["--measure-same-code", "--allow-same-commit", "--no-why", "--quiet"]
        command += ["--keep-bursts", folder]
        done = subprocess.run(command, cwd=repository, check=False)
        files = list(Path(folder).glob("*.bursts"))
        if not files:
            raise SystemExit(f"perfci kept nothing, and exited with {done.returncode}")
        DATA.mkdir(exist_ok=True)
        return Path(shutil.move(files[0], DATA))


def _indexed(kept: Path, name: str, recorded: Recorded) -> Recorded:
    """Name the session's file, and add its line to the index."""
    file = kept.rename(kept.with_stem(f"{kept.stem}-{name}"))
    recorded = replace(recorded, file=file.name, rounds=len(read_kept(file).rounds))
    with INDEX.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(plain(recorded)) + "\n")
    return recorded


def main(words: list[str]) -> int:
    """Record what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus record")
    parser.add_argument("-k", dest="words", default="")
    parser.add_argument("--share", type=float, default=0.0)
    parser.add_argument("--burners", type=int, default=0)
    parser.add_argument("--library", choices=[*real_world.RELEASES])
    parser.add_argument("--budget", default="215s")
    parser.add_argument("--minutes", type=float, default=0.0, help="record what is lacking")
    given = parser.parse_args(words)
    until = time.monotonic() + 60.0 * given.minutes
    if given.library:
        print(record_library(given.library, given.budget))
    elif not given.minutes:
        print(record(given.words, given.share, given.burners, given.budget))
    while time.monotonic() < until:
        recorded = recorded_sessions() if INDEX.exists() else []
        print(record(*lacking(recorded), given.budget), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
