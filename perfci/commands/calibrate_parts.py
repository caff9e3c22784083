"""The parts of a calibration, measured one after the other, each in its share of the time."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from perfci.calibrate import Promise, SettingTrial
from perfci.calibrate.identical_sides import Calibrated, Pairs, calibrate, judge_setting
from perfci.calibrate.promise import (
    PROMISED_METRIC,
    PromiseCandidate,
    PromisePlan,
    SessionRounds,
    judge_promise,
    not_checked,
    plan_promise,
)
from perfci.config.loading import Config
from perfci.measure.machine.cores import CorePlan
from perfci.measure.plan import SessionPlan
from perfci.measure.progress import Progress
from perfci.measure.session import measure_cases
from perfci.measure.workplace import Workplace
from perfci.model.case import Case, Failure
from perfci.model.measuring import MeasureSettings, Quiet
from perfci.stats.quantile import median
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.caveats import rounds_to_believe

FIRST_END, KNOWN_END, SETTINGS_END, SAME_END = 0.36, 0.48, 0.58, 0.62
"""The ends of the steps, as shares of the time.

Identical sides get the first 36 %. Compiled cases, and cases with too few pairs, are measured as
identical sides until ``KNOWN_END``, which takes time from the settings. The settings end at 58 %.
Identical sides get 4 % more, and the promise gets the rest.
"""
_FIRST_ROUNDS = 12
"""Most rounds of identical sides in their first step."""
_LEAST_PAIRS = 5
"""Cases with fewer pairs are measured again before the settings."""
_MORE_ROUNDS = 8
"""Most rounds of identical sides in their last step."""
_CONCURRENT_START = 0.5
"""At best, two starters at once take half of the time that they take one after the other."""
_FILLED_SHARE = 0.8
"""Share of the time left that a promise's test is planned to take.

The rest is a margin: a test that lacks one round shows nothing.
"""
TRIED = ("malloc", "pin", "threads", "gc", "hash_seed")
"""Settings in the order of their trials, the most important first."""
_TRIAL_ROUNDS = (4, 10)
"""Least and most rounds of a trial."""
_TRIAL_CASES = 3
"""Least cases of a trial, where there are as many.

