"""Fork servers: the processes that fork a benchmark file's workers, one for both sides or one each.

A fork server of both sides imports the libraries that both sides' benchmark files ask for. It runs
no code that a side runs before, and such code could change what an import does, so this module
checks that the imports come out the same. Otherwise each side has a fork server, which imports the
side's benchmark file. If that can't fork, each worker is a fresh process.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from perfci.finding import Finding, finding
from perfci.measure.executor import ForkServer, OpenServers, ServerImports
from perfci.measure.progress import CaseState
from perfci.measure.selection import starting_order
from perfci.measure.workplace import Workplace
from perfci.model.case import Case
from perfci.model.words import words
from perfci.model.worker import Discovery, FileImports
from perfci.worker.imports import DYNAMO, INDUCTOR

_MOST_OPEN = 4
"""Most groups of which fork servers are kept. Each holds what its benchmark file imports."""
_HARNESS = "perfci"
_BY_INDUCTOR = frozenset(
    {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "inductor"}
)
"""Values of the axes ``mode`` and ``backend`` with which torch compiles by Inductor."""


class ForkServers:
    """Opens the processes that fork workers, and remembers the files whose imports don't allow it.

    By file, ``_unfit`` has the reason against forking, and ``_unshared`` that against a process
    that both sides share. The processes of the files ``_uncompiled`` don't import the compiler.
    ``_learned`` has, by case, the modules of the compiler that its first call imports. ``_open``
    has what was opened by group and phase, the last used at the end.
    """

    def __init__(self, workplace: Workplace) -> None:
        self.opened = 0
        self._workplace = workplace
        self._plan = workplace.plan
        self._discovered = {side.name: side.discovery for side in workplace.plan.sides}
        self._quiet = workplace.plan.config.quiet
        self._settings = workplace.plan.config.settings
        self._unfit: dict[str, str] = {}
        self._unshared: dict[str, Finding] = {}
        self._uncompiled: set[str] = set()
        self._learned: dict[str, tuple[str, ...]] = {}
        self._open: dict[tuple[tuple[str, ...], bool], OpenServers] = {}

    def of(self, case: Case, *, later: bool) -> OpenServers | None:
        """Return what forks the workers of ``case``, or None if each has to be a fresh process.

        The least rounds of a group's cases come from one process, and ``later`` ones from a second,
        so that a state which all forks of the first one share can show. Both sides start alike: a
        forked worker next to a fresh one would compare the ways to start. Raises BudgetEnded.
        """
        if not self._quiet.fork or case.file in self._unfit:
            return None
        key = self.group_of(case), later
        known = self._open.pop(key, None)
        if known and not known.alive():
            known.close()
            known = None
        while not known and len(self._open) >= _MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        opened = known or self._opened(case)
        if opened:
            self._open[self.group_of(case), later] = opened
        return opened

    def _opened(self, case: Case) -> OpenServers | None:
        """Open what forks the workers of ``case``: for both sides, or else for each side."""
        self.opened += 1
        shared = self._shared(case)
        if shared is None:
            return self._of_each_side(case)
        return OpenServers(
            {side.name: shared for side in self._plan.sides},
            server=self.opened,
        )

    def group_of(self, case: Case) -> tuple[str, ...]:
        """Return the benchmark file of ``case``, and what else its fork server imports.

        Cases of the same group share a fork server.
        """
        return (case.file, *self._compiler_of(case))

    def refuse(self, case: Case, why: Finding) -> None:
        """Give the file of ``case`` no more such fork servers.

        If the fork server was to import the compiler, the next one doesn't. Otherwise each side
        gets a fork server of its own.
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
        """Give the sides of ``file`` servers of their own from now on."""
        self._unshared[file] = why
        self._close_of(file)
        self._workplace.journal.note(f"{file}: no common fork server: {words(why)}")

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
        """End all processes that fork workers."""
        while self._open:
            self._open.popitem()[1].close()

    def _close_of(self, file: str) -> None:
        for key in [key for key in self._open if key[0][0] == file]:
            self._open.pop(key).close()

    def _shared(self, case: Case) -> ForkServer | None:
        """Return a process that forks both sides' workers, or None if there can't be one."""
        preload = self._preload_of(case)
        if isinstance(preload, Finding):
            if case.file not in self._unshared:
                self._unshare(case.file, preload)
            return None
        server = self._workplace.executor.fork_server(
            self._plan.server_order(preload, self._compiler_of(case)),
            self._plan.server_launch(),
            budget_end=self._workplace.budget_end,
        )
        importlib.import_module("scipy.special")  # the first verdict needs it, and it takes 0.4 s
        try:
            unfit = self._imported(server)
        except BaseException:
            server.close()
            raise
        why = finding("server-unfit", message=unfit) if unfit else None
        if not why and server.preloaded:
            why = unlike_reason(server.preloaded, self._discovered, case.file, self._plan.owner)
        if not why:
            return server
        server.close()
        self.refuse(case, why)
        return self._shared(case)

    def _preload_of(self, case: Case) -> tuple[str, ...] | Finding:
        if why := self._unshared.get(case.file):
            return why
        if len({side.python for side in self._plan.sides}) > 1:
            return finding("server-python")
        return preload_of(self._discovered, case.file)

    def _of_each_side(self, case: Case) -> OpenServers | None:
        servers: dict[str, ForkServer] = {}
        opened = OpenServers(servers)
        try:
            for side in starting_order(self._plan.sides, self.opened):
                servers[side.name] = server = self._workplace.executor.fork_server(
                    self._plan.side_server_order(side, (case,)),
                    self._plan.launch(side),
                    budget_end=self._workplace.budget_end,
                )
                if unfit := self._imported(server):
                    self._unfit[case.file] = unfit
                    self._workplace.journal.note(f"{case.file}: workers start afresh: {unfit}")
                    opened.close()
                    return None
        except BaseException:
            opened.close()
            raise
        return opened

    def _imported(self, server: ForkServer) -> str:
        """Wait until ``server`` has imported. Return why it can't fork, or ""."""
        if unfit := server.imported(self._settings.timeout):
            return unfit
        if self._plan.cores.workers:
            server.move(self._plan.cores.workers)
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
    return next(_differences(preloaded, discovered, file, owner), None)


def _differences(
    preloaded: ServerImports,
    discovered: Mapping[str, Discovery],
    file: str,
    owner: Callable[[str], str],
) -> Iterator[Finding]:
    if preloaded.failed:
        yield finding("server-failed", message=preloaded.failed)
    for package in (*preloaded.compiler, *preloaded.missing):
        if side := owner(package):
            yield finding("server-module", side=side, module=package)
    for side, preloads in discovered.items():
        for name, place in preloaded.modules.items():
            if name.partition(".")[0] != _HARNESS and preloads.modules.get(name) != place:
                yield finding("server-module", side=side, module=name)
        did = preloads.imports.get(file, FileImports())
        for change in did.environment:
            if file and change not in preloaded.imports.environment:
                yield finding("server-environment", side=side, variable=change.partition("=")[0])
