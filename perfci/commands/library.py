"""perfci as a library: ``perfci.compare``, ``check`` and ``load``. Stable.

Nothing is printed. Every error is a ``PerfciError``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfci.errors import UsageError
from perfci.files import expanded, from_here, read_regular, reading
from perfci.outputs import silent

if TYPE_CHECKING:
    from perfci.baselines import Baselines
    from perfci.commands.project import Caller
    from perfci.history.arrays import History
    from perfci.measure.progress import Progress
    from perfci.model.report import Report

PathName = str | os.PathLike[str]


def compare(
    base: str = "main",
    head: str = "HEAD",
    *,
    repository: PathName = ".",
    select: str = "",
    rounds: int | None = None,
    budget: float | str | None = None,
    python: str | None = None,
    base_python: str | None = None,
    head_python: str | None = None,
    config: PathName | None = None,
    inject: Mapping[str, float | str] | None = None,
    settings: Mapping[str, Any] | None = None,
    same: bool = False,
    everything: bool = False,
    record: bool = False,
    history: str | None = None,
    log_folder: PathName | None = None,
    allow_token: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure ``base`` and ``head`` side by side, and return the report with its verdict.

    ``base`` and ``head`` are git revisions of ``repository``. ``"."`` is its working tree. The
    other arguments are the options of ``perfci compare``: ``select`` is ``-k``, ``budget`` is in
    seconds or as ``"10m"``, ``inject`` maps a metric to a share, ``same`` is
    ``--allow-same-commit`` and ``everything`` is ``--all``. ``settings`` are other keys of the
    configuration for this call, as ``{"seed": 1}``.
    ``progress`` is called with a line of text for each step, round and notice.
    """
    from perfci.commands.compare import MeasureOptions
    from perfci.commands.project import open_project
    from perfci.commands.revisions import compare_revisions

    changes = {"rounds": rounds, "budget": budget, "inject": inject, **(settings or {})}
    caller = _caller(repository, config, changes, python, history, progress, allow_token)
    options = MeasureOptions(
        select,
        base_python,
        head_python,
        record=record,
        log_folder=Path(log_folder) if log_folder else None,
        everything=everything,
        same=same,
    )
    measured = compare_revisions(open_project(caller), base, head, options)
    measured.record()
    return measured.report


def check(
    head: str = "HEAD",
    *,
    repository: PathName = ".",
    confirm: bool = True,
    select: str = "",
    rounds: int | None = None,
    budget: float | str | None = None,
    python: str | None = None,
    config: PathName | None = None,
    inject: Mapping[str, float | str] | None = None,
    settings: Mapping[str, Any] | None = None,
    record: bool = False,
    history: str | None = None,
    log_folder: PathName | None = None,
    allow_token: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Measure ``head`` against the repository's stored baseline, and return the report.

    Cases that the stored numbers don't decide are measured in pairs, unless not ``confirm``. The
    other arguments are as for ``compare``. Raises UsageError ``no-baseline`` if nothing is stored.
    """
    from perfci.commands.compare import MeasureOptions
    from perfci.commands.project import open_project
    from perfci.commands.revisions import check_revision

    changes = {"rounds": rounds, "budget": budget, "inject": inject, **(settings or {})}
    caller = _caller(repository, config, changes, python, history, progress, allow_token)
    logs = Path(log_folder) if log_folder else None
    options = MeasureOptions(select, record=record, log_folder=logs)
    measured = check_revision(open_project(caller), head, options, confirm=confirm)
    measured.record()
    return measured.report


def load(path: PathName) -> Report | Baselines | History:
    """Return the stored results at ``path``. Each has ``to_frame()``.

    A ``Report`` is read from the JSON that ``--json`` wrote. ``Baselines`` are read from their
    folder, or one environment's folder, and a ``History`` from its SQLite file, its export as JSON
    lines, or ``postgresql://…``. Raises OutsideError if it can't be read.
    """
    from perfci.commands.project import report_in

    named = os.fspath(path)
    if "://" in named:
        return _history(named)
    place = expanded(named)
    if place.is_dir():
        return _baselines(place)
    from perfci.history.interchange import form_of
    from perfci.report.exporters.json import MOST_BYTES

    with reading(place, "Name a report, a folder of baselines, or a history."):
        form = form_of(place)
        if form == "sqlite":
            return _history(str(place))
        if form == "export":
            return _exported(place)
        content = read_regular(place, MOST_BYTES)
    return report_in(content, str(place))


def _baselines(folder: Path) -> Baselines:
    from perfci.baselines import Baselines, BaselineStore, is_environment

    if is_environment(folder):
        store, keys = BaselineStore(folder.parent), [folder.name]
    else:
        store = BaselineStore(folder)
        keys = list(store.environments())
    if not keys:
        raise UsageError(
            "nothing-to-load",
            f"{folder} holds no baselines",
            "Name their folder, `baselines` by default, or a report's or history's file.",
        )
    return Baselines(tuple(baseline for key in keys for baseline in store.load_all(key)))


def _history(address: str, shown: str = "") -> History:
    from perfci.history.arrays import History
    from perfci.history.store import open_history

    with open_history(address, create=False) as opened:
        return History(shown or opened.shown, opened.load_arrays())


def _exported(path: Path) -> History:
    from perfci.history.interchange import importer
    from perfci.history.store import open_history

    add = importer(path)
    with tempfile.TemporaryDirectory(prefix="perfci-load-") as folder:
        address = str(Path(folder) / "history.sqlite")
        with open_history(address) as opened:
            add(opened)
        return _history(address, str(path))


def _caller(
    repository: PathName,
    config: PathName | None,
    changes: Mapping[str, Any],
    python: str | None,
    history: str | None,
    progress: Callable[[str], None] | None,
    allow_token: bool,
) -> Caller:
    """Return the caller, with the ``changes`` of the configuration that aren't None.

    ``python`` and ``history`` are two more, as paths that are relative to the current folder.
    """
    from perfci.commands.project import Caller

    show = progress or silent
    paths = {
        "python": from_here(python) if python and os.sep in python else python,
        "history": history and from_here(history),
    }

    def say(text: str, *, err: bool = False) -> None:  # noqa: ARG001 (a notice is progress, too)
        show(text)

    def say_round(done: Progress) -> None:
        show(f"{done.case}: round {done.done} of {done.planned}")

    return Caller(
        Path(repository).absolute(),
        config_path=Path(config) if config else None,
        changes={key: value for key, value in {**changes, **paths}.items() if value is not None},
        say=say,
        step=show,
        progress=say_round,
        token_allowed=allow_token,
    )