Four rounds of three cases leave 9 degrees of freedom: enough to see a spread double.
"""


@dataclass(slots=True)
class CalibrationParts:
    """Measures the parts once. ``end`` is a time of ``clock``.

    ``scale`` is the number of cases in a full session divided by the number measured here. Promises
    are scaled by it. ``run`` sets the other fields to what it found, and ``part_s`` to the time
    that each part took. ``_round_s`` has the time of a case's usual round. ``_starting_s`` and
    ``_at_once_s`` are the time that starters add to a sweep, with identical sides and in trials.
    """

    measure: MeasureBlock
    config: Config
    cores: CorePlan
    clock: Callable[[], float]
    end: float
    scale: float = 1.0
    calibrated: Calibrated = field(init=False)
    session: SessionRounds = field(init=False)
    settings: tuple[SettingTrial, ...] = field(init=False)
    promise: Promise = field(init=False)
    failures: list[Failure] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    part_s: dict[str, float] = field(default_factory=dict)
    rounds: int = 0
    interrupted: bool = False
    _round_s: dict[str, float] = field(default_factory=dict)
    _pairs: dict[str, Pairs] = field(default_factory=dict)
    _starting_s: float = 0.0
    _at_once_s: float = 0.0

    def run(self, cases: Sequence[Case]) -> CalibrationParts:
        """Measure everything that the time allows, and return this with what was found."""
        began = self.clock()

        def until(share: float) -> float:
            return began + share * (self.end - began)

        eager = [case for case in cases if not case.compiled]
        self._same(eager or cases, _FIRST_ROUNDS, until(FIRST_END))  # compiled cases follow
        few = [case for case in self._alive(cases) if self._count(case) < _LEAST_PAIRS]
        lacking = _LEAST_PAIRS - min(map(self._count, few), default=_LEAST_PAIRS)
        self._same(few, lacking, until(KNOWN_END))
        without, left_out = self._without(self._alive(cases), until(SETTINGS_END))
        self._same(self._alive(cases), _MORE_ROUNDS, until(SAME_END))
        broken = {failure.case for failure in self.failures}
        sound = {case: pairs for case, pairs in self._pairs.items() if case not in broken}
        self.session = self._promised_rounds()
        policy = self.config.policy
        self.calibrated = calibrate(tuple(sound.values()), policy, self.session, self.scale)
        trials = tuple(judge_setting(name, sound, pairs) for name, pairs in without)
        self.settings = (*trials, *left_out)
        self.promise = self._test_promise(self._alive(cases))
        return self

    @property
    def sweep_s(self) -> float:
        """Return how long a round of every case takes, in s."""
        return self._starting_s + sum(self._round_s.values())

    def _same(self, cases: Sequence[Case], rounds: int, end: float) -> None:
        """Measure identical sides until ``end``. Keep the pairs and the time of a round."""
        block = self._block("identical sides", "same", cases, rounds, self.config.quiet, end)
        for pairs in block.pairs:
            before = self._pairs.get(pairs.case.id)
            self._pairs[pairs.case.id] = _joined(before, pairs) if before else pairs
        for case, times in block.round_s.items():
            # without the first round, which compiles and reads files
            self._round_s.setdefault(case, median(times[1:] or times))
        self._starting_s = max(self._starting_s, _starting_s(block))

    def _count(self, case: Case) -> int:
        pairs = self._pairs.get(case.id)
        return len(pairs.log_ratios(PROMISED_METRIC)) if pairs else 0

    def _promised_rounds(self) -> SessionRounds:
        """Return the rounds of the promised session, which its budget may limit."""
        settings = self.config.settings
        affordable = int(settings.budget / self.sweep_s) if self.sweep_s else settings.max_rounds
        most = max(settings.rounds, min(settings.max_rounds, affordable))
        return SessionRounds(settings.rounds, most)

    def _without(
        self, cases: Sequence[Case], end: float
    ) -> tuple[list[tuple[str, tuple[Pairs, ...]]], tuple[SettingTrial, ...]]:
        """Switch off settings in turn. Return the pairs by setting, and the settings left out."""
        left_s = max(0.0, end - self.clock())
        # each case's share of the starters' time
        share_s = self._starting_s / max(1, len(self._round_s))
        round_s = {case: own_s + share_s for case, own_s in self._round_s.items()}
        plan = plan_trials(cases, round_s, self.config.quiet, self.cores, left_s)
        measured = []
        for index, setting in enumerate(plan.settings):
            share = max(0.0, end - self.clock()) / (len(plan.settings) - index)
            block = self._block(
                f"without {setting}",
                "settings",
                plan.cases,
                plan.rounds,
                replace(self.config.quiet, **{setting: False}),
                self.clock() + share,
            )
            measured.append((setting, block.pairs))
            self._at_once_s = max(self._at_once_s, _starting_s(block))
        return measured, plan.left_out

    def _test_promise(self, cases: Sequence[Case]) -> Promise:
        """Return whether a slow-down of the promised size is found, or why that isn't tested."""
        alpha = self.config.policy.alpha / max(1, self.calibrated.comparisons)
        known = {case.id: case for case in cases}
        candidates = [
            PromiseCandidate(row.case, row.promised, row.spread_hi, self._round_s[row.case])
            for row in self.calibrated.seen
            if row.metric == PROMISED_METRIC
            and row.case in known
            and row.modes is None
            and row.promised is not None
            and row.spread_hi
        ]
        if self.interrupted:
            return not_checked("interrupted")
        left_s = max(0.0, self.end - self.clock())
        if not candidates:
            return not_checked(
                "no benchmark with one mode and a known spread; "
                f"the last {left_s:.0f} s were kept for it"
            )
        believed = rounds_to_believe(self.calibrated.comparisons, self.config.policy.alpha)
        fits = partial(plan_promise, candidates, alpha, least=believed)
        # without the margin, a test may not end in time: still better than no test, as nothing else
        # needs the time
        plan = fits(_FILLED_SHARE * left_s, starting_s=self._at_once_s or self._starting_s) or fits(
            left_s, starting_s=_CONCURRENT_START * self._starting_s
        )
        if plan is None:
            return not_checked(f"its rounds don't fit the {left_s:.0f} s left; raise --budget")
        return self._keep(plan, [known[case] for case in plan.needed], alpha)

    def _keep(self, plan: PromisePlan, cases: Sequence[Case], alpha: float) -> Promise:
        """Carry out the planned test, and return whether the promise was kept."""
        block = self._block(
            f"slowed by {plan.injected:.1%}",
            "promise",
            cases,
            plan.rounds,
            self.config.quiet,
            self.end,
            slow_down=plan.injected,
        )
        rows = {
            row.case: row
            for pairs in block.pairs
            for row in compare_case(
                pairs.case, pairs.base, pairs.head, self.config.policy, paired=True
            )
            if row.metric == PROMISED_METRIC
        }
        return judge_promise(plan, rows, alpha)

    def _block(
        self,
        what: str,
        part: str,
        cases: Sequence[Case],
        rounds: int,
        quiet: Quiet,
        end: float,
        *,
        slow_down: float = 0.0,
    ) -> RoundBlock:
        """Measure one block until ``end``, and add up what it took. Empty without time or cases."""
        began = self.clock()
        if self.interrupted or not cases or began >= end:
            return RoundBlock(())
        cold_starts = None if part == "same" else 0
        settings = replace(
            self.config.settings,
            rounds=rounds,
            max_rounds=rounds,
            compile_rounds=1,
            cold_start_rounds=cold_starts,
        )
        if slow_down:
            settings = replace(settings, inject={"latency": slow_down})
        block = self.measure(what, cases, settings, quiet, end)
        self.part_s[part] = self.part_s.get(part, 0.0) + self.clock() - began
        self.failures += block.failures
        self.notes |= dict.fromkeys(block.notes)
        self.rounds += block.rounds
        self.interrupted = block.ended in {"interrupted", "outside"}
        return block

    def _alive(self, cases: Sequence[Case]) -> list[Case]:
        broken = {failure.case for failure in self.failures}
        return [case for case in cases if case.id not in broken]


