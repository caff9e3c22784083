"""Pure: the cases of ``-k``, the benchmarks of a source, the order of cases, sides and bursts.

Sources are only parsed here, never imported.
"""

from __future__ import annotations

import ast
import fnmatch
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from perfci.config.keys import MeasureSettings
from perfci.errors import UsageError
from perfci.model.case import Case
from perfci.model.run import CaseRun
from perfci.suites import form_of
from perfci.units import parse_share

_WORD = re.compile(r"[()]|[^\s()]+")
"""Matches a parenthesis, or a word. Ids and tags have no parentheses."""
_JOINING = frozenset({"and", "or", "not", "(", ")"})
"""Words of a selection that stand for no case."""
T = TypeVar("T")
LEAST_BURSTS = 4
"""Least number of a side's bursts in a round, and so of its calls if they are slow."""
LEAD_IN_PART = 5
"""One in this number of a burst's calls only refills the caches, and is not recorded."""
LONG_CALL_S = 0.005
"""Calls that take this long have no lead-in: what the other side left in the caches slows them
little, and one more call would take long. A burst of shorter calls has one lead-in call or more."""
BLOCK_S = 0.05
"""Time that a side measures in a block, about, before the parent takes the results."""
SAMPLE_S = 3e-7
"""Time that a sample takes in addition to its call."""


def select(cases: Iterable[Case], expression: str) -> tuple[Case, ...]:
    """Return the cases that ``expression`` selects. An empty one selects all.

    A word selects the cases whose id contains it, or that have it as a tag. A word with ``*`` or
    ``?`` is a pattern for the whole id. Parentheses bind tightest, then ``not``, ``and``, ``or``.
    """
    if not expression.strip():
        return tuple(cases)
    words = _WORD.findall(expression.lower())
    # in Python's own grammar, with a name in the place of each word
    text = " ".join(word if word in _JOINING else f"_{at}" for at, word in enumerate(words))
    try:
        tree = ast.parse(text, mode="eval").body
        return tuple(case for case in cases if _holds(tree, words, case))
    except (SyntaxError, RecursionError, MemoryError, KeyError) as error:
        raise UsageError(
            "bad-selection",
            f"-k {expression!r} can't be read",
            "Write words joined by `and`, `or`, `not` and parentheses: "
            "-k 'encoder and not (slow or cuda)'.",
        ) from error


def _holds(tree: ast.expr, words: Sequence[str], case: Case) -> bool:
    """Return whether ``case`` is selected. KeyError for what isn't part of a selection."""
    match tree:
        case ast.Name(id=name):
            return _matches(case, words[int(name[1:])])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _holds(operand, words, case)
        case ast.BoolOp(op=joining, values=values):
            holds = [_holds(value, words, case) for value in values]
            return all(holds) if isinstance(joining, ast.And) else any(holds)
        case _:
            raise KeyError(type(tree).__name__)


def _matches(case: Case, word: str) -> bool:
    identity = case.id.lower()
    if "*" in word or "?" in word:
        # brackets belong to case ids here, not to the pattern
        return fnmatch.fnmatchcase(identity, word.replace("[", "[[]"))
    return word in identity or word in (tag.lower() for tag in case.tags)


@dataclass(frozen=True, slots=True)
class DecoratorLiterals:
    """The literals of a benchmark's decorator. A name counts if the file sets it to a literal.

    ``metrics`` has None if the decorator doesn't name metrics, or computes them: then no metric is
    known to be left out. ``thresholds`` has those whose value can be read. A benchmark is
    ``conditional`` if it stands in an `if`, a `try` or the like: not every machine has it.
    """

    metrics: tuple[str, ...] | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    conditional: bool = False


def written_in(root: Path, files: Iterable[str]) -> Mapping[str, Mapping[str, DecoratorLiterals]]:
    """Return the benchmarks that the source of each file defines, by path relative to ``root``."""
    files = tuple(files)
    return {
        Path(file).relative_to(root).as_posix(): _benchmarks_in(file, root, files) for file in files
    }


def _benchmarks_in(file: str, root: Path, files: Sequence[str]) -> Mapping[str, DecoratorLiterals]:
    form, source = form_of(file, str(root)), Path(file).read_bytes()
    if form is None:
        return benchmarks_of(source)
    try:
        names = form.written(Path(file), root, source.decode("utf-8", errors="replace"), files)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # all that the parser raises
        return {}
    return {name: DecoratorLiterals(metrics=metrics) for name, metrics in names.items()}


