"""Record sessions for the corpus: a kind of work, a share that is planted, a load.

    python -m benchmarks.corpus record -k 'tiny or eager' --share 0.05 --burners 4

Builds a git repository of ``kinds`` whose second commit is worse by the share, compares the two
with ``--keep-bursts``, and puts the file into ``data`` with a line in ``data/sessions.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))

from demo import commit, git  # noqa: E402 (found by the path above)

from benchmarks.corpus.sessions import DATA, INDEX, Recorded, read_kept  # noqa: E402

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


def record(words: str, share: float, burners: int, budget: str) -> Recorded:
    """Record a session of planted work, and return its line of the index."""
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / "repository"
        build(repository, share)
        sides = ("main", "planted" if share else "main")
        with burning(burners):
            kept = _kept(repository, sides, ("-k", words, "--budget", budget))
    return _indexed(kept, f"{share * 100:.0f}", Recorded("", share, burners, words, 0))


def _kept(repository: Path, sides: tuple[str, str], options: Sequence[str]) -> Path:
    """Compare both sides in all rounds, and return the session's file in ``data``."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "perfci", "compare", *sides, *options]
        command += ["--all", "--allow-same-commit", "--set", "why=false", "--quiet"]
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
        lines.write(json.dumps(asdict(recorded)) + "\n")
    return recorded


def main(words: list[str]) -> int:
    """Record what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus record")
    parser.add_argument("-k", dest="words", default="")
    parser.add_argument("--share", type=float, default=0.0)
    parser.add_argument("--burners", type=int, default=0)
    parser.add_argument("--budget", default="215s")
    given = parser.parse_args(words)
    print(record(given.words, given.share, given.burners, given.budget))
    return 0