def _starting_s(block: RoundBlock) -> float:
    """Return how much longer than its cases' usual rounds a sweep takes, in s.

    A sweep is one round of every case. Starters are started in one of its rounds.
    """
    beyond = sum(sum(times) - median(times) * len(times) for times in block.round_s.values())
    return max(0.0, beyond / max(map(len, block.round_s.values()), default=1))


def _joined(first: Pairs, second: Pairs) -> Pairs:
    """Return the pairs of both blocks. The second block's round numbers follow the first's."""
    last = max((output.round for output in (*first.base, *first.head)), default=0)
    later = [
        tuple(replace(output, round=output.round + last) for output in side)
        for side in (second.base, second.head)
    ]
    return Pairs(first.case, (*first.base, *later[0]), (*first.head, *later[1]))


@dataclass(frozen=True, slots=True)
class RoundBlock:
    """The result of one block of rounds. ``round_s`` has the time of each round by case."""

    pairs: tuple[Pairs, ...]
    round_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    rounds: int = 0
    ended: str = "done"
    notes: tuple[str, ...] = ()


MeasureBlock = Callable[[str, Sequence[Case], MeasureSettings, Quiet, float], RoundBlock]
"""Measures one block of rounds.

The arguments are its purpose in words, the cases, the settings, the quiet settings, and the time at
which it ends.
"""


def in_workplace(workplace: Workplace, end: float) -> MeasureBlock:
    """Return a function that measures blocks in ``workplace``, all of them until ``end``."""
    done = 0

    def measure(
        what: str,
        cases: Sequence[Case],
        settings: MeasureSettings,
        quiet: Quiet,
        block_end: float,
    ) -> RoundBlock:
        nonlocal done
        watch = _BlockProgress(workplace, what, done, end)
        plan = workplace.plan
        cores = plan.cores if quiet.pin else CorePlan((), (), plan.cores.threads)
        changed = replace(
            workplace,
            plan=replace(
                plan,
                config=structs.replace(plan.config, settings=settings, quiet=quiet),
                cores=cores,
            ),
            budget_end=min(block_end, end),
            shown=replace(workplace.shown, progress=watch),
        )
        with _where_it_may_run(plan, pinned=quiet.pin):
            result = measure_cases(changed, cases)
        done += result.rounds
        return RoundBlock(
            pairs=tuple(
                Pairs(state.case, tuple(state.outputs["base"]), tuple(state.outputs["head"]))
                for state in result.states
            ),
            round_s=watch.finished(),
            failures=tuple(failure for state in result.states for failure in state.failures),
            rounds=result.rounds,
            ended=result.ended,
            notes=tuple(note for note in result.notes if result.ended in {"done", "outside"}),
        )

    return measure