def by_name(
    of_files: Mapping[str, Mapping[str, DecoratorLiterals]],
) -> dict[str, DecoratorLiterals]:
    """Return the benchmarks of all files by their names."""
    return {
        name: literals for benchmarks in of_files.values() for name, literals in benchmarks.items()
    }


def parsed(source: bytes) -> ast.Module:
    """Return the module of ``source``, or an empty one if Python can't parse it."""
    try:
        with warnings.catch_warnings(action="ignore"):  # on invalid escapes in the user's strings
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # all that the parser raises
        return ast.Module([], [])


def benchmarks_of(source: bytes) -> Mapping[str, DecoratorLiterals]:
    """Return the benchmarks that ``source`` defines. Empty if it can't be parsed.

    A benchmark isn't seen if its name is computed, or if it is made without a decorator.
    """
    tree = parsed(source)
    statements = tuple(_run_on_import(tree.body))
    decorators, constants = set(_decorators(statements)), _constants(statements)
    unconditional = set(tree.body)
    benchmarks = {}
    for function in (each for each in statements if isinstance(each, ast.FunctionDef)):
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
            if ast.unparse(call.func) in decorators:
                given = {word.arg: _literal(word.value, constants) for word in call.keywords}
                name = given.get("name", function.name)
                if isinstance(name, str) and name:
                    conditional = function not in unconditional
                    benchmarks[name] = _literals(given, conditional=conditional)
    return benchmarks


