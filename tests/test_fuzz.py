"""Damaged documents to each reader of strangers' bytes: believed or refused, no traceback, no hang.

``make fuzz`` hands 100,000 to each (``FUZZ_INPUTS``), ``make test-all`` a few hundred.
"""

from __future__ import annotations

import copy
import json
import os
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

from perfci.errors import PerfciError, UsageError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
INPUTS = {"report": 40, "configuration": 150}
"""Of the slower ones; 400 of each other."""
HANG_S = 10.0


@dataclass(frozen=True, slots=True)
class Target:
    """``take`` raises PerfciError for what it refuses; any other exception is a fault."""

    seeds: Callable[[], Sequence[bytes]]
    take: Callable[[bytes], object]
    lines: bool = False


# Configuration: a pull request's pyproject.toml.


def _configurations() -> list[bytes]:
    written = """
[tool.perfci]
benchmarks = "benchmarks"
python_path = ["src"]
build = ["make all"]
build_timeout = "10m"
budget = 600.0
rounds = 5
max_rounds = 20
memory_limit = "2GiB"
alpha = 0.01
cores = [0, 1]
thresholds = { latency_p50 = "5%", peak_host_memory = "4MiB" }
[tool.perfci.metrics.latency_p99]
gate = "warn"
threshold = "10%"
[tool.perfci.quiet]
fork = false
[tool.perfci.aliases]
"new[a=1]" = "old[a=1]"
"""
    return [written.encode(), (ROOT / "pyproject.toml").read_bytes()]


def _configured(content: bytes) -> object:
    from perfci.config.loading import load_config

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_bytes(content)
        return load_config(Path(folder))


# Reports: what stage 1 of a pull request left. What is believed is shown in every way.


def _reports() -> list[bytes]:
    return [(DATA / "golden" / "report.json").read_bytes()]


def _reported(content: bytes) -> None:
    from perfci.commands.project import report_in
    from perfci.report.exporters import FORMATS, exporter

    report = report_in(content, "report.json")
    for name in FORMATS:
        exporter(name).render(report)


# Recorded runs: an export of a history, and other tools' results.


def _exports() -> list[bytes]:
    from perfci.history.importers import read_foreign
    from perfci.history.interchange import to_lines

    foreign = [read_foreign(one, "results.json") for one in _results()]
    return [b"".join(to_lines(one.runs)) for one in foreign]


def _imported(content: bytes) -> None:
    from perfci.history.interchange import from_lines

    for _ in from_lines(content.splitlines(keepends=True), "history.jsonl"):
        pass


def _results() -> list[bytes]:
    folder = DATA / "foreign"
    return [one.read_bytes() for one in sorted(folder.glob("*.json")) if "asv-" not in one.name]


def _foreign(content: bytes) -> None:
    from perfci.history.importers import read_foreign

    read_foreign(content, "results.json")


# Baselines: committed files.


CASE = "case[a=1]"


def _baselines() -> list[bytes]:
    from perfci.baselines import Baseline, StoredSession, StoredWorker
    from perfci.model.codec import encode

    worker = StoredWorker(1, 100, {"latency_p50": 1e-3, "cold_start": 1.0}, (1e-3,) * 9)
    session = StoredSession("a", "2026-01-01T00:00:00+00:00", "0" * 40, (worker,) * 5)
    stored = Baseline(CASE, "h" * 16, "0" * 40, "key", "2026-01-01T00:00:00+00:00", (session,))
    return [encode(stored).encode()]


def _baseline(content: bytes) -> None:
    from perfci.baselines import BaselineStore

    with tempfile.TemporaryDirectory() as folder:
        store = BaselineStore(Path(folder))
        path = store._path("key", CASE)
        path.parent.mkdir()
        path.write_bytes(content)
        store.load("key", CASE)


# GitHub: the event that a workflow hands on.