class _BlockProgress:
    """Shows progress in the whole calibration's terms, and notes how long each round took."""

    def __init__(self, workplace: Workplace, what: str, done: int, end: float) -> None:
        self._shown = workplace.shown
        self._clock = workplace.executor.now
        self._what = what
        self._done = done
        self._started = workplace.started
        self._end = end
        self._rounds: dict[str, list[float]] = {}
        self._open: tuple[str, float] | None = None

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        self._close(now)
        self._open = (progress.case, now)
        self._shown.progress(
            replace(
                progress,
                case=f"{self._what}: {progress.case}",
                done=self._done + progress.done,
                planned=self._done + progress.planned,
                elapsed_s=now - self._started,
                remaining=lambda: max(0.0, self._end - now),
                provisional=(),
            )
        )

    def finished(self) -> dict[str, tuple[float, ...]]:
        self._close(self._clock())
        return {case: tuple(times) for case, times in self._rounds.items()}

    def _close(self, now: float) -> None:
        if self._open is not None:
            case, began = self._open
            self._rounds.setdefault(case, []).append(now - began)
            self._open = None


@contextmanager
def _where_it_may_run(plan: SessionPlan, *, pinned: bool) -> Iterator[None]:
    """Let this process use all of the session's cores while workers aren't pinned.

    Such workers inherit this process's cores. Otherwise this process keeps to a few of them.
    """
    before = os.sched_getaffinity(0)
    if not pinned and plan.cores.workers:
        os.sched_setaffinity(0, {*plan.cores.workers, *plan.cores.parent})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """The settings to switch off in turn, the cases for that, and the settings left out."""

    settings: tuple[str, ...]
    cases: tuple[Case, ...]
    rounds: int
    left_out: tuple[SettingTrial, ...]


def plan_trials(
    cases: Sequence[Case],
    round_s: Mapping[str, float],
    quiet: Quiet,
    cores: CorePlan,
    time_s: float,
) -> TrialPlan:
    """Choose trials that fit ``time_s``: leave out cases first, then settings.

    Eager cases of different benchmarks are kept longest, because they show soonest what a setting
    does.
    """
    able, left_out = [], []
    for setting in TRIED:
        why = _pointless(setting, quiet, cores)
        if why:
            left_out.append(SettingTrial(setting, "left_out", reason=why))
        else:
            able.append(setting)
    chosen = list(_ordered(cases))
    rounds, most = _TRIAL_ROUNDS

    def takes(count: int) -> float:
        return count * rounds * sum(round_s.get(case.id, math.inf) for case in chosen)

    while len(chosen) > _TRIAL_CASES and takes(len(able)) > time_s:
        chosen.pop()
    while able and takes(len(able)) > time_s:
        why = "no time for it; a larger --budget has"
        left_out.append(SettingTrial(able.pop(), "left_out", reason=why))
    if able and chosen:
        rounds = min(most, math.floor(time_s / (takes(len(able)) / rounds)))
    return TrialPlan(tuple(able), tuple(chosen), rounds, tuple(left_out))


def _pointless(setting: str, quiet: Quiet, cores: CorePlan) -> str:
    """Return why a trial of ``setting`` would show nothing, or an empty text."""
    if not getattr(quiet, setting):
        return "off in the configuration"
    if setting == "pin" and not cores.parent:
        return "workers have every core anyway"
    return ""


def _ordered(cases: Sequence[Case]) -> Sequence[Case]:
    """Return eager cases first, and each benchmark's first case before any second one."""
    counts: Counter[str] = Counter()
    ranked = []
    for index, case in enumerate(cases):
        counts[case.benchmark] += 1
        ranked.append((case.compiled, counts[case.benchmark], index))
    return [cases[index] for _, _, index in sorted(ranked)]