def _run_on_import(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when the module is imported, also those in `if` and `try`."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for inner in ast.iter_child_nodes(statement):
            if isinstance(inner, ast.stmt):
                yield from _run_on_import((inner,))
            elif isinstance(inner, (ast.ExceptHandler, ast.match_case)):
                yield from _run_on_import(inner.body)


def _decorators(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the decorator as the file can write it, by the names that it imports."""
    for statement in statements:
        match statement:
            case ast.Import(names=names):
                packages = [name for name in names if name.name == "perfci"]
                yield from (f"{name.asname or name.name}.benchmark" for name in packages)
            case ast.ImportFrom(module="perfci", names=names):
                imported = [name for name in names if name.name == "benchmark"]
                yield from (name.asname or name.name for name in imported)


def _literals(given: Mapping[str | None, Any], *, conditional: bool) -> DecoratorLiterals:
    metrics, thresholds = given.get("metrics"), given.get("thresholds")
    written = thresholds.items() if isinstance(thresholds, dict) else ()
    return DecoratorLiterals(
        metrics=(
            tuple(name for name in metrics if isinstance(name, str))
            if isinstance(metrics, (list, tuple))
            else None
        ),
        thresholds={
            name: threshold
            for name, value in written
            if isinstance(name, str) and (threshold := _threshold(value)) is not None
        },
        conditional=conditional,
    )


def _threshold(value: object) -> float | None:
    """Return a threshold as a decorator takes it, `"5%"` or a number; None for anything else."""
    if isinstance(value, str):
        try:
            return parse_share(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, (int, float)) and value >= 0.0 else None


def _constants(statements: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """Return the value of each name that the module assigns exactly once."""
    given: dict[str, list[ast.expr]] = {}
    for statement in statements:
        if isinstance(statement, ast.Assign):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    given.setdefault(node.id, []).append(statement.value)
    return {name: values[0] for name, values in given.items() if len(values) == 1}


def _literal(value: ast.expr, constants: Mapping[str, ast.expr]) -> Any:
    """Return the value of a literal, or of a name that stands for one; None for all else."""
    if isinstance(value, ast.Name):
        value = constants.get(value.id, value)
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


_LONG_TURN_S, _LONG_LEAD_IN_S = 1.0, 0.4
"""Times that a long turn's recorded calls take, and the calls before them that aren't recorded."""


@dataclass(frozen=True, slots=True)
class BurstPlan:
    """The calls of a side in a round.

    The side has ``blocks`` blocks of ``bursts`` bursts each, in turn with the other side's bursts.
    A burst is ``lead_in`` calls that are not recorded, or up to ``more`` in addition, then
    ``calls`` that are.
    """

    calls: int
    lead_in: int
    bursts: int
    blocks: int
    more: int = 0

    def block_s(self, call_s: float) -> float:
        """Return the time in s that one side's calls take at most in one block."""
        return self.bursts * (self.lead_in + self.more + self.calls) * (call_s + SAMPLE_S)

    def lead_ins(self, rng: Random) -> list[int]:
        """Draw the number of calls before each of a block's bursts.

        If all were equal, work that is slow in every other call, say, could be recorded only in its
        fast calls, or only in its slow ones.
        """
        return [self.lead_in + rng.randint(0, self.more) for _ in range(self.bursts)]

    def within(self, most_calls: int) -> BurstPlan:
        """Return the plan with as many bursts as ``most_calls`` calls allow (0: any number)."""
        of_burst = self.lead_in + self.more + self.calls
        if not most_calls or self.blocks * self.bursts * of_burst <= most_calls:
            return self
        of_burst = min(of_burst, max(1, most_calls // LEAST_BURSTS))
        lead_in = min(self.lead_in, of_burst - 1)
        return BurstPlan(of_burst - lead_in, lead_in, max(2, most_calls // of_burst // 2), blocks=2)


def turns(call_s: float, burst_s: float, round_time_s: float) -> BurstPlan:
    """Return the plan of a round, given the slower side's time of a call in s.

    Both sides make the same number of calls. If bursts had a fixed time instead, calls of about
    that time could give one cold call on one side, and a cold and a warm call on the other.
    """
    call_s += SAMPLE_S
    fit = max(1, int(burst_s / call_s))
    lead_in = math.ceil(fit / LEAD_IN_PART) if call_s < LONG_CALL_S else 0
    calls = max(1, fit - lead_in)
    bursts = max(LEAST_BURSTS, math.ceil(round_time_s / (calls * call_s)))
    # blocks come in pairs, so that each side begins half of them
    pairs_of_blocks = min(math.ceil(bursts * calls * call_s / BLOCK_S / 2.0), bursts // 4)
    blocks = 2 * max(1, pairs_of_blocks)
    least = math.ceil(lead_in / 2)
    return BurstPlan(calls, least, math.ceil(bursts / blocks), blocks, more=2 * lead_in - least)


def long_turns(call_s: float) -> BurstPlan:
    """Return the plan of a round on a card at its power limit: turns ABBA, of over a second each.

    The card's control loop needs some 100 ms to fit the clock to the side whose turn it is.
    """
    call_s += SAMPLE_S
    lead_in, calls = (math.ceil(seconds / call_s) for seconds in (_LONG_LEAD_IN_S, _LONG_TURN_S))
    return BurstPlan(calls, lead_in, bursts=1, blocks=2)


def visiting_order(cases: Sequence[T], rng: Random) -> tuple[T, ...]:
    """Return one sweep over ``cases`` in an order drawn from ``rng``."""
    order = list(cases)
    rng.shuffle(order)
    return tuple(order)


def in_groups(
    cases: Iterable[T], group: Callable[[T], tuple[str, ...]]
) -> tuple[tuple[T, ...], ...]:
    """Return ``cases`` group by group, groups in the order of their first case."""
    groups: dict[tuple[str, ...], list[T]] = {}
    for case in cases:
        groups.setdefault(group(case), []).append(case)
    return tuple(map(tuple, groups.values()))


def starting_order(sides: Sequence[T], round_number: int) -> tuple[T, ...]:
    """Return the sides in the order in which their workers start: it alternates with the round."""
    return tuple(sides) if round_number % 2 else tuple(reversed(sides))


def block_order(sides: Sequence[T], block: int) -> tuple[T, ...]:
    """Return the sides in the order of their turns in a block (from 0): it alternates."""
    return tuple(reversed(sides)) if block % 2 else tuple(sides)


def least_rounds(rounds: int, compile_rounds: int, *, compiled: bool) -> int:
    """Return a case's minimum of rounds.

    A compiled case has ``compile_rounds`` with an empty compile cache, and ``rounds`` (at least 3)
    with a warm one.
    """
    return compile_rounds + max(rounds, 3) if compiled else rounds


def least_workers(measured: CaseRun, settings: MeasureSettings) -> int:
    """Return how many workers a case has on each side at least, unless its session is cut short."""
    compiled = measured.case.compiled
    return least_rounds(settings.rounds, settings.compile_rounds, compiled=compiled)


def is_whole(measured: CaseRun, settings: MeasureSettings) -> bool:
    """Return whether a case has its ``least_workers``."""
    return len(measured.workers) >= least_workers(measured, settings)
