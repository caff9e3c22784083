"""Whether reports are shards of one report: what has to agree in them. Pure.

Values are shown as Python writes them: reports come from machines that ran strangers' code, and
what they say is printed to a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from perfci.errors import UsageError
from perfci.record.report import Report
from perfci.verdict.sharding import Shard, parse_shard

Named = tuple[str, Report]
"""A report with the name of its file, for messages."""
_Traits = Mapping[str, Callable[[Report], object]]

_OF_ONE_RUN: _Traits = {
    "perfci's version": lambda report: report.perfci_version,
    "the command": lambda report: report.command,
    "head's commit": lambda report: report.head.sha,
    # a check's cases may have baselines of different commits
    "base's commit": lambda report: (
        report.base.sha if report.base and report.command != "check" else ""
    ),
    "what is injected": lambda report: dict(report.injected),
}
_OF_ONE_ENVIRONMENT: _Traits = {
    "base's environment": lambda report: (
        report.base_environment.key if report.base_environment else ""
    ),
    "the number of shards": lambda report: report.shard.partition("/")[2],
    "the split": lambda report: report.split,
}


def require_one_run(named: Sequence[Named]) -> None:
    """Raise UsageError where two reports are not of one run of one command."""
    _require_alike(named, _OF_ONE_RUN, "Merge the reports of one run only.")


def numbered(named: Sequence[Named], expect: int | None) -> dict[Shard, Report]:
    """Return one environment's reports by their shards, in order; a whole report is shard 1/1.

    UsageError where they are not shards of one report, one is there twice, or there should be
    ``expect`` of them and their own number is another.
    """
    found: dict[Shard, Named] = {}
    for name, report in named:
        shard = _shard(name, report, alone=len(named) == 1)
        if shard in found:
            raise UsageError(
                "shard-twice",
                f"{name} and {found[shard][0]} are both shard {shard} of "
                f"{report.environment.key!r}",
                "Give each shard's report once: of two attempts, the later one.",
            )
        if expect is not None and shard.count != expect:
            raise UsageError(
                "other-count",
                f"{name} is shard {shard}, and --expect asks for {expect}",
                "Give as --expect what the shards were made with: `perfci plan` tells it.",
            )
        found[shard] = (name, report)
    advice = "All shards need the same --shard count, benchmarks, -k and --durations."
    _require_alike(named, _OF_ONE_ENVIRONMENT, advice)
    return {shard: found[shard][1] for shard in sorted(found)}


def _shard(name: str, report: Report, *, alone: bool) -> Shard:
    if not report.shard and alone:
        return Shard(1, 1)
    if not report.shard:
        raise UsageError(
            "no-shard",
            f"{name} is a whole report, and not the only one of {report.environment.key!r}",
            "Measure the parts with `--shard 1/2` and `--shard 2/2`.",
        )
    try:
        return parse_shard(report.shard)
    except ValueError as error:
        raise UsageError(
            "bad-shard", f"{name} says it is shard {report.shard!r}: {error}", "Measure it again."
        ) from error


def _require_alike(named: Sequence[Named], traits: _Traits, advice: str) -> None:
    (name, first), *others = named
    for other, report in others:
        for what, of in traits.items():
            if of(first) != of(report):
                raise UsageError(
                    "not-one-report",
                    f"{name} and {other} are no parts of one report: "
                    f"{what} is {of(first)!r} and {of(report)!r}",
                    advice,
                )
