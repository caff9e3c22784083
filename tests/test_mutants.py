"""Small faults put into a copy of perfci, one at a time: do the fast tests notice each?

    python -m tests.test_mutants [WORD ...]

Prints a line a mutant, and ends with 1 where one survived. With words, only those whose line has
one of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("perfci", "tests", "templates", "examples", "pyproject.toml")
WITHIN_S = 240
STATS = ("tests/stats",)
VERDICT = ("tests/verdict",)
SCHEDULE = ("tests/measure/test_schedule.py", "tests/measure/test_family.py")
SESSION = ("tests/measure/test_simulated_session.py", *SCHEDULE)


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old`` stands once in ``file`` and becomes ``new``; ``tests`` should notice."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {self.old!r} → {self.new!r}"


MUTANTS = (
    Mutant("stats/evidence.py", "(count - rank) * p", "(count - rank - 1) * p", STATS),
    Mutant("stats/evidence.py", "largest = max(largest, min", "largest = max(0.0, min", STATS),
    Mutant("stats/evidence.py", "* count / rank", "* count / (rank + 1)", STATS),
    Mutant("stats/t_tests.py", "/ (len(values) - 1)", "/ len(values)", STATS),
    Mutant("stats/t_tests.py", "math.sqrt(spread) > resolution", "math.sqrt(spread) >= 0.0", STATS),
    Mutant("stats/t_tests.py", "2.0 * special.stdtr", "special.stdtr", STATS),
    Mutant("stats/t_tests.py", "(1.0 + 1.0 / count)", "(1.0 / count)", STATS),
    Mutant(
        "stats/t_tests.py",
        "math.sqrt(between + within), count - 1",
        "math.sqrt(between + within), count",
        STATS,
    ),
    Mutant(
        "stats/evidence.py",
        "return (mean(head) - mean(base))",
        "return (mean(base) - mean(head))",
        STATS,
    ),
    Mutant(
        "verdict/policy.py",
        "-self.threshold < self.lo and self.hi < self.threshold",
        "self.lo < self.threshold and self.hi < self.threshold",
        VERDICT,
    ),
    Mutant(
        "verdict/policy.py",
        "self.lo > self.threshold or self.hi < -self.threshold",
        "self.lo > self.threshold",
        VERDICT,
    ),
    Mutant(
        "verdict/row_status.py",
        "p_adjusted < policy.alpha",
        "p_adjusted < 2 * policy.alpha",
        VERDICT,
    ),
    Mutant(
        "verdict/row_status.py", "holm(known, scaled_family(len(known), scale))", "known", VERDICT
    ),
    Mutant(
        "verdict/row_status.py",
        "abs(row.cohens_d) >= policy.cohens_d",
        "abs(row.cohens_d) >= 0",
        VERDICT,
    ),
    Mutant(
        "verdict/row_status.py",
        '"regressed" if worse.change > 0.0',
        '"regressed" if worse.change < 0.0',
        VERDICT,
    ),
    Mutant("verdict/row_status.py", "    if row.caveat:\n        return row.caveat\n", "", VERDICT),
    Mutant("verdict/row_status.py", "row.base_sessions < 2", "row.base_sessions < 1", VERDICT),
    Mutant("stats/evidence.py", "if most <= least:", "if most >= least:", VERDICT),
    Mutant("stats/evidence.py", "range(least + 1, most + 1)", "range(least + 1, most)", STATS),
    Mutant("verdict/stopping.py", "p is not None and p < level", "True", VERDICT),
    Mutant(
        "verdict/stopping.py",
        "worse, level = worsening(row), policy.alpha / max(1, family)",
        "worse, level = worsening(row), policy.alpha",
        (*VERDICT, *SCHEDULE),
    ),
    Mutant(
        "verdict/decision.py",
        "    if regressions:\n",
        "    if regressions and not errors:\n",
        VERDICT,
    ),
    Mutant("verdict/reduction.py", "_STOLEN_SHARE = 0.1", "_STOLEN_SHARE = 1.0", VERDICT),
    Mutant(
        "measure/selection.py",
        "compile_rounds + max(rounds, 3)",
        "compile_rounds + max(rounds, 2)",
        SCHEDULE,
    ),
    Mutant("measure/selection.py", "if round_number % 2 else", "if round_number else", SCHEDULE),
    Mutant(
        "measure/progress.py",
        "compile_rounds if self.case.compiled else 1",
        "compile_rounds",
        SCHEDULE,
    ),
    Mutant(
        "measure/selection.py",
        "if block % 2 else tuple(sides)",
        "if block else tuple(sides)",
        SCHEDULE,
    ),
    Mutant(
        "measure/session.py",
        "not ended and state.rounds < self._needs.minimum_rounds(state)",
        "not ended and state.rounds <= self._needs.minimum_rounds(state)",
        SESSION,
    ),
    Mutant("measure/session.py", "left_s <= max(state.took_s)", "left_s <= 0", SESSION),
    Mutant("measure/progress.py", "if metric not in state.out_of_reach", "if metric", SESSION),
    Mutant(
        "verdict/stopping.py",
        "rows = [row, without_extreme_pair(row)]",
        "rows = [row]",
        VERDICT,
    ),
    Mutant("measure/round.py", "(early or ran_out_of_memory", "(ran_out_of_memory", SESSION),
    Mutant("measure/workers.py", "if self._clock() >= self._budget_end:", "if False:", SESSION),
    Mutant(
        "measure/workers.py",
        "deadline = self._clock() + within_s\n            elif",
        "pass\n            elif",
        SESSION,
    ),
)


def passes(tests: tuple[str, ...], copy: Path) -> bool:
    """Run tests of the copy, on its own perfci. One that goes on for ever doesn't pass."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", *tests],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            timeout=WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    if ran.returncode not in {0, 1}:
        raise SystemExit(f"{tests}: {ran.stdout.decode()[-2000:]}")
    return ran.returncode == 0


def survives(mutant: Mutant, copy: Path) -> bool:
    """Put the fault into the copy, run its tests there, and take it out again."""
    path = copy / "perfci" / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant}: stands {text.count(mutant.old)} times")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        return passes(mutant.tests, copy)
    finally:
        path.write_text(text, encoding="utf-8")


def main(words: list[str]) -> int:
    chosen = [one for one in MUTANTS if not words or any(word in str(one) for word in words)]
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)
        for tests in dict.fromkeys(one.tests for one in chosen):
            if not passes(tests, copy):
                raise SystemExit(f"{tests} fail without any fault")
        for mutant in chosen:
            survived = survives(mutant, copy)
            survivors += survived
            print("SURVIVED" if survived else "killed  ", mutant, flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} killed")
    return 1 if survivors else 0


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_changes_a_line_that_stands_once_in_its_file(mutant: Mutant) -> None:
    text = (ROOT / "perfci" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
