"""Graph breaks and recompiles, heard from torch.compile's log as they occur.

If something that is private to torch is absent, its metric is missing, never 0.

Verified on torch 2.13: for a break inside a loop, torch skips the whole frame (no graph at all). A
nested break is logged for every frame it passes. A break in a function that is called twice is
logged twice.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfci.metrics import Reading
from perfci.metrics.graphs import counters, frames_traced
from perfci.model.worker import GraphEvent

# Parsing torch.compile's messages: the place in the user's code, and the reason in one line.

_BREAK_PLACE = re.compile(r"in user code at (?P<file>[^\n]+):(?P<line>\d+)")
_FRAME_PLACE = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
_RECOMPILE_PLACE = re.compile(r"(?:in |\()(?P<file>/[^\n)]+):(?P<line>\d+)")
_REASON = re.compile(r"^(?:Graph Break )?Reason: ", re.MULTILINE)
_GUARD = re.compile(r"^\s*- (?:\d+/\d+: )?(?P<guard>\S[^\n]*)", re.MULTILINE)
_GUARD_PLACE = re.compile(r"# +(?P<file>\S+):(?P<line>\d+) in ")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class UserLine:
    """A line of the user's code. ``leaf`` is the place that torch names, which may be in torch."""

    file: str
    line: int
    leaf: tuple[str, int] = field(compare=False, default=("", 0))


def break_place(message: str) -> UserLine:
    """Return the innermost line outside torch that a graph break's message names."""
    frames = [(match["file"], int(match["line"])) for match in _FRAME_PLACE.finditer(message)]
    named = _BREAK_PLACE.search(message)
    leaf = (named["file"], int(named["line"])) if named else (frames[-1] if frames else ("", 0))
    if not _inside_torch(leaf[0]):
        return UserLine(*leaf, leaf=leaf)
    users = [frame for frame in frames if not _inside_torch(frame[0])]
    return UserLine(*(users[-1] if users else leaf), leaf=leaf)


def recompile_place(message: str) -> UserLine:
    """Return the line of the guard that failed, or else of the function that the message names.

    torch writes only the end of a guard's path, so the function's path is compared by its end.
    """
    match = _RECOMPILE_PLACE.search(message)
    if not match:
        return UserLine("", 0)
    guard = _GUARD.search(message)
    guard_place = _GUARD_PLACE.search(guard["guard"]) if guard else None
    if guard_place and match["file"].endswith(guard_place["file"]):
        return UserLine(match["file"], int(guard_place["line"]))
    return UserLine(match["file"], int(match["line"]))


