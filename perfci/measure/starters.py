"""The processes that fork a sweep's workers: one ancestor of both sides, or a starter per side.

If both sides import the same libraries in the same way, there is an ancestor. It imports the
libraries that both sides' benchmark files ask for, but runs none of the code that a side runs
before. Such code could change what an import does, so this module checks that the imports come out
the same. Otherwise each side has a starter. If a starter can't fork, each worker is a fresh
process.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from perfci.finding import Finding, finding
from perfci.measure.executor import AncestorImports, OpenStarters, Starter
from perfci.measure.progress import CaseState
from perfci.measure.selection import starting_order
from perfci.measure.workplace import Workplace
from perfci.model.case import Case
from perfci.model.words import words
from perfci.model.worker import Discovery, FileImports
from perfci.worker.imports import DYNAMO, INDUCTOR

_HARNESS = "perfci"
_BY_INDUCTOR = frozenset(
    {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "inductor"}
)
"""Values of the axes ``mode`` and ``backend`` with which torch compiles by Inductor."""


class Starters:
    """Opens ancestors and starters, and remembers the files whose imports don't allow them.

    By file, ``_unfit`` has the reason against starters, and ``_unshared`` that against ancestors.
    Ancestors of the files ``_uncompiled`` don't import the compiler. ``_learned`` has, by case, the
    modules of the compiler that its first call imports. ``_prepared`` are ancestors that import
    ahead, each with its group.
    """

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._plan = workplace.plan
        self._quiet = workplace.plan.config.quiet
        self._settings = workplace.plan.config.settings
        self._unfit: dict[str, str] = {}
        self._unshared: dict[str, Finding] = {}
        self._uncompiled: set[str] = set()
        self._learned: dict[str, tuple[str, ...]] = {}
        self._ancestors = 0
        self._prepared: list[tuple[tuple[str, ...], Starter]] = []
        self._following: Sequence[Sequence[Case]] = ()

    @contextmanager
    def serving(
        self,
        cases: Sequence[Case],
        sweep: int,
        *,
        following: Sequence[Sequence[Case]] = (),
    ) -> Iterator[OpenStarters | None]:
        """Yield what forks the workers of ``cases``, or None if each has to be a fresh process.

        ``cases`` belong to one group. Both sides start alike: a forked worker next to a fresh one
        would compare the ways to start. ``following`` are the cases of the next ancestors, which
        start on the parent's idle cores, one after the other. Raises BudgetEnded.
        """
        file = cases[0].file
        self._following = ()
        if not self._quiet.fork or file in self._unfit:
            yield None
            return
        with ExitStack() as stack:
            ancestor = self._ancestor_of(cases, stack)
            if ancestor is None:
                yield self._starters_of(cases, sweep, stack)
                return
            self._ancestors += 1
            self._following = following
            yield OpenStarters(
                {side.name: ancestor for side in self._plan.sides},
                ancestor=self._ancestors,
                meanwhile=self._prepare,
            )

    def _prepare(self) -> None:
        """Start one more of the ancestors that follow, on the parent's idle cores.

        It starts when the ancestors before it have imported: two at once would prolong each other's
        start, which is part of cold start. The number of threads must be fixed: otherwise the
        ancestor would derive it from the cores that it starts on.
        """
        if not (self._plan.cores.parent and self._quiet.threads):
            return
        if not all(starter.has_imported() for _, starter in self._prepared):
            return
        unused, missing = list(self._prepared), []
        for cases in self._following:
            group = self.group_of(cases[0])
            if there := next((prepared for prepared in unused if prepared[0] == group), None):
                unused.remove(there)
            else:
                missing.append(cases)
        self._close(unused)
        for cases in missing[:1]:
            preload = self._preload_of(cases)
            if cases[0].file in self._unfit or isinstance(preload, Finding):
                return
            starter = self._ancestor(cases[0], preload, self._plan.cores.parent)
            self._prepared.append((self.group_of(cases[0]), starter))

    def _ancestor(self, case: Case, preload: Sequence[str], cores: tuple[int, ...] = ()) -> Starter:
        launch = self._plan.ancestor_launch()
        return self._workplace.executor.starter(
            self._plan.ancestor_order(preload, self._compiler_of(case)),
            replace(launch, affinity=cores or launch.affinity),
            budget_end=self._workplace.budget_end,
        )

    def group_of(self, case: Case) -> tuple[str, ...]:
        """Return the benchmark file of ``case``, and what else its ancestor imports.

        Cases of the same group share an ancestor.
        """
        return (case.file, *self._compiler_of(case))

    def refuse(self, case: Case, why: Finding) -> None:
        """Give the file of ``case`` no more such ancestors.

        If the ancestor was to import the compiler, the next one doesn't. Otherwise each side gets a
        starter of its own.
        """
        if not self._compiler_of(case):
            self._unshare(case.file, why)
            return
        self._uncompiled.add(case.file)
        self._close_of(case.file)
        self._workplace.journal.note(
            f"{case.file}: each worker imports the compiler itself: {words(why)}"
        )

    def _unshare(self, file: str, why: Finding) -> None:
        """Give the sides of ``file`` starters of their own from now on."""
        self._unshared[file] = why
        self._close_of(file)
        self._workplace.journal.note(f"{file}: no common ancestor: {words(why)}")

    def _compiler_of(self, case: Case) -> tuple[str, ...]:
        if any(case.file in files for files in (self._unfit, self._unshared, self._uncompiled)):
            return ()
        return self._learned.get(case.id, compiler_of(case)) if self._quiet.fork else ()

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
        """End the prepared ancestors that weren't used."""
        self._close(self._prepared)

    def _close_of(self, file: str) -> None:
        self._close([prepared for prepared in self._prepared if prepared[0][0] == file])

    def _close(self, prepared: Sequence[tuple[tuple[str, ...], Starter]]) -> None:
        for ancestor in tuple(prepared):
            self._prepared.remove(ancestor)
            ancestor[1].close()

    def _ancestor_of(self, cases: Sequence[Case], stack: ExitStack) -> Starter | None:
        """Return a living ancestor, which ``stack`` ends, or None if there can't be one.

        It waits until the ancestor has imported. Only then may the next one start: at the same time
        both would take longer, and a session of one round doesn't need a second ancestor.
        """
        file = _imported_file(cases)
        preload = self._preload_of(cases)
        if isinstance(preload, Finding):
            if cases[0].file not in self._unshared:
                self._unshare(cases[0].file, preload)
            return None
        group = self.group_of(cases[0])
        ready = next((prepared for prepared in self._prepared if prepared[0] == group), None)
        if ready:
            self._prepared.remove(ready)
            starter = ready[1]
        else:
            starter = self._ancestor(cases[0], preload)
        stack.callback(starter.close)
        importlib.import_module("scipy.special")  # the first verdict needs it, and it takes 0.4 s
        unfit = self._imported(starter)
        why = finding("ancestor-unfit", message=unfit) if unfit else None
        if not why and starter.preloaded:
            why = unlike_reason(starter.preloaded, self._plan.discovered, file, self._plan.owner)
        if why:
            stack.pop_all().close()
            self.refuse(cases[0], why)
            return self._ancestor_of(cases, stack)
        return starter

    def _preload_of(self, cases: Sequence[Case]) -> tuple[str, ...] | Finding:
        if why := self._unshared.get(cases[0].file):
            return why
        if len({side.python for side in self._plan.sides}) > 1:
            return finding("ancestor-python")
        return preload_of(self._plan.discovered, _imported_file(cases))

    def _starters_of(
        self, cases: Sequence[Case], sweep: int, stack: ExitStack
    ) -> OpenStarters | None:
        starters: dict[str, Starter] = {}
        for side in starting_order(self._plan.sides, sweep):
            starter = self._workplace.executor.starter(
                self._plan.starter_order(side, cases),
                self._plan.launch(side),
                budget_end=self._workplace.budget_end,
            )
            stack.callback(starter.close)
            starters[side.name] = starter
            if unfit := self._imported(starter):
                file = cases[0].file
                self._unfit[file] = unfit
                self._workplace.journal.note(f"{file}: workers start afresh: {unfit}")
                stack.pop_all().close()
                return None
        return OpenStarters(starters)

    def _imported(self, starter: Starter) -> str:
        """Wait until ``starter`` has imported. Return why it can't fork, or ""."""
        if unfit := starter.imported(self._settings.timeout):
            return unfit
        if self._plan.cores.workers:
            starter.move(self._plan.cores.workers)
        return ""

    def notes(self) -> tuple[str, ...]:
        """Return what the report should say of files whose workers were not forked as usual."""
        afresh = (
            f"{file}: each worker imported it afresh, which takes longer: {reason}."
            for file, reason in sorted(self._unfit.items())
        )
        apart = (
            f"{file}: each side imported its libraries by itself, which takes longer: {words(why)}."
            for file, why in sorted(self._unshared.items())
            if file not in self._unfit
        )
        return (*afresh, *apart)


