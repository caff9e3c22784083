"""The trend in words: its headline, and the sizes, ranges, dates and GitHub's pages of changes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from shlex import quote
from urllib.parse import urlsplit

from perfci.report.clean import clean_line
from perfci.report.replay import selection_of
from perfci.trend import Change, Drift, Evidence, KnownChange, Trend, TrendEvent
from perfci.trend.change_points import NOISY_SERIES
from perfci.units import counted, format_change, format_difference, format_interval, listed

LONGEST_NAME = 200
SHORT = 10
"""Characters of a commit's hash that are shown."""
_SHA = re.compile(r"[0-9a-f]{7,64}")
_PULL = re.compile(r"Merge pull request #(?P<merged>\d{1,9})\b|\(#(?P<squashed>\d{1,9})\)$")
"""The subjects that GitHub gives to the commit of a merged or squashed pull request."""
SAME_COMMIT = "same commit: the machine or something around it moved, not the code"
_EVIDENCE: dict[Evidence, str] = {
    "same_commit": "between runs of one commit",
    "runner": "another runner measured from here on",
    "unmoved_elsewhere": "the same commits moved nothing in another environment",
}


def headline(trend: Trend, groups: Mapping[str, Sequence[TrendEvent]]) -> str:
    """Return the most important facts of the trend, in one sentence without its full stop."""
    if not trend.series:
        return "Nothing is recorded yet"
    regressions = (*groups["worse"], *groups["open"])
    new = [each for event in regressions for each in event.changes if each.status == "new"]
    worse = len({change.series for change in new})
    better = len({change.series for event in groups["better"] for change in event.changes})
    older = len(groups["open"])
    days = f" in the last {trend.recent_days} days" if trend.changes else ""
    since = " since the last report" if trend.reported_before else days
    parts = []
    if worse:
        key = new[0].series
        what = f"{shown(key.metric)} of {shown(key.case)}" if worse == 1 else _series(worse)
        parts.append(f"{what} got worse{since}")
    if older:
        what = "older regression" if worse else "regression"
        are = "is" if older == 1 else "are"
        none = "" if worse else f", none of them new{since}"
        parts.append(f"{counted(older, what)} {are} open{none}")
    if better and not worse:
        parts.append(f"{_series(better)} got better{since}")
    if parts:
        return "; ".join(parts)
    judged = len(trend.series) - len(trend.too_few)
    those = f" in the {_series(judged)} that can be judged" if trend.too_few else ""
    return f"Nothing moved{those}{since}" if judged else too_early(trend)


def too_early(trend: Trend) -> str:
    """Return a sentence on the series that can't be judged yet, or ""."""
    if not trend.too_few:
        return ""
    few = f"{len(trend.too_few):,} of {_series(len(trend.series))}"
    return f"Too early to tell: {few} have fewer than {NOISY_SERIES} runs"


def change_text(change: Change, unit: str) -> str:
    """Return a change's size: ``+5.2 %``, or ``+1`` where the old level is zero."""
    if change.ratio is not None and math.isfinite(change.ratio):
        return format_change(change.ratio)
    return format_difference(change.difference, unit)


def interval_text(moved: Change | Drift) -> str:
    """Return a ratio's 95 % interval, ``+4.1 … +6.3 %``, or nothing."""
    lo, hi = moved.ratio_lo, moved.ratio_hi
    if lo is None or hi is None or lo == hi or not (math.isfinite(lo) and math.isfinite(hi)):
        return ""
    return format_interval(lo, hi, like=moved.ratio)


def rises(change: Change) -> bool:
    """Return whether the values went up. The arrow shows this, not whether it is worse."""
    return change.difference > 0 if change.ratio is None else change.ratio > 1.0


def meaning(worse: bool) -> str:
    """Return the word next to the arrow and the colour."""
    return "worse" if worse else "better"


def withdrawal_text(change: KnownChange) -> str:
    """Return which change is withdrawn."""
    what = f"{shown(change.series.case)} {shown(change.series.metric)}, {meaning(change.worse)}"
    where = range_text((change.sha_before, change.sha_after))
    first = f"first reported {day(change.first_seen_at)}"
    return f"Withdrawn: {what} at {where}, {first}. Its runs don't show it."


