"""Pure: whether both sides' workers may have one ancestor, and what that imports for them.

It imports what both sides' benchmark files ask for of their libraries. What a side does on its way
there, an ancestor does not do: so it must be seen that nothing else comes of the imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from perfci.model.case import Case, Discovery, FileImports
from perfci.model.finding import Finding, found
from perfci.session.starter import Preloaded
from perfci.worker.compiler import DYNAMO, INDUCTOR

_HARNESS = "perfci"
_BY_INDUCTOR = frozenset(
    {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "inductor"}
)


def preload_of(discovered: Mapping[str, Discovery], file: str) -> tuple[str, ...] | Finding:
    """Return the modules that an ancestor of ``file``'s workers imports; else why there is none.

    ``discovered`` is by side. ``file`` is relative to the side's tree, empty for saved models,
    which need torch alone.
    """
    sides = list(discovered.values())
    for name, pairs in (("devices", _devices(sides)), ("metrics", _metrics(sides))):
        if len(set(pairs)) > 1:
            return found("ancestor-plugins", what=name)
    if not file:
        return ("torch",)
    imports = {name: one.imports.get(file) for name, one in discovered.items()}
    for side, did in imports.items():
        if did is None:
            return found("ancestor-unknown", side=side)
        if did.read:
            return found("ancestor-read", side=side, file=did.read[0])
        if did.programs:
            return found("ancestor-program", side=side, program=did.programs[0])
    asked = [set(did.modules) for did in imports.values() if did]
    first = next(did for did in imports.values() if did)
    return tuple(
        name
        for name in first.modules
        if name.partition(".")[0] != _HARNESS
        and all(name in names for names in asked)
        and len({one.modules.get(name) for one in sides}) == 1
    )


def compiler_of(case: Case) -> tuple[str, ...]:
    """Return the modules of torch's compiler that the first call of ``case`` will import.

    None where its axes don't say; then a worker's values do (``compiler_in``).
    """
    modes = {case.axes[axis] for axis in ("mode", "backend") if axis in case.axes}
    if modes & _BY_INDUCTOR:
        return DYNAMO, INDUCTOR
    return (DYNAMO,) if any(mode.startswith("backend:") for mode in modes) else ()


def compiler_in(workers: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Return the modules of torch's compiler that a side's workers with these values used.

    Kernels show with an empty cache alone.
    """
    if any(values.get("generated_kernels") for values in workers):
        return DYNAMO, INDUCTOR
    return (DYNAMO,) if any(values.get("captured_calls") for values in workers) else ()


def why_unlike(
    preloaded: Preloaded,
    discovered: Mapping[str, Discovery],
    file: str,
    owner: Callable[[str], str] = lambda _: "",
) -> Finding | None:
    """Return why this ancestor is not what each side's fresh process is after the same imports.

    ``owner`` returns the side that would import a package of that name from its own tree, if any.
    """
    if preloaded.failed:
        return found("ancestor-failed", message=preloaded.failed)
    if preloaded.imports.programs:
        return found("ancestor-program", side="both", program=preloaded.imports.programs[0])
    for package in preloaded.compiler:
        if side := owner(package):
            return found("ancestor-module", side=side, module=package)
    return next(_differences(preloaded, discovered, file), None)


def _differences(
    preloaded: Preloaded, discovered: Mapping[str, Discovery], file: str
) -> Iterator[Finding]:
    for side, one in discovered.items():
        for name, place in preloaded.modules.items():
            if name.partition(".")[0] != _HARNESS and one.modules.get(name) != place:
                yield found("ancestor-module", side=side, module=name)
        did = one.imports.get(file, FileImports())
        for change in did.environment:
            if file and change not in preloaded.imports.environment:
                yield found("ancestor-environment", side=side, variable=change.partition("=")[0])


def _devices(sides: list[Discovery]) -> Iterator[tuple[str, ...]]:
    return (one.devices for one in sides)


def _metrics(sides: list[Discovery]) -> Iterator[tuple[tuple[str, str], ...]]:
    return (tuple(sorted(one.metrics.items())) for one in sides)
