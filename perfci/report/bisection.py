"""The result of ``perfci bisect``, for the terminal and as JSON (``perfci.bisection/1``)."""

from __future__ import annotations

import shlex

from perfci.bisect import Bisection, Culprit, short_name
from perfci.model.codec import to_plain
from perfci.report.clean import Clean, clean_line
from perfci.report.exporters.json import json_text
from perfci.units import counted, format_change, format_difference

_WIDTH = 200
"""Characters of a line."""
_MOST_COMMITS = 10
"""Commits of a culprit that are listed. Earlier commits are counted."""


def render_bisection_json(bisection: Bisection) -> Clean:
    """Return the result as JSON. CodecError on a number that isn't finite."""
    plain = to_plain(bisection)
    culprits = [
        {**fields, "replay": replay(culprit, bisection)}
        for fields, culprit in zip(plain["culprits"], bisection.culprits, strict=True)
    ]
    return json_text({"schema": plain.pop("schema"), **plain, "culprits": culprits})


def render_bisection(bisection: Bisection) -> list[Clean]:
    """Return the result in lines of text."""
    whole = _size(bisection.ratio, bisection.difference, bisection.unit)
    lines = [
        (
            f"{bisection.case}, {bisection.metric}: {whole} from {bisection.good.short} to "
            f"{bisection.bad.short}, {counted(bisection.commits, 'commit')}"
        )
    ]
    for culprit in bisection.culprits:
        lines += _culprit(culprit, bisection)
    if not bisection.culprits:
        lines.append("no commit could be shown to have changed it")
    for skipped in bisection.skipped:
        lines.append(f"skipped {skipped.commit.short}: {skipped.why}")
    measured = f"{counted(bisection.comparisons, 'comparison')}, {bisection.rounds} rounds"
    left = {"budget": "the time ended", "interrupted": "interrupted"}.get(bisection.ended)
    lines.append(f"{measured}; {left}, and the same command goes on" if left else measured)
    return [clean_line(line, _WIDTH) for line in lines]


def replay(culprit: Culprit, bisection: Bisection) -> str:
    """Return the command that compares the commits around a change again.

    It takes the benchmarks of the range's newer end, as the search did: older commits may lack
    them.
    """
    before, after = short_name(culprit.before), culprit.commits[-1].short
    case = shlex.quote(bisection.case)
    base = f"{after}^" if len(culprit.commits) == 1 else before
    newest = bisection.bad.short
    files = "" if newest == after else f" --benchmarks-of {newest}"
    return f"perfci compare {base} {after}{files} -k {case}"


def _culprit(culprit: Culprit, bisection: Bisection) -> list[str]:
    unit = bisection.unit
    size = _size(culprit.ratio, culprit.difference, unit)
    if culprit.ratio_lo is not None or culprit.difference_lo is not None:
        low = _size(culprit.ratio_lo, culprit.difference_lo, unit)
        high = _size(culprit.ratio_hi, culprit.difference_hi, unit)
        size = f"{size} ({low} to {high})"
    not_compared = culprit.found and culprit.ratio_lo is None and culprit.difference_lo is None
    so_far = "" if culprit.found or bisection.ended == "done" else "so far, "
    what = "slower" if unit == "s" else "worse"
    if culprit.improved:
        what = "faster" if unit == "s" else "better"
    line = f"{what} {size}, {so_far}probability {_percent(culprit.probability)}"
    shown = [f"{commit.short} {commit.subject}" for commit in culprit.commits[-_MOST_COMMITS:]]
    if len(culprit.commits) == 1:
        lines = [f"{line}: {shown[0]}"]
    else:
        lines = [f"{line}, one of {counted(len(culprit.commits), 'commit')}:"]
        lines += [f"- {commit}" for commit in reversed(shown)]
    if len(culprit.commits) > _MOST_COMMITS:
        lines.append(f"- and {len(culprit.commits) - _MOST_COMMITS} before them")
    if not_compared:
        lines.append(
            "not compared with the commit before it: the size is an estimate from other comparisons"
        )
    if not culprit.found and bisection.ended == "done":
        lines.append("not found: its probability is below 95 %, and no comparison can raise it")
    return [*lines, f"see it again: {replay(culprit, bisection)}"]


def _size(ratio: float | None, difference: float | None, unit: str) -> str:
    if difference is None:
        return format_change(ratio)
    return format_difference(difference, unit)


def _percent(probability: float) -> str:
    if probability > 0.999:
        return "over 99.9 %"
    return f"{probability * 100.0:.1f} %"