def reason_of(message: str) -> str:
    """Return the reason in a message as one line of at most 300 characters."""
    guard = _GUARD.search(message)
    if message.startswith("Recompiling") and guard:
        return _short(guard["guard"].split("  # ", 1)[0])
    text = _REASON.split(message, maxsplit=1)[-1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # "Encountered graph break when attempting to trace CALL:" only announces the reason.
    while len(lines) > 1 and lines[0].endswith(":"):
        lines.pop(0)
    explanation = "".join(lines[1:2]) if lines[1:2] and lines[1].startswith("Explanation:") else ""
    headline = lines[0] if lines else ""
    return _short(f"{headline}: {explanation.removeprefix('Explanation:').strip()}".rstrip(": "))


def relative_to(root: str, text: str) -> str:
    """Return ``text`` with paths inside ``root`` relative to it."""
    return text.replace(root.rstrip("/") + "/", "") if root.rstrip("/") else text


def _short(text: str) -> str:
    plain = _ADDRESS.sub("", text).strip()  # an address differs in every process
    return plain if len(plain) <= _LONGEST_REASON else plain[: _LONGEST_REASON - 1] + "…"


def _inside_torch(file: str) -> bool:
    origin = getattr(sys.modules.get("torch"), "__file__", None)
    return bool(origin) and file.startswith(str(Path(str(origin)).parent) + "/")


_DYNAMO = "torch._dynamo"
_BREAK_LOGGER, _RECOMPILE_LOGGER = ".__graph_breaks", ".__recompiles"
"""Endings of the names of torch's loggers."""
_KINDS = _BREAK, _RECOMPILE, _LIMIT = "graph_break", "recompile", "recompile_limit"
_SKIPPED = "skipped_frame"
"""Kind of a break after which torch could not resume."""
_LIMITS = frozenset({"recompile_limit", "accumulated_recompile_limit", "cache_size_limit"})
"""First arguments of the warnings that torch logs when it gives up recompiling."""
_LATE = "torch.compile ran before perfci could listen: import torch at the top of the file"


@dataclass(slots=True)
class GraphWatch:
    """Listens to one worker's compilations, whatever calls torch.compile.

    Call ``install`` once torch is loaded, before anything is compiled. Call it again after set-up,
    which may have changed torch's logging. ``install`` imports nothing that torch has not imported.
    After it, ``summary`` may be called at any time. ``traced_before`` is the number of frames that
    Dynamo had traced when the measurement began.
    """

    traced_before: int = field(default_factory=frames_traced)
    _heard: list[tuple[str, UserLine, str]] = field(default_factory=list)
    """Each event's kind, place and reason."""
    _by_leaf: dict[tuple[str, int], UserLine] = field(default_factory=dict)
    _listener: _Listener | None = None
    _before: dict[str, Counter[str]] = field(default_factory=dict)
    _resumed_before: int = 0
    _why_unheard: str = "the worker didn't listen to torch.compile"

    def install(self) -> None:
        """Listen from now on. Torch prints no more than it would without perfci."""
        if "TORCH_LOGS" in os.environ:
            self._why_unheard = (
                "TORCH_LOGS is set, which keeps perfci from listening to torch.compile"
            )
            return
        try:
            import torch._logging

            torch._logging.set_logs(graph_breaks=True, recompiles=True)  # noqa: SLF001
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            self._why_unheard = f"this torch can't log graph breaks ({error})"
            return
        dynamo_logger = logging.getLogger(_DYNAMO)
        # set_logs also makes torch print these records: have torch's own handlers drop them
        for handler in dynamo_logger.handlers:
            if handler is not self._listener:
                handler.addFilter(_torch_would_print)
        if self._listener is None:
            self._listener = _Listener(self)
            self._before = counters() or {}
            self._resumed_before = len(_resumed())
            self._why_unheard = _LATE if frames_traced() > self.traced_before else ""
        if self._listener not in dynamo_logger.handlers:
            dynamo_logger.addHandler(self._listener)

    def hear(self, record: logging.LogRecord) -> None:
        """Keep the break, recompile or reached limit that a record of Dynamo's log reports."""
        if record.name.endswith(_BREAK_LOGGER):
            message = record.getMessage()
            place = self._known_user_line(break_place(message))
            self._heard.append((_BREAK, place, reason_of(message)))
        elif record.name.endswith(_RECOMPILE_LOGGER):
            message = record.getMessage()
            self._heard.append((_RECOMPILE, recompile_place(message), reason_of(message)))
        elif isinstance(record.args, tuple) and record.args and record.args[0] in _LIMITS:
            place = recompile_place(record.getMessage())
            self._heard.append((_LIMIT, place, f"{record.args[0]} reached"))

    def _known_user_line(self, place: UserLine) -> UserLine:
        """Return the user's line for a break.

        If a break is inside torch, torch names the user's line only the first time, so the line is
        remembered by the place inside torch.
        """
        if (place.file, place.line) != place.leaf:
            self._by_leaf[place.leaf] = place
        return self._by_leaf.get(place.leaf, place)

    def summary(self, root: str) -> Reading:
        """Return the metrics and events of what was heard, with files relative to ``root``."""
        if self._why_unheard:
            names = ("graph_breaks", "recompiles", "graphs")
            return Reading(missing=dict.fromkeys(names, self._why_unheard))
        made = self._counted()
        events = self._events(made["frames"], root)
        kinds = Counter(event.kind for event in events)
        recompiles = sum(kind == _RECOMPILE for kind, _, _ in self._heard)
        values: dict[str, float] = {"recompiles": float(recompiles)}
        missing: dict[str, str] = {}
        graphs = made["stats"].get("unique_graphs")
        if graphs is None and made["frames"]["total"]:
            graphs = 0  # frames were traced, and no graph was counted
        if graphs is None:
            missing["graphs"] = "this torch doesn't count its graphs where perfci looks"
        else:
            values["graphs"] = float(graphs)
        if graphs == 0:
            missing["graph_breaks"] = "no graph was compiled"
            if not kinds[_SKIPPED]:
                nothing = "torch.compile found nothing that it could compile"
                events.append(GraphEvent(_SKIPPED, nothing))
                kinds[_SKIPPED] += 1
        elif graphs is None and not events:
            missing["graph_breaks"] = "torch.compile seems to have compiled nothing"
            missing["recompiles"] = missing["graph_breaks"]
            del values["recompiles"]
        else:
            values["graph_breaks"] = float(kinds[_BREAK] + kinds[_SKIPPED])
        warnings = []
        if kinds[_LIMIT]:
            warnings.append("torch.compile reached its recompile limit; further calls run in eager")
        if skipped := kinds[_SKIPPED]:
            warnings.append(f"torch.compile gave up on frames, which run in eager: {skipped}")
        if made["inductor"]["cudagraph_skips"]:
            warnings.append("CUDA graphs were requested but not used (they need CUDA)")
        return Reading(values, missing, tuple(events), tuple(warnings))

    def _counted(self) -> Mapping[str, Counter[str]]:
        """Return what Dynamo has counted since the measurement began, by group."""
        made: dict[str, Counter[str]] = defaultdict(Counter)
        for group, counts in (counters() or {}).items():
            before = self._before.get(group, Counter())
            made[group] = Counter({name: count - before[name] for name, count in counts.items()})
        return made

    def _events(self, frames: Counter[str], root: str) -> list[GraphEvent]:
        """Return what was heard, each once with its count: breaks, then recompiles, then limits.

        If torch couldn't resume after a break, the break's frame was skipped: it runs in eager.
        """
        limits = sum(kind == _LIMIT for kind, _, _ in self._heard)
        skipped: set[UserLine] = set()
        if frames["total"] - frames["ok"] > limits:
            resumed = _resumed()[self._resumed_before :]
            breaks = [place for kind, place, _ in self._heard if kind == _BREAK]
            skipped = {place for place in breaks if place.leaf not in resumed}
        return [
            GraphEvent(
                _SKIPPED if kind == _BREAK and place in skipped else kind,
                relative_to(root, reason) or "torch gave no reason",
                relative_to(root, place.file),
                place.line,
                count,
            )
            for (kind, place, reason), count in sorted(
                Counter(self._heard).items(), key=lambda item: _KINDS.index(item[0][0])
            )
        ]


class _Listener(logging.Handler):
    def __init__(self, watch: GraphWatch) -> None:
        super().__init__(logging.DEBUG)
        self.watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.watch.hear(record)
        except Exception:  # noqa: BLE001 - by logging's convention: report it, and let torch go on
            self.handleError(record)


def _torch_would_print(record: logging.LogRecord) -> bool:
    return not record.name.endswith((_BREAK_LOGGER, _RECOMPILE_LOGGER))


def _resumed() -> list[tuple[str, int]]:
    """Return (file, line) of each break after which torch resumes, by torch's list of them."""
    reasons: Any = getattr(sys.modules.get("torch._dynamo.utils"), "graph_break_reasons", ())
    stacks = [getattr(reason, "user_stack", ()) for reason in reasons]
    return [(stack[-1].filename, stack[-1].lineno) for stack in stacks if stack]
