"""Fork servers: the processes that fork a benchmark file's workers, one for both sides or one each.

A fork server of both sides imports the libraries that both sides' benchmark files ask for. It runs
no code that a side runs before, and such code could change what an import does, so this module
checks that the imports come out the same. Otherwise each side has a fork server, which imports the
side's benchmark file. If that can't fork, each worker is a fresh process.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence

from perfci.finding import Finding, finding
from perfci.measure.executor import ForkServer, OpenServers, ServerImports
from perfci.measure.plan import SidePlan
from perfci.measure.progress import CaseState
from perfci.measure.selection import starting_order
from perfci.measure.workers import Launch
from perfci.measure.workplace import Workplace
from perfci.model.case import Case
from perfci.model.words import words
from perfci.model.worker import Discovery, FileImports, WorkOrder
from perfci.worker.imports import DYNAMO, INDUCTOR

_MOST_OPEN = 4
"""Most groups of which fork servers are kept. Each holds what its benchmark file imports."""
_WITH_COMPILER, _SHARED, _OF_EACH_SIDE, _FRESH = range(4)
"""Ways to start workers, the best first: forked from a process of both sides that has imported the
compiler, where cases need it, or that hasn't, or forked from a process of each side, or afresh."""
_WAYS = {
    _SHARED: "each worker imports the compiler itself",
    _OF_EACH_SIDE: "no common fork server",
    _FRESH: "workers start afresh",
}
_HARNESS = "perfci"
_BY_INDUCTOR = frozenset(
    {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "inductor"}
)
"""Values of the axes ``mode`` and ``backend`` with which torch compiles by Inductor."""


class ForkServers:
    """Opens the processes that fork workers, each file's in the best way that its imports allow.

    ``_ways`` has the files that the best way failed for, each with its way and the reason.
    ``_learned`` has, by case, the modules of the compiler that its first call imports. ``_open``
    has what was opened by group and phase, the last used at the end. ``opened`` counts the groups.
    """

    def __init__(self, workplace: Workplace) -> None:
        self.opened = 0
        self._workplace = workplace
        self._plan = workplace.plan
        self._discovered = {side.name: side.discovery for side in workplace.plan.sides}
        self._quiet = workplace.plan.config.quiet
        self._settings = workplace.plan.config.settings
        self._ways: dict[str, tuple[int, Finding]] = {}
        self._learned: dict[str, tuple[str, ...]] = {}
        self._open: dict[tuple[tuple[str, ...], bool], OpenServers] = {}

    def of(self, case: Case, *, later: bool) -> OpenServers | None:
        """Return what forks the workers of ``case``, or None if each has to be a fresh process.

        The least rounds of a group's cases come from one process, and ``later`` ones from a second,
        so that a state which all forks of the first one share can show. Both sides start alike: a
        forked worker next to a fresh one would compare the ways to start. Raises BudgetEnded.
        """
        while self._quiet.fork and self._way_of(case.file) < _FRESH:
            key = self.group_of(case), later
            known = self._open.pop(key, None)
            if known and not known.alive():
                known.close()
                known = None
            while not known and len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            if opened := known or self._opened(case):
                self._open[key] = opened
                return opened
        return None

    def _way_of(self, file: str) -> int:
        return self._ways[file][0] if file in self._ways else _WITH_COMPILER

    def _opened(self, case: Case) -> OpenServers | None:
        """Open fork servers in the file's way. If they are unfit, refuse them and return None."""
        plan = self._plan
        starts: list[tuple[Sequence[SidePlan], WorkOrder, Launch]]
        shared = self._way_of(case.file) < _OF_EACH_SIDE
        if shared:
            preload = self._preload_of(case)
            if isinstance(preload, Finding):
                self._take(case.file, _OF_EACH_SIDE, preload)
                return None
            order = plan.server_order(preload, self._compiler_of(case))
            starts = [(plan.sides, order, plan.server_launch())]
        else:
            sides = starting_order(plan.sides, self.opened)
            starts = [([s], plan.side_server_order(s, (case,)), plan.launch(s)) for s in sides]
        self.opened += 1
        servers: dict[str, ForkServer] = {}
        opened = OpenServers(servers, server=self.opened if shared else 0)
        try:
            for forked_sides, order, launch in starts:
                server = self._workplace.executor.fork_server(
                    order, launch, budget_end=self._workplace.budget_end
                )
                servers.update((side.name, server) for side in forked_sides)
                if why := self._unfit_reason(server, case.file):
                    opened.close()
                    self.refuse(case, why)
                    return None
        except BaseException:
            opened.close()
            raise
        return opened

    def _unfit_reason(self, server: ForkServer, file: str) -> Finding | None:
        """Wait until ``server`` has imported. Return why it can't fork the file's workers."""
        importlib.import_module("scipy.special")  # the first verdict needs it, and it takes 0.4 s
        if unfit := server.imported(self._settings.timeout):
            return finding("server-unfit", message=unfit)
        if server.preloaded is None:
            return None
        return unlike_reason(server.preloaded, self._discovered, file, self._plan.owner)

    def group_of(self, case: Case) -> tuple[str, ...]:
        """Return the benchmark file of ``case``, and what else its fork server imports.

        Cases of the same group share a fork server.
        """
        return (case.file, *self._compiler_of(case))

    def refuse(self, case: Case, why: Finding) -> None:
        """Start the workers of the file of ``case`` in the next way from now on."""
        way = max(self._way_of(case.file), _SHARED) + 1
        self._take(case.file, _SHARED if self._compiler_of(case) else way, why)

    def _take(self, file: str, way: int, why: Finding) -> None:
        self._ways[file] = way, why
        for key in [key for key in self._open if key[0][0] == file]:
            self._open.pop(key).close()
        self._workplace.journal.note(f"{file}: {_WAYS[way]}: {words(why)}")

    def _compiler_of(self, case: Case) -> tuple[str, ...]:
        if not self._quiet.fork or self._way_of(case.file) > _WITH_COMPILER:
            return ()
        return self._learned.get(case.id, compiler_of(case))

    def learn(self, states: Sequence[CaseState]) -> None:
        """Learn from what was measured which cases' first calls import the compiler.

        A case is learned once it has no more rounds with an empty compile cache: in those rounds
        the import counts as part of the first call.
        """
        for state in states:
            cold = state.cold_rounds(self._settings.compile_rounds)
            if state.rounds < cold or not all(state.outputs.values()):
                continue
            seen = (
                compiler_in([output.values for output in outputs])
                for outputs in state.outputs.values()
            )
            self._learned.setdefault(state.case.id, compiler_of(state.case) or min(seen, key=len))

    def close(self) -> None:
        """End all processes that fork workers."""
        while self._open:
            self._open.popitem()[1].close()

    def _preload_of(self, case: Case) -> tuple[str, ...] | Finding:
        if len({side.python for side in self._plan.sides}) > 1:
            return finding("server-python")
        return preload_of(self._discovered, case.file)

    def notes(self) -> tuple[str, ...]:
        """Return what the report should say of files whose workers were not forked as usual."""
        texts = {
            _FRESH: "each worker imported it afresh",
            _OF_EACH_SIDE: "each side imported its libraries by itself",
        }
        return tuple(
            f"{file}: {texts[way]}, which takes longer: {words(why)}."
            for file, (way, why) in sorted(self._ways.items(), key=lambda item: -item[1][0])
            if way in texts
        )


