"""Whether `perfci compare` finds and names the faults that are planted into the examples.

    python benchmarks/example_faults.py serving prefill decode
    python benchmarks/example_faults.py training slow-rank lost-overlap
    python benchmarks/example_faults.py serving equal equal equal equal equal

Builds a repository of the example, plants the fault into its working tree and compares that with
the commit, for each of the names. A fault is found if the row of its metric is regressed and the
comment has the words that name it. `equal` plants nothing, and must not fail. The exit code is 1
if anything was missed or failed falsely.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
sys.path.insert(0, str(EXAMPLES))

from demo import commit, git  # noqa: E402

OPTIONS = ("--allow-same-commit", "--measure-same-code", "--budget", "150s", "--no-why")
SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Fault:
    """What is ``planted`` in the place of a ``line`` of an example's ``file``.

    ``moved`` is the metric that has to regress, and ``words`` are of the comment, which names it.
    """

    file: str
    line: str
    planted: str
    moved: str
    words: str

    def plant(self, example: Path, seconds: float | str = SECONDS) -> None:
        """Put it into an example's copy. ``seconds`` is how long it sleeps, as a number or code."""
        path = example / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(self.line) == 1, f"{self.file} has changed"
        planted = self.planted.format(line=self.line, seconds=seconds)
        path.write_text(text.replace(self.line, planted), encoding="utf-8")


SLEEP = '__import__("time").sleep({seconds})\n'
LOST_OVERLAP = """\
        with model.no_sync():
            loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
"""
FAULTS = {
    "serving": {
        "prefill": Fault(
            "model.py",
            "        new, place = torch.tensor([prompt]), 0\n",
            "{line}        " + SLEEP,
            "time_to_first_token",
            "time_to_first_token",
        ),
        "decode": Fault(
            "model.py",
            "            new = torch.tensor([[token]])\n",
            "{line}            " + SLEEP,
            "inter_token_latency_p50",
            "inter_token_latency_p50",
        ),
    },
    "training": {
        "slow-rank": Fault(
            "train.py",
            "        optimizer.zero_grad()\n",
            "{line}        if dist.get_rank() == 1:\n            " + SLEEP,
            "rank_imbalance",
            "rank 1 is slower by ",
        ),
        "lost-overlap": Fault(
            "train.py",
            "        loss.backward()\n",
            LOST_OVERLAP,
            "exposed_communication",
            "don't overlap with computing",
        ),
    },
}
CASES = {"serving": "prompt=16 and concurrency=1", "training": "ddp"}
EQUAL = "equal"


def main() -> int:
    """Build the example's repository, compare it with each fault, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("example", choices=FAULTS)
    names = sorted({EQUAL, *(name for faults in FAULTS.values() for name in faults)})
    parser.add_argument("faults", nargs="+", choices=names)
    options = parser.parse_args()
    missed = 0
    print("| planted | verdict | row | head ÷ base | regressed rows | as hoped | took |")
    print("|---|---|---|--:|---|---|--:|")
    for name in options.faults:
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            repository = built(Path(folder) / "repository", options.example)
            fault = FAULTS[options.example].get(name)
            if fault:
                fault.plant(repository)
            began = time.monotonic()
            report, comment = compared(repository, CASES[options.example])
            print(*report["verdict"]["reasons"], *report["notes"], sep="\n", file=sys.stderr)
        right = is_named(fault, report, comment) if fault else verdict_of(report) != "fail"
        missed += not right
        took = time.monotonic() - began
        print(*cells(name, fault, report, right, took), "", sep=" | ", flush=True)
    return 1 if missed else 0


def built(folder: Path, example: str) -> Path:
    """Make a repository of the example in ``folder``, with one commit."""
    shutil.copytree(EXAMPLES / example, folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, example)
    return folder


def compared(repository: Path, words: str) -> tuple[dict[str, Any], str]:
    """Return the report and the comment of the working tree against its commit."""
    files = {"--json": repository.parent / "json", "--markdown": repository.parent / "comment"}
    command = [sys.executable, "-m", "perfci", "compare", "HEAD", ".", "-q", "-k", words, *OPTIONS]
    for option, path in files.items():
        command += [option, str(path)]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    report, comment = files.values()
    assert report.exists(), ran.stderr
    return json.loads(report.read_text()), comment.read_text()


def verdict_of(report: dict[str, Any]) -> str:
    """Return the report's verdict."""
    return str(report["verdict"]["status"])


def is_named(fault: Fault, report: dict[str, Any], comment: str) -> bool:
    """Return whether the fault's row regressed, and the comment names the fault."""
    rows = [row for row in report["results"] if row["metric"] == fault.moved]
    return all(row["status"] == "regressed" for row in rows) and fault.words in comment


def cells(
    name: str, fault: Fault | None, report: dict[str, Any], right: bool, took: float
) -> list[str]:
    """Return the cells of a comparison's line."""
    regressed = [row["metric"] for row in report["results"] if row["status"] == "regressed"]
    row = next((row for row in report["results"] if fault and row["metric"] == fault.moved), None)
    values = [math.nan if row is None else row[key] for key in ("ratio", "ratio_lo", "ratio_hi")]
    ratio = "{:.3f} ({:.3f} to {:.3f})".format(*(value or math.nan for value in values))
    return [
        *("", name, verdict_of(report), row["metric"] if row else "–", ratio if row else "–"),
        *(", ".join(regressed) or "none", "yes" if right else "NO", f"{took:.0f} s"),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