def _events() -> list[bytes]:
    pull = {
        "number": 7,
        "head": {"sha": "a" * 40, "ref": "b"},
        "base": {"sha": "b" * 40, "ref": "c"},
    }
    whose = {"full_name": "a/b", "owner": {"login": "a"}}
    run = {
        "event": "pull_request",
        "head_sha": "a" * 40,
        "head_branch": "b",
        "head_repository": whose,
    }
    group = {"head_sha": "a" * 40, "base_sha": "b" * 40, "base_ref": "refs/heads/main"}
    return [json.dumps(one).encode() for one in
            ({"pull_request": pull}, {"workflow_run": run}, {"merge_group": group})]  # fmt: skip


def _event(content: bytes) -> object:
    from perfci.forges.actions import NothingToPost, read_event

    try:
        return read_event(content, "event.json")
    except NothingToPost:
        return None


# Arguments: addresses, durations, shares and sizes as somebody types them.


def _arguments() -> list[bytes]:
    return [b"postgresql://user@host/database", b"10m",
            b"5%", b"latency=5%", b"2GiB", b"1/4", b"encoder[batch=1] and not lm"]  # fmt: skip


def _argument(content: bytes) -> None:
    """Believed where any of them takes it; a ValueError of ours is a sentence of the command."""
    from perfci.history.address import parse_address
    from perfci.units import parse_duration, parse_share
    from perfci.verdict.shards import parse_shard

    refusals = []
    text = content.decode("utf-8", "surrogateescape")  # as Python has the command line
    parsers: tuple[Callable[[str], object], ...] = (
        *(parse_address, parse_duration, parse_share, parse_shard),
    )
    for parse in parsers:
        try:
            parse(text)
        except PerfciError as refused:
            refusals.append(refused)
        except ValueError as refused:
            if type(refused) is not ValueError:
                raise
            refusals.append(UsageError("argument", str(refused)))
    if len(refusals) == len(parsers):
        raise refusals[0]


TARGETS = {
    "configuration": Target(_configurations, _configured),
    "report": Target(_reports, _reported),
    "history": Target(_exports, _imported, lines=True),
    "baseline": Target(_baselines, _baseline),
    "foreign": Target(_results, _foreign),
    "event": Target(_events, _event),
    "argument": Target(_arguments, _argument),
}


ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 10**400, 0.0, -0.0, 5e-324,
    1e308, -1e308, "", " ", "\0", "\x1b[31m", "\u202e", "\ud800", "a" * 10_000, "../../etc/passwd",
    "/dev/zero",
    "<script>", "[a](javascript:b)", "@everyone", "`", "|", "\n", "::error::", "%0A", "1" * 5_000,
    "2026-02-30T25:61:61+99:99", "0" * 40, "F" * 40, [], {}, [[]], [{}], {"": None}, ["a"] * 2_000,
)  # fmt: skip
ODD_TEXT = (
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"[" * 3_000, b"{" * 3_000, b'"', b"'''", b"=", b"]",
    b"}", b"9" * 5_000, b"1e999", b"-1e309", b"nan", b"inf", b"1979-05-27T07:32:00Z", b"\\ud800",
    b"\\u0000",
    b"\r", b"\n", b"#", b",", b"true", b"0x", b"1__0", b"\xef\xbb\xbf", b'"""', b"${{ a }}",
)  # fmt: skip
_MOST = 200_000


def damaged(seeds: Sequence[bytes], random: Random, *, lines: bool = False) -> bytes:
    """Return one of ``seeds`` with one to six changes; with ``lines``, JSON a line."""
    content = random.choice(seeds)
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        changed = None
        if random.random() < 0.7:
            changed = (
                _restructured_line(content, random) if lines else _restructured(content, random)
            )
        content = (changed or _bytes(content, random))[:_MOST]
    return content


