"""What strangers' bytes reach: each target takes them as a command would, and shows what it can."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.errors import PerfciError, UsageError

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"


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
    from perfci.report.exporters import formats

    report = report_in(content, "report.json")
    for one in formats()[0].values():
        one.text(report)


# Recorded runs: an export of a history, and other tools' results.


def _exports() -> list[bytes]:
    from perfci.history.importers import read_foreign
    from perfci.history.interchange import to_lines

    foreign = [read_foreign(one, "results.json", "2026-01-01T00:00:00+00:00") for one in _results()]
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

    read_foreign(content, "results.json", "2026-01-01T00:00:00+00:00")


# Baselines: committed files.


CASE = "case[a=1]"


def _baselines() -> list[bytes]:
    from perfci.baselines.store import Baseline, StoredSession, StoredWorker
    from perfci.model.codec import encode

    worker = StoredWorker(1, 100, {"latency_p50": 1e-3, "cold_start": 1.0}, (1e-3,) * 9)
    session = StoredSession("a", "2026-01-01T00:00:00+00:00", (worker,) * 5)
    stored = Baseline(CASE, "h" * 16, "0" * 40, "key", "2026-01-01T00:00:00+00:00", (session,))
    return [encode(stored).encode()]


def _baseline(content: bytes) -> None:
    from perfci.baselines.store import BaselineStore

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
    from perfci.forges.actions import read_event

    return read_event(content, "event.json")


# Arguments: addresses, durations, shares and sizes as somebody types them.


def _arguments() -> list[bytes]:
    return [b"https://hooks.example/services/a?b=c", b"postgresql://user@host/database", b"10m",
            b"5%", b"latency=5%", b"2GiB", b"1/4", b"encoder[batch=1] and not lm"]  # fmt: skip


def _argument(content: bytes) -> None:
    """Believed where any of them takes it; a ValueError of ours is a sentence of the command."""
    from perfci.forges.webhook import require_webhook
    from perfci.history.address import parse_address
    from perfci.units import parse_duration, parse_share
    from perfci.verdict.shards import parse_shard

    refusals = []
    text = content.decode("utf-8", "surrogateescape")  # as Python has the command line
    parsers: tuple[Callable[[str], object], ...] = (
        *(require_webhook, parse_address, parse_duration, parse_share, parse_shard),
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
