"""One worker's findings judged: what isn't the side's own code, and which of its files it used."""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from perfci.model.case import Failure
from perfci.model.ran import WRONG_CODE
from perfci.session.ran.advice import build_advice, missing_advice, package_advice, path_advice
from perfci.session.ran.findings import Finding, is_code, is_library
from perfci.session.ran.places import Places
from perfci.worker.own_packages import packages_in

Where = Literal["checkout", "another tree", "copy", "child"]
_CODE_OF = {
    "checkout": "the user's checkout",
    "another tree": "another tree of the project",
    "copy": "an installed copy of the project",
}
_SHOWN = 3
_CHILD_ADVICE = (
    "Start it with sys.executable, without -I, -E and -S, and with the environment that the "
    "benchmark has (env={**os.environ, ...}), so that it imports this side's code."
)


@dataclass(frozen=True, slots=True)
class Wrong:
    """One file that isn't the side's own, or a child that could not be watched.

    ``how`` is the finding's, ``file`` its path as a reader knows it, ``advice`` what to do.
    """

    where: Where
    how: str
    file: str
    name: str
    advice: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What one worker and its children ran. ``used`` are the side's own files, absolute.

    ``elsewhere`` are modules of the project's that come from an installed copy, meant or not.
    ``loaded`` are modules and libraries of no place that is known: a prefix, a temporary folder.
    ``advice`` is what to set if it failed for what it did not find. Where nothing was ``told``, its
    watch wrote nothing down, or that was removed.
    """

    wrong: tuple[Wrong, ...]
    used: tuple[str, ...]
    modules: tuple[Finding, ...]
    outside: tuple[str, ...]
    unknown: tuple[str, ...]
    elsewhere: tuple[Finding, ...] = ()
    loaded: tuple[str, ...] = ()
    advice: str = ""
    told: bool = True


def judge(
    findings: Sequence[Finding],
    places: Places,
    python_path: Sequence[str],
    *,
    built: bool,
) -> Judged:
    """Judge what was found. ``built``: the side has a ``build``, and so all that it ever has."""
    place = places.place
    judgement = _Judgement(places, python_path, built, _meant_folders(findings, places.installed))
    used: dict[str, None] = {}
    modules: list[Finding] = []
    outside: dict[str, None] = {}
    unknown: dict[str, None] = dict.fromkeys(_unseen(findings))
    elsewhere: list[Finding] = []
    loaded: dict[str, None] = {}
    wrong: dict[tuple[str, str], Wrong] = {}
    greeted = {one.name for one in findings if one.how == "watched"}
    for one in findings:
        if one.how in {"watched", "looked", "missing"} or Path(one.path).is_dir():
            continue
        if one.how == "unwatched" or (one.how == "living" and one.name not in greeted):
            command = one.name if one.how == "unwatched" else one.path
            wrong.setdefault(
                ("child", command), Wrong("child", one.how, command, "", _CHILD_ADVICE)
            )
        elif one.how in {"program", "unreadable"}:
            unknown[f"{one.how} {one.name or one.path}"] = None
        elif one.how == "living":
            continue
        else:
            where = place(one.path)
            if where == "own":
                used[one.path] = None
                if one.how == "import":
                    modules.append(one)
                continue
            if one.how == "import" and judgement.is_installed(one, where):
                elsewhere.append(one)
            found = judgement.of(one, where)
            if found is not None:
                wrong.setdefault((found.where, found.file), found)
            elif where == "checkout" and one.how != "kept out":
                outside[one.path.removeprefix(places.checkout)] = None
            elif one.how in {"import", "load", "map"}:
                loaded[one.path] = None
    return Judged(
        tuple(wrong.values()),
        tuple(used),
        tuple(modules),
        tuple(outside),
        tuple(unknown),
        tuple(elsewhere),
        tuple(loaded),
        missing_advice(
            Path(places.root),
            [one.name for one in findings if one.how == "missing"],
            python_path,
            built=built,
        ),
        told=bool(greeted),
    )


def _unseen(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Tell of a fork that ended by ``os._exit``: what its libraries loaded was seen by nobody."""
    watched = {one.name for one in findings if one.how == "watched"}
    seen = {one.name for one in findings if one.how in {"looked", "living"}}
    return ("unseen fork",) if watched - seen else ()