def event_text(event: TrendEvent) -> str:
    """Return a remark if an event is the environment's, not the code's, or has ended. Else ""."""
    if event.kind == "excursion":
        return f"came back on {day(event.ended_at)}"
    if event.kind == "environment":
        evidence = [_EVIDENCE[kind] for kind in event.evidence]
        return f"the environment, not the code: {listed(evidence)}"
    return ""


def bisect_command(event: TrendEvent) -> str:
    """Return the command that searches for an event's commit, or "" if no commit made it.

    It searches the range that holds the change with 95 % confidence, not the likeliest range.
    """
    change = event.outstanding[0]
    selection = selection_of(change.series.case)
    known = all(map(_SHA.fullmatch, change.commits_within)) and not change.same_commit
    if not known or not selection or event.kind == "environment":
        return ""
    size = f" --size {abs(change.ratio - 1.0):.1%}" if change.ratio else ""
    metric = quote(clean_line(change.series.metric, 100))
    return (
        f"perfci bisect {range_text(change.commits_within)} -k {selection} --metric {metric}{size}"
    )


def facts(change: Change) -> tuple[str, ...]:
    """Return remarks on a change in addition to its size and status."""
    sure = f"with 95 % confidence in {range_text(change.commits_within)}"
    place = "" if change.commits_within == change.commits else sure
    known = (
        SAME_COMMIT if change.same_commit else place,
        "a ramp, not a step" if change.kind == "ramp" else "",
        "the benchmark itself changed here" if change.benchmark_changed else "",
    )
    return tuple(filter(None, known))


def kind_text(change: Change) -> str:
    """Return a change's ``facts`` in one line, with its status if it is settled."""
    over = () if change.status in {"new", "known"} else (change.status,)
    return "; ".join((*facts(change), *over))


def surety_text(q: float) -> str:
    """Return q as text. 1 - q isn't shown: it would read as the chance that the change is real."""
    return "q < 0.001" if q < 0.001 else f"q = {q:.2g}"


def day(moment: str) -> str:
    """Return the date of an ISO 8601 time."""
    return moment[:10]


def shown(name: str) -> str:
    """Return an untrusted name as one visible line."""
    return clean_line(name, LONGEST_NAME)


def short(sha: str) -> str:
    """Return the beginning of a commit's hash. It is cleaned: an import may hold any text here."""
    return clean_line(sha)[:SHORT]


def patterns(forge: str) -> tuple[str, str]:
    """Return the addresses of a commit and of a comparison, with ``{before}`` and ``{after}``."""
    if not urlsplit(forge).hostname:
        return "", ""
    return f"{forge}/commit/{{after}}", f"{forge}/compare/{{before}}...{{after}}"


def address(forge: str, commits: tuple[str, str]) -> str:
    """Return the address of a range of commits, or "" if its end or the forge isn't known."""
    before, after = commits
    commit, compare = patterns(forge)
    if not _SHA.fullmatch(after):
        return ""
    several = before != after and _SHA.fullmatch(before)
    pattern = compare if several else commit
    return pattern.replace("{before}", before[:SHORT]).replace("{after}", after[:SHORT])


def pull_request(forge: str, subject: str) -> tuple[str, str]:
    """Return the name (``#123``) and the address of a commit's pull request, by its ``subject``.

    Both are empty if the subject names none. The address is empty if the forge isn't known.
    """
    match = _PULL.search(subject.strip())
    if match is None:
        return "", ""
    number = match["merged"] or match["squashed"]
    return f"#{number}", f"{forge}/pull/{number}" if urlsplit(forge).hostname else ""


def range_text(commits: tuple[str, str]) -> str:
    """Return ``a1b2c3..d4e5f6`` for git, a single commit if only one is known, or ""."""
    before, after = map(short, commits)
    several = before and after and commits[0] != commits[1]
    return f"{before}..{after}" if several else after or before


def _series(number: int) -> str:
    return f"{number:,} series"