def _bytes(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    upto = min(len(content), at + random.choice((1, 1, 2, 8, 64, 1_000)))
    piece = content[at:upto]
    new = random.choice((b"", piece * 2, piece[::-1], random.choice(ODD_TEXT), random.randbytes(2)))
    return content[:at] + new + content[upto:] if random.random() < 0.95 else content[:at]


def _restructured_line(content: bytes, random: Random) -> bytes | None:
    lines = content.splitlines(keepends=True)
    if not lines:
        return None
    at = random.randrange(len(lines))
    how = random.random()
    if how < 0.1:
        del lines[at]
    elif how < 0.2:
        lines.insert(random.randrange(len(lines) + 1), lines[at])
    else:
        changed = _restructured(lines[at], random)
        if changed is None:
            return None
        lines[at] = changed + b"\n"
    return b"".join(lines)


def _restructured(content: bytes, random: Random) -> bytes | None:
    """Return JSON with one value changed; nothing where ``content`` is none."""
    try:
        plain = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return _encoded(_changed(plain, random))


def _changed(plain: Any, random: Random) -> Any:
    """Change a value anywhere below; the way down prefers nothing, so that depths are alike."""
    if not isinstance(plain, dict | list) or not plain or random.random() < 0.12:
        return copy.deepcopy(random.choice(ODD))
    if isinstance(plain, list):
        at = random.randrange(len(plain))
        _change_at(plain, at, random)
        return plain
    key = random.choice(sorted(plain))
    how = random.random()
    if how < 0.06:
        del plain[key]
    elif how < 0.12:
        plain[random.choice((key + "x", "", "schema", "__proto__"))] = random.choice(ODD)
    else:
        plain[key] = _changed(plain[key], random)
    return plain


def _change_at(plain: list[Any], at: int, random: Random) -> None:
    how = random.random()
    if how < 0.06:
        del plain[at]
    elif how < 0.12:
        plain.insert(at, copy.deepcopy(plain[at]))
    else:
        plain[at] = _changed(plain[at], random)


def _encoded(plain: Any) -> bytes:
    return json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass")


class Hang(BaseException):
    """An input took longer than any may: BaseException, which nothing catches on the way."""


@dataclass(slots=True)
class Outcome:
    """How many inputs were believed and refused, and the faults: any other end."""

    believed: int
    refused: int
    faults: list[str]


def outcome_of(name: str, target: Target, inputs: int, seed: int) -> Outcome:
    """Hand damaged documents to a target; end early where many are faults."""
    outcome, seeds = Outcome(0, 0, []), target.seeds()
    for number in range(inputs):
        content = damaged(seeds, Random(f"{name} {seed} {number}"), lines=target.lines)
        try:
            with _limited(), warnings.catch_warnings():
                warnings.simplefilter("error")
                target.take(content)
            outcome.believed += 1
        except PerfciError as refused:
            outcome.refused += 1
            if not refused.message or refused.slug == "internal":
                outcome.faults.append(f"{number}: says nothing: {refused!r}")
        except (Exception, Hang) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {str(error)[:200]}"
            outcome.faults.append(f"{number}: {what} ({place.filename}:{place.lineno})")
        if len(outcome.faults) >= 20:
            break
    return outcome


@contextmanager
def _limited() -> Iterator[None]:
    def late(_: int, __: FrameType | None) -> None:
        raise Hang(f"took more than {HANG_S:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    left, _ = signal.setitimer(signal.ITIMER_REAL, HANG_S)  # pytest-timeout's own
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left)


@pytest.mark.parametrize("name", TARGETS)
def test_each_damaged_input_is_believed_or_refused(name: str) -> None:
    inputs = int(os.environ.get("FUZZ_INPUTS", INPUTS.get(name, 400)))
    outcome = outcome_of(name, TARGETS[name], inputs, seed=1)
    assert outcome.faults == []
    assert outcome.refused > 0
    assert outcome.believed > 0


def _break(_: bytes) -> None:
    raise RuntimeError("broken")


def _hang(_: bytes) -> None:
    signal.pause()


@pytest.mark.parametrize(
    ("take", "what"),
    [(_break, "RuntimeError: broken"), (_hang, "Hang: took more than 0 s"), (len, "")],
)
def test_a_traceback_and_a_hang_are_found(
    take: Callable[[bytes], object], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.test_fuzz.HANG_S", 0.05)
    faults = outcome_of("planted", Target(lambda: [b"[1, 2]"], take), 3, seed=0).faults
    assert bool(faults) == bool(what)
    assert all(what in one for one in faults)