@dataclass(frozen=True, slots=True)
class _Judgement:
    places: Places
    python_path: Sequence[str]
    built: bool
    meant: tuple[str, ...]

    def of(self, one: Finding, where: str) -> Wrong | None:
        """Return what is wrong with a file that isn't the side's own; None where nothing is."""
        places = self.places
        if where == "spared" or self.is_meant(one):
            return None
        if where == "" and not self._is_module_of_project(one):
            return None  # or another distribution's part of a namespace that the tree has, too
        if where in {"copy", ""}:  # of no place: the watch knew it by its package's name
            return self._wrong("copy", one, one.path, self._of_a_copy(one))
        base = places.checkout if where == "checkout" else _root_of(one.path, places)
        relative = one.path.removeprefix(base)
        has_it = (Path(places.root) / relative).exists()
        if one.how == "kept out":
            return self._kept_out(where, one, relative, has_it=has_it)
        read = one.how in {"open", "map"} and not is_code(one.path)
        if read and self._is_alike(one, where, relative):
            return None
        shown = relative if where == "checkout" else one.path
        return self._wrong(_where(where), one, shown, self._advice(one, relative, has_it=has_it))

    def _is_alike(self, one: Finding, where: str, relative: str) -> bool:
        """Whether a file that is only read says nothing of a commit.

        In the checkout where no tree has it: both sides read the same. In another tree where this
        one has it with the same content.
        """
        mine, other = Path(self.places.root) / relative, Path(one.path)
        if where == "checkout":
            return not mine.exists()
        return mine.is_file() and other.is_file() and filecmp.cmp(mine, other, shallow=False)

    def _kept_out(self, where: str, one: Finding, relative: str, *, has_it: bool) -> Wrong | None:
        """An import that only somebody else's tree could serve.

        Where this tree has the file, a folder is missing on ``python_path``. Where it hasn't, the
        side has no such module, as a base whose head adds one; unless it is compiled, and nothing
        was built.
        """
        is_there = has_it or self._has_module(one.name)
        if not is_there and (self.built or not is_library(one.path)):
            return None
        shown = relative if where == "checkout" else one.path
        return self._wrong(_where(where), one, shown, self._advice(one, relative, has_it=has_it))

    def is_installed(self, one: Finding, where: str) -> bool:
        """Whether it is a module of the project's, from an installed copy."""
        named = where == "" and one.name.partition(".")[0] in self.places.names
        return named or where == "copy" or self.is_meant(one)

    def _is_module_of_project(self, one: Finding) -> bool:
        """Whether a side has a module of this name, be it the other."""
        trees = (self.places.root, *self.places.others)
        return one.name.partition(".")[0] in self.places.names and any(
            self._has_module(one.name, tree) for tree in trees
        )

    def _has_module(self, name: str, root: str = "") -> bool:
        """Whether the tree has the module of this dotted name, wherever its package lies."""
        tree = Path(root or self.places.root)
        folder = _packages_in(str(tree)).get(name.partition(".")[0])
        if folder is None:
            return False
        path = tree.joinpath(folder, *name.split("."))
        return path.is_dir() or any(path.parent.glob(f"{path.name}.*"))

    def _advice(self, one: Finding, relative: str, *, has_it: bool) -> str:
        tree = Path(self.places.root)
        if has_it:
            module = one.name if one.how in {"import", "load", "kept out"} else ""
            runs = one.how != "open" or is_code(one.path)
            told = (
                path_advice(tree, relative, module, self.python_path, built=self.built)
                if runs
                else ""
            )
            return told or (
                f"This side has it as {relative}: use a path that is relative to the module's "
                "`__file__`, or to the current directory, which is the side's tree."
            )
        if is_library(one.path):
            return build_advice(tree, self.python_path)
        top = one.name.partition(".")[0]
        return (top and package_advice(tree, top, self.python_path, built=self.built)) or (
            "The commit hasn't got it. Add it to the repository, or make it with `build`."
        )

    def _of_a_copy(self, one: Finding) -> str:
        tree = Path(self.places.root)
        top = one.name.partition(".")[0] or _package_in(one.path)
        meant = f'Where the installed copy is meant: installed = ["{top}"].' if top else ""
        told = package_advice(tree, top, self.python_path, built=self.built) if top else ""
        if not told and is_library(one.path):
            told = build_advice(tree, self.python_path)
        return f"{told} {meant}".strip()

    def is_meant(self, one: Finding) -> bool:
        """Whether the configuration says that the installed one is to be measured."""
        installed = self.places.installed
        named = one.how != "open" and one.name.partition(".")[0] in installed
        return named or _package_in(one.path) in installed or one.path.startswith(self.meant)

    def _wrong(self, where: Where, one: Finding, file: str, advice: str) -> Wrong:
        return Wrong(where, one.how, file, one.name, advice)


