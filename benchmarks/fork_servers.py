"""What rounds of one fork server have in common, and whether a perturbed fork draws it again.

    PYTHONPATH=. python benchmarks/fork_servers.py record KIND...    # of benchmarks/corpus/kinds
    PYTHONPATH=. python benchmarks/fork_servers.py table             # of all that was recorded

One commit against itself: 8 fork servers with 18 rounds each. A third of these are plain forks. In
another third each worker perturbs its memory before it imports its side's modules (``PERTURB``),
with one draw a round for both sides, and in the last third with a draw of its own. ``--fresh``
records eight rounds of fresh processes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import move

from scipy import stats

from benchmarks.corpus.record import build
from benchmarks.corpus.sessions import read_kept
from perfci.model.measuring import WorkerOutput
from perfci.verdict.sampled_comparisons import pair_values

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from demo import commit

DATA = Path(__file__).parent / "corpus" / "fork_servers"
SERVERS, FORKS, FRESH = 8, 6, 8
MODES = ("plain", "one draw", "own draws")
METRIC = "latency_p50"
PERTURB = """\
import ctypes, mmap, os, random

with open({counter!r} + str(os.getppid()), "a+b") as counter:
    counter.write(b".")
    fork = counter.tell() - 1
pair = fork // 2
mode = pair % 3
KEPT = []
if mode:
    draw = random.Random(f"{{os.getppid()}} {{pair if mode == 1 else (pair, fork)}}")
    malloc, free = ctypes.CDLL(None).malloc, ctypes.CDLL(None).free
    malloc.restype, free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    KEPT.append(mmap.mmap(-1, draw.randrange(1, 1 << 14) << 12))
    sizes = [draw.randrange(16, 1 << draw.randrange(5, 17)) for _ in range(draw.randrange(4000))]
    blocks = [malloc(size) for size in sizes]
    small = [bytes(draw.randrange(1, 480)) for _ in range(draw.randrange(8000))]
    for block in blocks:
        if draw.random() < 0.5:
            free(block)
    KEPT.append([each for each in small if draw.random() < 0.5])
    import torch

    sizes = [64 * draw.randrange(1, 256) for _ in range(draw.randrange(40))]
    KEPT.append([torch.empty(size, dtype=torch.uint8) for size in sizes])
"""
PATCHED = """\
import sys
from perfci.cli.main import main
from perfci.measure.fork_servers import ForkServers

rounds, plain = 0, ForkServers.of

def of(servers, case, *, later):
    global rounds
    if rounds % {rounds} == 0:
        servers.close()
    rounds += 1
    return plain(servers, case, later=False)

ForkServers.of = of
sys.argv = ["perfci", *sys.argv[1:]]
main()
"""


def record(kind: str, *, fresh: bool) -> None:
    """Record a session of one kind of work."""
    rounds = FRESH if fresh else SERVERS * FORKS * len(MODES)
    settings = f"rounds = {rounds}\nmax_rounds = {rounds}\n"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        repository, kept = folder / "repository", folder / "kept"
        build(repository, 0.0)
        perturb = PERTURB.format(counter=str(folder / "forks"))
        (repository / "work" / "perturb.py").write_text(perturb)
        for file in (repository / "benchmarks").glob("*.py"):
            file.write_text("from work import perturb\n" + file.read_text())
        with (repository / "pyproject.toml").open("a") as toml:
            toml.write(settings + "[tool.perfci.quiet]\nfork = false\n" * fresh)
        commit(repository, "Perturb")
        code = PATCHED.format(rounds=FORKS * len(MODES))
        command = [sys.executable, "-c", code, "compare", "main", "main", "-k", kind, "--all"]
        command += ["--allow-same-commit", "--set", "why=false", "--quiet", "--budget", "1200s"]
        command += ["--keep-bursts", str(kept)]
        subprocess.run(command, cwd=repository, check=False)
        (file,) = kept.iterdir()
        DATA.mkdir(exist_ok=True)
        move(file, DATA / f"{kind}{'-fresh' * fresh}.bursts")


def rounds_of(file: Path) -> Iterator[tuple[WorkerOutput, WorkerOutput]]:
    """Yield both sides' outputs of each round."""
    for kept in read_kept(file).rounds:
        yield kept.workers["base"].output, kept.workers["head"].output


