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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))

from demo import commit, git  # noqa: E402 (found by the path above)

from benchmarks.corpus.sessions import DATA, INDEX, Recorded, plain  # noqa: E402
from perfci.measure.kept_bursts import read_kept  # noqa: E402

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
    """Record one session, and return its line of the index."""
    with tempfile.TemporaryDirectory() as scratch:
        repository, kept = Path(scratch) / "repository", Path(scratch) / "kept"
        build(repository, share)
        command = [
            *(sys.executable, "-m", "perfci", "compare", "main", "planted" if share else "main"),
            *("-k", words, "--all", "--same", "--no-why", "--quiet", "--budget", budget),
            *("--keep-bursts", str(kept)),
        ]
        with burning(burners):
            done = subprocess.run(command, cwd=repository, check=False)
        files = list(kept.glob("*")) if kept.is_dir() else []
        if not files:
            raise SystemExit(f"perfci kept nothing, and exited with {done.returncode}")
        name = f"{files[0].stem}-{share * 100:.0f}.bursts"
        DATA.mkdir(exist_ok=True)
        shutil.move(files[0], DATA / name)
    rounds = len(read_kept(DATA / name).rounds)
    recorded = Recorded(name, share, burners, words, rounds)
    with INDEX.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(plain(recorded)) + "\n")
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