def _meant_folders(findings: Sequence[Finding], installed: Sequence[str]) -> tuple[str, ...]:
    """Return the folders of the packages that are meant, wherever they were imported from."""
    return tuple(
        f"{Path(one.path).parent}/"
        for one in findings
        if one.how == "import" and one.name in installed and "__init__." in Path(one.path).name
    )


@lru_cache(maxsize=4)
def _packages_in(tree: str) -> dict[str, str]:
    """Look through a tree once: the session doesn't change it."""
    return packages_in(tree)


def failure_of(
    wrong: Sequence[Wrong], case: str, side: str, log_tail: str, clean: Callable[[str], str] = str
) -> Failure:
    """Return the failure of a case whose worker ran what isn't its side's."""
    lines = [said(one, side) for one in wrong[:_SHOWN]]
    if len(wrong) > _SHOWN:
        lines[-1] += f" (and {len(wrong) - _SHOWN} more)"
    advice = dict.fromkeys(one.advice for one in wrong[:_SHOWN] if one.advice)
    return Failure(
        case=case,
        side=side,
        stage="finish",
        kind=WRONG_CODE,
        message=clean("; ".join(lines) + "".join(f"\n{one}" for one in advice)),
        log_tail=log_tail,
    )


def untold(case: str, side: str) -> Failure:
    """Return the failure of a case whose worker measured, and told nothing of what it ran."""
    message = (
        "what this worker ran isn't known: what it wrote down was removed\n"
        "Leave the session's files (below TMPDIR's parent) as they are."
    )
    return Failure(case, side, "finish", WRONG_CODE, message)


def said(one: Wrong, side: str) -> str:
    """Return in one line what is wrong."""
    if one.where == "child":
        return f"`{one.file}` could not be watched: which code it imported isn't known"
    verb = {
        "import": "is imported from",
        "kept out": "would be imported from",
        "open": "is read from",
        "run": "is run from",
    }.get(one.how, "is loaded from")
    what = f"`{one.name}` " if one.name and one.how != "open" else ""
    file = one.file if one.where != "checkout" else f"{one.file} of {_CODE_OF['checkout']}"
    if one.where != "checkout":
        file = f"{one.file}, {_CODE_OF[one.where]}"
    return f"{what or 'a file '}{verb} {file}: not {side}'s own code"


def _where(place: str) -> Where:
    return "checkout" if place == "checkout" else "another tree"


def _root_of(path: str, places: Places) -> str:
    """Return the other tree that ``path`` lies in; a folder of the cache's stands two below it."""
    for other in (*places.others, *places.clones):
        if path.startswith(other):
            return other
    below = path.removeprefix(places.cache).split("/")
    return f"{places.cache}{'/'.join(below[:3])}/"


def _package_in(path: str) -> str:
    _, _, inner = path.rpartition("-packages/")
    return inner.partition("/")[0].partition(".")[0]
