"""Pure: which operators differ. Counts are exact and go first; times need all profiles apart."""

from __future__ import annotations

import difflib
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from perfci.instruments import Recorded
from perfci.model.finding import Difference, Plain

RUNS = 5
"""Profiles a side: of fewer, times are not compared."""
_LEAST_RATIO = 1.1
_LEAST_SHARE = 0.03
"""Of a call's time, before an operator's own is worth a word."""
_READS = frozenset({"aten::item", "aten::_local_scalar_dense"})
"""They read one value of a tensor, and wait for a device and for all that it does."""


_ALIKE = 0.4
"""A comprehension's line may have been one outside of it if so much of both is the same."""


class _Key(NamedTuple):
    """An operator on what it is given, called from a line that both sides have."""

    name: str
    signature: str
    file: str
    text: str


@dataclass(slots=True)
class _Side:
    """One side's profiles: counts and own times by key, one a profile, and the lines."""

    runs: int
    call_s: float
    counts: dict[_Key, list[float]] = field(default_factory=dict)
    times: dict[_Key, list[float]] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)

    def count(self, key: _Key) -> float:
        return statistics.median(self.counts.get(key, [0.0]))

    def time(self, key: _Key) -> float:
        return statistics.median(self.times.get(key, [0.0]))


def _side(recorded: Sequence[Recorded]) -> _Side:
    runs = len(recorded)
    side = _Side(runs, min(one["call_s"] for one in recorded))
    for number, one in enumerate(recorded):
        for name, signature, line, count, seconds in one["operators"]:
            file, at, text = one["lines"][line] if line >= 0 else ("", 0, "")
            key = _Key(name, signature, file, text)
            side.counts.setdefault(key, [0.0] * runs)[number] += count
            side.times.setdefault(key, [0.0] * runs)[number] += seconds
            side.lines.setdefault((file, text), at)
        for name, count, seconds in one["device"]:
            key = _Key(name, "", "", "device")
            side.counts.setdefault(key, [0.0] * runs)[number] += count
            side.times.setdefault(key, [0.0] * runs)[number] += seconds
    return side


def differences(base: Sequence[Recorded], head: Sequence[Recorded]) -> Iterable[Difference]:
    """Return a difference a line: the operator that weighs most there stands for the others.

    A value that is read stands for what computes it. What a line called before it was edited, or
    replaced, belongs to the line that it is now.
    """
    before, after = _side(base), _side(head)
    changed = dict(_changed(before, after))
    by_place: dict[tuple[str, str], list[_Key]] = defaultdict(list)
    for key in changed:
        by_place[_home((key.file, key.text), before, after)].append(key)
    for place, keys in by_place.items():
        yield _of_a_place(place, keys, changed, before, after)
    yield from _slower(before, after, {key.name for key in changed})


def _changed(before: _Side, after: _Side) -> Iterator[tuple[_Key, _Key | None]]:
    """Yield what has another count, with what it replaced: the same operator on other tensors, or
    on a line that was edited.

    What moved to another line, as often as before, is no change. What one profile of a side counts
    and another doesn't is no exact count, and compared only where the sides don't overlap.
    """
    keys = {*before.counts, *after.counts}
    apart = {key for key in keys if _apart(before.counts.get(key), after.counts.get(key))}
    total: dict[tuple[str, str], float] = defaultdict(float)
    for key in keys:
        total[key[:2]] += round(after.count(key) - before.count(key), 6)
    more: dict[str, list[_Key]] = defaultdict(list)
    fewer: dict[str, list[_Key]] = defaultdict(list)
    edited: dict[tuple[str, str, str], list[_Key]] = defaultdict(list)
    for key in sorted(apart):
        change = after.count(key) - before.count(key)
        if total[key[:2]] * change > 0:
            (more if change > 0 else fewer)[key.name].append(key)
        elif total[key[:2]]:
            edited[key[:3]].append(key)
    for group in (more, fewer):
        for name, ones in group.items():
            paired = _paired(ones, edited)
            group[name] = [key for key in ones if key not in paired]
            for key, other in paired.items():
                if (
                    abs(
                        before.count(key)
                        + before.count(other)
                        - after.count(key)
                        - after.count(other)
                    )
                    > 1e-9
                ):
                    yield (key, other) if after.count(key) else (other, key)
    for name in sorted({*more, *fewer}):
        gone = fewer[name]
        for key in more[name]:
            like = next((one for one in gone if after.count(key) == before.count(one)), None)
            if like is not None:
                gone.remove(like)
            yield key, like
        yield from ((key, None) for key in gone)


