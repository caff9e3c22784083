"""Record sessions for the corpus: a kind of work, a share that is planted, a load.

    python -m benchmarks.corpus record -k 'tiny or eager' --share 0.05 --burners 4
    python -m benchmarks.corpus record --minutes 60

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
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))

from demo import commit, git  # noqa: E402 (found by the path above)

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
    """Record one session, and return its line of the index."""
    with tempfile.TemporaryDirectory() as scratch:
        repository, kept = Path(scratch) / "repository", Path(scratch) / "kept"
        build(repository, share)
        command = [
            *(sys.executable, "-m", "perfci", "compare", "main", "planted" if share else "main"),
            *(
                "-k",
                words,
                "--measure-same-code",
                "--allow-same-commit",
                "--no-why",
                "--quiet",
                "--budget",
                budget,
            ),
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
    parser.add_argument("--minutes", type=float, default=0.0, help="record what is lacking")
    given = parser.parse_args(words)
    until = time.monotonic() + 60.0 * given.minutes
    if not given.minutes:
        print(record(given.words, given.share, given.burners, given.budget))
    while time.monotonic() < until:
        recorded = recorded_sessions() if INDEX.exists() else []
        print(record(*lacking(recorded), given.budget), flush=True)
    return 0