def preload_of(discovered: Mapping[str, Discovery], file: str) -> tuple[str, ...] | Finding:
    """Return the modules that the fork server of ``file`` imports, or why it can't have one.

    ``discovered`` is by side. ``file`` is relative to the side's tree.
    """
    sides = list(discovered.values())
    for name in ("devices", "metrics"):
        if any(getattr(side, name) != getattr(sides[0], name) for side in sides):
            return finding("server-plugins", what=name)
    imports = {name: discovery.imports.get(file) for name, discovery in discovered.items()}
    for side, did in imports.items():
        if did is None:
            return finding("server-unknown", side=side)
    module_sets = [set(did.modules) for did in imports.values() if did]
    first = next(did for did in imports.values() if did)
    return tuple(
        name
        for name in first.modules
        if name.partition(".")[0] != _HARNESS
        and all(name in names for names in module_sets)
        and len({discovery.modules.get(name) for discovery in sides}) == 1
    )


def compiler_of(case: Case) -> tuple[str, ...]:
    """Return the modules of torch's compiler that the first call of ``case`` will import.

    Empty if its axes don't say. Then a worker's values do (``compiler_in``).
    """
    modes = {case.axes[axis] for axis in ("mode", "backend") if axis in case.axes}
    if modes & _BY_INDUCTOR:
        return DYNAMO, INDUCTOR
    return (DYNAMO,) if any(mode.startswith("backend:") for mode in modes) else ()


def compiler_in(workers: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Return the modules of torch's compiler that a side's workers with these values used.

    Generated kernels show only in rounds with an empty compile cache.
    """
    if any(values.get("generated_kernels") for values in workers):
        return DYNAMO, INDUCTOR
    return (DYNAMO,) if any(values.get("captured_calls") for values in workers) else ()


def unlike_reason(
    preloaded: ServerImports,
    discovered: Mapping[str, Discovery],
    file: str,
    owner: Callable[[str], str] = lambda _: "",
) -> Finding | None:
    """Return how a fork server differs from a fresh process after the same imports, or None.

    ``owner`` returns the side that would import a package of that name from its own tree, or "".
    """
    if preloaded.failed:
        return finding("server-failed", message=preloaded.failed)
    for package in (*preloaded.compiler, *preloaded.missing):
        if side := owner(package):
            return finding("server-module", side=side, module=package)
    for side, preloads in discovered.items():
        for name, place in preloaded.modules.items():
            if name.partition(".")[0] != _HARNESS and preloads.modules.get(name) != place:
                return finding("server-module", side=side, module=name)
        did = preloads.imports.get(file, FileImports())
        for change in did.environment:
            if file and change not in preloaded.imports.environment:
                return finding("server-environment", side=side, variable=change.partition("=")[0])
    return None
