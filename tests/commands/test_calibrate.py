"""A calibration on a simulated machine and clock, and how many shards it lets measure at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from msgspec import structs

from perfci.calibrate import Calibration
from perfci.calibrate.identical_sides import Pairs
from perfci.commands.calibrate import (
    CalibrationFacts,
    concluded,
)
from perfci.commands.calibrate_parts import CalibrationParts, RoundBlock
from perfci.config.loading import Config
from perfci.measure.machine.cores import CorePlan
from perfci.model.case import Case, Failure
from perfci.model.measuring import MeasureSettings, Quiet
from perfci.model.run import Environment, Side
from tests.verdict.identical import outputs
from tests.verdict.workers import case

CASES = tuple(case(f"b{n}", benchmark=f"b{n}") for n in range(3))
CORES = CorePlan((1,), (0,), 1)


class Machine:
    """Answers blocks at once; its clock moves by ``round_s`` a round."""

    def __init__(self, *, round_s: float = 1.0, spread: float = 0.005, deaf: bool = False) -> None:
        self.time = 0.0
        self.round_s = round_s
        self.spread = spread
        self.deaf = deaf
        self.noisy_without = ""
        self.breaks = ""
        self.interrupts = ""
        self.asked: list[tuple[str, tuple[str, ...], MeasureSettings, Quiet]] = []
        self._rng = Random(4)

    def clock(self) -> float:
        return self.time

    def measure(
        self, what: str, cases: Sequence[Case], settings: MeasureSettings, quiet: Quiet, end: float
    ) -> RoundBlock:
        self.asked.append((what, tuple(one.id for one in cases), settings, quiet))
        fit = int(max(0.0, end - self.time) / self.round_s / len(cases))
        rounds = min(settings.rounds, fit)
        self.time += rounds * self.round_s * len(cases)
        noise = self.spread
        if self.noisy_without and not getattr(quiet, self.noisy_without):
            noise *= 5.0
        slower = 1.0 if self.deaf else 1.0 + settings.inject.get("latency", 0.0)
        return RoundBlock(
            pairs=tuple(self._pairs(one, rounds, noise, slower) for one in cases),
            round_s={one.id: (self.round_s,) * rounds for one in cases if rounds},
            failures=tuple(
                Failure(one.id, "head", "setup", "RuntimeError", "boom")
                for one in cases
                if one.id == self.breaks
            ),
            rounds=rounds * len(cases),
            ended="interrupted" if what == self.interrupts else "done",
        )

    def _pairs(self, one: Case, rounds: int, noise: float, slower: float) -> Pairs:
        luck = [math.exp(self._rng.gauss(0.0, noise)) for _ in range(rounds)]
        base = [0.001] * rounds
        head = [0.001 * slower * each for each in luck]
        return Pairs(one, outputs(one.id, "base", base), outputs(one.id, "head", head))


def _run(
    machine: Machine,
    budget: float = 150.0,
    config: Config | None = None,
    cases: tuple[Case, ...] = CASES,
) -> tuple[CalibrationParts, Calibration]:
    config = config or Config()
    found = CalibrationParts(machine.measure, config, CORES, machine.clock, budget).run(cases)
    facts = CalibrationFacts(
        "now", Side("HEAD", "1" * 40, "python"), Environment("k", {}), 1.0, budget
    )
    return found, concluded(found, cases, facts)


def test_all_parts_fit_the_time_and_the_promise_is_kept() -> None:
    machine = Machine()
    _, calibration = _run(machine)
    assert machine.time <= 150.0
    assert calibration.promise.status == "kept"
    assert calibration.promise.found == calibration.promise.counted == 3
    assert calibration.untrusted == ()
    assert {row.case for row in calibration.seen} == {"b0", "b1", "b2"}
    assert calibration.spent.same_s > calibration.spent.promise_s > 0.0


def test_a_slow_down_that_never_shows_breaks_the_promise_and_the_calibration() -> None:
    _, calibration = _run(Machine(deaf=True))
    assert calibration.promise.status == "not_kept"
    assert any("promise" in doubt for doubt in calibration.untrusted)


def test_the_injected_slow_down_is_the_largest_that_was_promised() -> None:
    machine = Machine()
    _, calibration = _run(machine)
    largest = max(row.promised for row in calibration.seen)
    injected = [settings.inject for _, _, settings, _ in machine.asked if settings.inject]
    assert injected == [{"latency": largest}]
    assert calibration.promise.injected == largest


def test_each_setting_is_switched_off_alone_and_the_one_that_matters_is_found() -> None:
    machine = Machine()
    machine.noisy_without = "malloc"
    _, calibration = _run(machine, budget=1000.0)
    off = [
        {name for name in Quiet.__slots__ if not getattr(quiet, name)}
        for what, _, _, quiet in machine.asked
        if what.startswith("without")
    ]
    assert off == [{"malloc"}, {"pin"}, {"threads"}, {"gc"}, {"hash_seed"}]
    helped = {trial.setting: trial.helped for trial in calibration.settings}
    assert helped.pop("malloc") == "helps"
    assert "helps" not in helped.values()


def test_what_has_no_time_or_no_point_is_left_out_with_the_reason() -> None:
    config = structs.replace(Config(), quiet=replace(Quiet(), gc=False))
    _, calibration = _run(Machine(), budget=60.0, config=config)
    left = {one.setting: one.reason for one in calibration.settings if one.helped == "left_out"}
    assert "off in the configuration" in left["gc"]
    assert "budget" in left["hash_seed"]
    assert len(calibration.settings) == 5


def test_identical_sides_are_measured_before_and_after_the_settings() -> None:
    machine = Machine()
    found, _ = _run(machine, budget=300.0)
    order = [what for what, _, _, _ in machine.asked]
    assert order[0] == "identical sides"
    assert order.index("without malloc") < order.index("identical sides", 1)
    assert found.calibrated.seen[0].pairs > 12  # the first part's, and more after the settings


def test_a_spread_of_too_few_pairs_takes_time_from_the_settings() -> None:
    machine = Machine(round_s=3.0)
    five = tuple(case(f"b{n}", benchmark=f"b{n}") for n in range(5))
    found, _ = _run(machine, budget=165.0, cases=five)
    assert min(row.pairs for row in found.calibrated.seen) >= 5
    order = [what for what, _, _, _ in machine.asked]
    assert order[:2] == ["identical sides"] * 2


def test_promises_are_for_the_configured_session_not_for_the_calibration() -> None:
    few = structs.replace(Config(), settings=MeasureSettings(rounds=5, max_rounds=6))
    many = structs.replace(Config(), settings=MeasureSettings(rounds=9, max_rounds=40))
    seen = [_run(Machine(spread=0.02), 300.0, config)[1].seen[0] for config in (few, many)]
    assert seen[0].detectable > 1.5 * seen[1].detectable


def test_a_budget_that_cannot_reach_the_most_rounds_promises_less_and_says_so() -> None:
    config = structs.replace(Config(), settings=MeasureSettings(budget=18.0))
    found, calibration = _run(Machine(), config=config)
    assert found.session.most == 6
    assert any("6 rounds" in note for note in calibration.notes)


def test_too_little_time_is_no_calibration() -> None:
    _, calibration = _run(Machine(), budget=4.0)
    assert calibration.promise.status == "not_checked"
    assert any("--budget" in doubt for doubt in calibration.untrusted)
    assert any("62 % of the time" in doubt for doubt in calibration.untrusted)
    assert calibration.promise.reason.endswith("the last 4 s were kept for it")


def test_a_calibration_that_can_not_be_relied_on_suggests_nothing() -> None:
    few = structs.replace(Config(), settings=MeasureSettings(rounds=3, max_rounds=3))
    _, sound = _run(Machine(), config=few)
    assert [one.path for one in sound.suggestions] == [("max_rounds",)]
    _, unsound = _run(Machine(deaf=True), config=few)
    assert unsound.untrusted
    assert unsound.suggestions == ()


def test_a_case_that_fails_is_left_alone_and_the_others_go_on() -> None:
    machine = Machine()
    machine.breaks = "b1"
    _, calibration = _run(machine)
    assert {row.case for row in calibration.seen} == {"b0", "b2"}
    assert calibration.failures[0].case == "b1"
    assert all("b1" not in cases for _, cases, _, _ in machine.asked[1:])


def test_a_case_without_rounds_is_named() -> None:
    machine = Machine(round_s=60.0)
    _, calibration = _run(machine, cases=CASES)
    assert any("b0, b1, b2" in note and "--budget" in note for note in calibration.notes)


def test_an_interrupt_ends_it_and_is_not_relied_on() -> None:
    machine = Machine()
    machine.interrupts = "without malloc"
    _, calibration = _run(machine)
    assert [what for what, _, _, _ in machine.asked] == ["identical sides", "without malloc"]
    assert calibration.seen
    assert "interrupted before the end" in calibration.untrusted


def test_a_compiled_case_costs_one_compile_a_side_and_is_no_case_for_settings() -> None:
    machine = Machine()
    compiled = case("c", benchmark="c", compiled=True)
    _run(machine, cases=(compiled, *CASES))
    assert {settings.compile_rounds for _, _, settings, _ in machine.asked} == {1}
    order = [(what, "c" in cases) for what, cases, _, _ in machine.asked]
    assert order[:2] == [("identical sides", False), ("identical sides", True)]
    assert _run(Machine(), cases=(compiled,))[1].seen
    tried = next(cases for what, cases, _, _ in machine.asked if what.startswith("without"))
    assert "c" not in tried