def _imported_file(cases: Sequence[Case]) -> str:
    """Return the benchmark file that workers of ``cases`` import."""
    return next((case.file for case in cases), "")


def preload_of(discovered: Mapping[str, Discovery], file: str) -> tuple[str, ...] | Finding:
    """Return the modules that an ancestor of ``file``'s workers imports, or why there can't be one.

    ``discovered`` is by side. ``file`` is relative to the side's tree.
    """
    sides = list(discovered.values())
    for name in ("devices", "metrics"):
        if any(getattr(side, name) != getattr(sides[0], name) for side in sides):
            return finding("ancestor-plugins", what=name)
    imports = {name: discovery.imports.get(file) for name, discovery in discovered.items()}
    for side, did in imports.items():
        if did is None:
            return finding("ancestor-unknown", side=side)
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
    preloaded: AncestorImports,
    discovered: Mapping[str, Discovery],
    file: str,
    owner: Callable[[str], str] = lambda _: "",
) -> Finding | None:
    """Return how this ancestor differs from a side's fresh process after the same imports, or None.

    ``owner`` returns the side that would import a package of that name from its own tree, or "".
    """
    return next(_differences(preloaded, discovered, file, owner), None)


def _differences(
    preloaded: AncestorImports,
    discovered: Mapping[str, Discovery],
    file: str,
    owner: Callable[[str], str],
) -> Iterator[Finding]:
    if preloaded.failed:
        yield finding("ancestor-failed", message=preloaded.failed)
    for package in preloaded.compiler:
        if side := owner(package):
            yield finding("ancestor-module", side=side, module=package)
    for side, preloads in discovered.items():
        for name, place in preloaded.modules.items():
            if name.partition(".")[0] != _HARNESS and preloads.modules.get(name) != place:
                yield finding("ancestor-module", side=side, module=name)
        did = preloads.imports.get(file, FileImports())
        for change in did.environment:
            if file and change not in preloaded.imports.environment:
                yield finding("ancestor-environment", side=side, variable=change.partition("=")[0])