def _paired(
    ones: Sequence[_Key], edited: Mapping[tuple[str, str, str], Sequence[_Key]]
) -> Mapping[_Key, _Key]:
    """Return for each key the edited one that its line was, or is: of the same function, alike."""
    alike = [
        (likeness, key, other)
        for key in ones
        for other in edited.get(key[:3], ())
        for likeness in [_likeness(key.text, other.text)]
        if likeness[0]
    ]
    found: dict[_Key, _Key] = {}
    for _, key, other in sorted(alike, reverse=True):
        if key not in found and other not in found.values():
            found[key] = other
    return found


def _likeness(text: str, other: str) -> tuple[bool, float]:
    """Whether both lines may be of one function, of which a comprehension is part; how alike."""
    (function, _, line), (of, _, was) = text.partition(": "), other.partition(": ")
    alike = difflib.SequenceMatcher(None, line, was).ratio()
    inside = "<" in (function[:1], of[:1]) and alike >= _ALIKE
    return function == of or inside, alike


def _apart(one: Sequence[float] | None, other: Sequence[float] | None) -> bool:
    low, high = sorted((one or [0.0], other or [0.0]), key=max)
    return max(low) < min(high) - 1e-9


def _home(place: tuple[str, str], before: _Side, after: _Side) -> tuple[str, str]:
    """Return the place, or of a line that head has no more the one most alike that base had not."""
    if place not in before.lines or place in after.lines:
        return place
    file, text = place
    new = [
        (likeness, one)
        for one in after.lines.keys() - before.lines.keys()
        for likeness in [_likeness(text, one[1])]
        if one[0] == file and likeness[0]
    ]
    return max(new)[1] if new else place


def _is_edited(key: _Key, old: _Key) -> bool:
    return key != old and key.signature == old.signature


def _of_a_place(
    place: tuple[str, str],
    keys: Sequence[_Key],
    changed: Mapping[_Key, _Key | None],
    before: _Side,
    after: _Side,
) -> Difference:
    def gain(key: _Key) -> float:
        old = changed[key] or key
        stayed = after.time(old) - before.time(key) if _is_edited(key, old) else 0.0
        return after.time(key) - before.time(old) + stayed

    seconds = sum(map(gain, keys))
    way = 1 if seconds >= 0 else -1
    lead = max(keys, key=lambda key: (_is_read(key, before, after), way * gain(key), key))
    arguments: dict[str, Plain] = {
        "operator": lead.name,
        "before": before.count(lead),
        "after": after.count(lead),
        "seconds": gain(lead),
        "others": len(keys) - 1,
    }
    code = "operator-kernel" if lead.text == "device" else "operator-calls"
    old = changed[lead]
    if old and _is_edited(lead, old):
        arguments["before"] = before.count(lead) + before.count(old)
        arguments["after"] = after.count(lead) + after.count(old)
    elif old:
        code = "operator-tensors"
        arguments |= {"before": old.signature, "after": lead.signature, "calls": after.count(lead)}
    side = after if place in after.lines else before
    known = abs(seconds) >= _LEAST_SHARE * min(before.call_s, after.call_s)
    return Difference(
        "operators",
        code,
        arguments,
        seconds=seconds if known else 0.0,
        metric="latency",
        file=place[0],
        line=side.lines.get(place, 0),
    )


def _is_read(key: _Key, before: _Side, after: _Side) -> bool:
    return key.name in _READS and after.count(key) >= before.count(key)


def _slower(before: _Side, after: _Side, said: set[str]) -> Iterator[Difference]:
    """Yield what takes another time at the same count."""
    least = _LEAST_SHARE * min(before.call_s, after.call_s)
    for key in sorted(before.times.keys() & after.times.keys()):
        if key.name in said or min(before.runs, after.runs) < RUNS:
            continue
        old, new = before.time(key), after.time(key)
        low, high = sorted((old, new))
        if abs(new - old) < least or high < _LEAST_RATIO * low:
            continue
        if _apart(before.times[key], after.times[key]):
            yield Difference(
                "operators",
                "operator-time",
                {"operator": key.name, "calls": after.count(key), "before": old, "after": new},
                seconds=new - old,
                metric="latency",
                file=key.file,
                line=after.lines.get((key.file, key.text), 0),
                exact=False,
            )
