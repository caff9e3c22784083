"""``trend``: a history analysed and written.

The history is loaded, put in the order of the branch's commits, and searched for change points.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfci.config.loading import Config
from perfci.errors import UsageError
from perfci.history.store import OpenHistory, open_history
from perfci.measure.checkout.commits import branch_of, commits, tags
from perfci.measure.checkout.git import Repository, forge_of
from perfci.model import inherited
from perfci.outputs import files_of, write_files, write_site
from perfci.report.clean import Clean, clean_lines
from perfci.report.site.pages import render_site, render_trend_markdown
from perfci.report.site.words import withdrawal_text
from perfci.report.trend import trend_json
from perfci.trend import Analysis, KnownChange, Trend, TrendSettings
from perfci.trend.changes import analyse, settled
from perfci.trend.events import group_events
from perfci.trend.timelines import arrange, current_name, release_runs
from perfci.version import VERSION

_FIRST_TIME_NOTE = "This is the first report: only the latest changes count as new."


def report_trend(
    address: str,
    config: Config,
    repository: Repository | None,
    *,
    now: str,
    branch: str | None = None,
    html: Path | None = None,
    outputs: Mapping[str, Path],
    remember: bool = True,
) -> Trend:
    """Return the analysed trend of a history, after its files are written.

    ``html`` is the site's folder, ``outputs`` are files by format (``json``, ``markdown``). The
    caller shows those that are ``-``. ``remember`` makes what is new now known to the next report.
    ``now`` is ISO 8601 in UTC.
    """
    with open_history(address, create=False) as history:
        trend = trend_of(history, repository, config.aliases, config.trend, branch=branch, now=now)
        files = files_of(outputs)
        write_files({path: trend_text(name, trend) for name, path in files.items()})
        if html is not None:
            write_site(html, render_site(trend))
        if remember:  # last: what could not be written stays new
            history.remember(known_changes(trend, now))
    return trend


def trend_text(form: str, trend: Trend) -> Clean:
    """Return the trend as ``json`` or ``markdown``."""
    if form == "json":
        return trend_json(trend)
    return clean_lines(render_trend_markdown(trend))


def trend_of(
    history: OpenHistory,
    repository: Repository | None,
    aliases: Mapping[str, str],
    settings: TrendSettings,
    *,
    branch: str | None = None,
    now: str,
) -> Trend:
    """Return the history of a branch, analysed. ``now`` is ISO 8601 in UTC."""
    loaded = history.load_arrays()
    git = _branch_order(repository, branch, {run.header.sha for run in loaded.runs})
    arranged = arrange(loaded, order=git.order, branch=git.name, aliases=aliases)
    known = _renamed(history.known_changes(), aliases)
    analysed = analyse(arranged.series, arranged.timelines, known=known, now=now, settings=settings)
    changes = analysed.changes
    first_time_note: tuple[str, ...] = ()
    if changes and not known:
        newest = max(max(line.dates, default="") for line in arranged.timelines.values())
        changes = settled(changes, newest, settings.drift_days)
        first_time_note = (_FIRST_TIME_NOTE,)
    return Trend(
        **inherited(Analysis, replace(analysed, changes=changes)),  # its fields
        created_at=now,
        perfci_version=VERSION,
        timelines=arranged.timelines,
        series=arranged.series,
        releases=release_runs(git.tags, git.order, arranged.timelines),
        notes=(
            *map(withdrawal_text, analysed.withdrawn),
            *first_time_note,
            *git.notes,
            *arranged.notes,
        ),
        reported_before=bool(known),
        events=group_events(changes, arranged.series, arranged.timelines, known),
        recent_days=settings.drift_days,
        forge=git.forge,
    )


@dataclass(frozen=True, slots=True)
class _BranchOrder:
    """A branch by its ``name``, its commits (the oldest first), its tags, and notes on it.

    ``forge`` is the repository's page on the web, if it has one.
    """

    name: str = ""
    order: tuple[str, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    forge: str = ""


def _branch_order(
    repository: Repository | None, wanted: str | None, recorded: Collection[str]
) -> _BranchOrder:
    """Return the branch ``wanted`` (else the default one) as far as git can be believed.

    ``recorded`` are the commits in the history. A shallow clone, or one of another project,
    would make them all vanish. Then the recorded order counts, and a note says so.
    """
    if repository is None:
        note = "Not in a git repository: runs are in their recorded order, without releases."
        return _BranchOrder(name=wanted or "", notes=(note,))

    rev = _known(repository, wanted) if wanted else repository.default_base() or "HEAD"
    name = wanted.removeprefix("origin/") if wanted else branch_of(repository, rev)
    if repository.is_shallow():
        note = (
            "This is a shallow clone: runs are in their recorded order, and no release is shown "
            "(`git fetch --unshallow`; actions/checkout: `fetch-depth: 0`)."
        )
        return _BranchOrder(name=name, notes=(note,), forge=forge_of(repository))
    order = tuple(commit.sha for commit in reversed(commits(repository, rev)))
    named = {sha for sha in recorded if sha}
    if named and named.isdisjoint(order):
        note = (
            f"None of the recorded commits is on {name} of this repository: runs are in their "
            "recorded order."
        )
        return _BranchOrder(name=name, notes=(note,))
    return _BranchOrder(name, order, tags(repository), forge=forge_of(repository))


def _known(repository: Repository, wanted: str) -> str:
    """Return ``wanted``, or its remote's if this clone has no branch of that name (as in CI)."""
    try:
        return repository.resolve(wanted).commit
    except UsageError:
        return repository.resolve(f"origin/{wanted}").commit


def _renamed(known: Sequence[KnownChange], aliases: Mapping[str, str]) -> tuple[KnownChange, ...]:
    """Return known changes under the names that their benchmarks have today."""
    return tuple(
        replace(
            change, series=change.series._replace(case=current_name(change.series.case, aliases))
        )
        for change in known
    )


def known_changes(trend: Trend, now: str) -> tuple[KnownChange, ...]:
    """Return a report's changes, seen and withdrawn, for the history to remember.

    Acknowledgements are left out: the history has them, and may have taken them back meanwhile.
    """
    events = {
        change.id: event.id for event in trend.events for change in (*event.changes, *event.back)
    }
    return tuple(
        KnownChange(
            id=change.id,
            series=change.series,
            sha_before=change.names[0],
            sha_after=change.names[1],
            worse=change.worse,
            first_seen_at=change.first_seen_at or now,
            event=events.get(change.id, ""),
        )
        for change in trend.changes
    ) + tuple(replace(change, withdrawn=True) for change in trend.withdrawn)