def log_ratio(base: WorkerOutput, head: WorkerOutput) -> float:
    """Return the log ratio of a round's median latencies."""
    before, after = pair_values(base, head, METRIC)
    return math.log(after / before)


def by_mode(file: Path) -> list[list[list[float]]]:
    """Return by mode, and then by fork server, the log ratios of its rounds."""
    rounds: dict[int, list[float]] = defaultdict(list)
    for base, head in rounds_of(file):
        rounds[base.server].append(log_ratio(base, head))
    return [[each[mode :: len(MODES)] for each in rounds.values()] for mode in range(len(MODES))]


def between(groups: Sequence[Sequence[float]]) -> tuple[float, float, float, float]:
    """Return the share of the variance that lies between groups of one size, and its 95 % interval.

    The interval is exact for normal values (Searle, Casella & McCulloch 1992, 3.5). The fourth
    number is the standard deviation within groups.
    """
    count, size = len(groups), len(groups[0])
    within = statistics.fmean(map(statistics.variance, groups))
    ratio = size * statistics.variance(map(statistics.fmean, groups)) / within
    df = count - 1, count * (size - 1)
    ends = ratio / stats.f.ppf(0.975, *df), ratio / stats.f.ppf(0.025, *df)
    share, low, high = ((f - 1) / (f - 1 + size) for f in (ratio, *ends))
    return share, low, high, math.sqrt(within)


def held(groups: Sequence[Sequence[float]], servers: int, rounds: int) -> float:
    """Return the share of plain 95 % intervals that hold zero.

    They are of successive ``rounds`` of each of ``servers``, in all choices of these.
    """
    holds = []
    for chosen in itertools.combinations(groups, servers):
        for first in range(FORKS - rounds + 1):
            values = [value for group in chosen for value in group[first : first + rounds]]
            error = statistics.stdev(values) / math.sqrt(len(values))
            widest = stats.t.ppf(0.975, len(values) - 1) * error
            holds.append(abs(statistics.fmean(values)) <= widest)
    return statistics.fmean(holds)


def table() -> None:
    """Print a line for each kind and way to fork."""
    print("| kind | forks | between, % | within, % | holds: 5 rounds of 1, % | 3 of 2, % | level |")
    print("|---|---|--:|--:|--:|--:|--:|")
    kinds = sorted(path.stem for path in DATA.glob("*.bursts") if "-" not in path.stem)
    for kind in kinds:
        fresh = DATA / f"{kind}-fresh.bursts"
        level = ""
        if fresh.exists():
            levels = [
                statistics.median(
                    output.values[METRIC] for sides in rounds_of(path) for output in sides
                )
                for path in (DATA / f"{kind}.bursts", fresh)
            ]
            level = f"× {levels[0] / levels[1]:.3f}"
        for mode, groups in zip(MODES, by_mode(DATA / f"{kind}.bursts"), strict=True):
            share, low, high, within = between(groups)
            cells = [f"{100 * share:.0f} ({100 * low:.0f} to {100 * high:.0f})"]
            cells += [f"{100 * within:.2f}"]
            cells += [f"{100 * held(groups, *way):.0f}" for way in ((1, 5), (2, 3))]
            print("|", " | ".join((kind, mode, *cells, level)), "|")
            level = ""


def main() -> None:
    """Record the kinds that the command line names, or print the table."""
    parser = argparse.ArgumentParser(prog="python benchmarks/fork_servers.py")
    parser.add_argument("what", choices=("record", "table"))
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--fresh", action="store_true")
    given = parser.parse_args()
    for kind in given.kinds if given.what == "record" else ():
        record(kind, fresh=given.fresh)
    if given.what == "table":
        table()


if __name__ == "__main__":
    main()
