"""``merge``: shards' reports to one an environment, decided anew, and written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.commands.project import load_report
from perfci.errors import DamagedFile, OutsideError
from perfci.outputs import STANDARD_OUTPUT, check_writable, files_of, rendered, write_files
from perfci.verdict.merge import Merged, merge

if TYPE_CHECKING:
    from perfci.model.report import Report
    from perfci.verdict.policy import Policy

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True)
class MergedReport:
    """One environment's report. ``incomplete``: a shard is missing.

    ``outputs`` are its own files; ``shown`` are the texts that go to standard output, by format.
    ``problem`` is why its files could not be written.
    """

    report: Report
    incomplete: bool
    outputs: Mapping[str, Path]
    shown: Mapping[str, str]
    problem: OutsideError | None


def merge_reports(
    files: Sequence[Path],
    policy: Policy,
    outputs: Mapping[str, Path],
    *,
    expect: int | None,
    notes: Sequence[str] = (),
) -> tuple[MergedReport, ...]:
    """Join the reports in ``files``, decide by ``policy``, and write ``outputs``.

    Of several environments each has its key before its files' suffixes. Nothing is written where
    one of them can't be rendered. ``notes`` are added to each report's.
    """
    named = [(str(file), load_report(file)) for file in files]
    merged = merge(named, policy, expect=expect, notes=notes)
    each = [outputs if len(merged) == 1 else _of_environment(outputs, one) for one in merged]
    for chosen in each:
        check_writable(chosen)
    # all before the first is written: no environment's report is there without the others'
    texts = [rendered(one.report, chosen) for one, chosen in zip(merged, each, strict=True)]
    return tuple(
        _written(one, chosen, text) for one, chosen, text in zip(merged, each, texts, strict=True)
    )


def _written(
    merged: Merged, outputs: Mapping[str, Path], texts: Mapping[Path, str]
) -> MergedReport:
    problem = None
    try:
        write_files({path: text for path, text in texts.items() if path != STANDARD_OUTPUT})
    except OutsideError as error:
        problem = error
    shown = {name: texts[path] for name, path in outputs.items() if path == STANDARD_OUTPUT}
    return MergedReport(merged.report, bool(merged.missing), outputs, shown, problem)


def _of_environment(outputs: Mapping[str, Path], merged: Merged) -> dict[str, Path]:
    """Name the environment in each file's name. A key that no perfci made is not made a path."""
    key = merged.report.environment.key
    if not _KEY.fullmatch(key):
        raise DamagedFile(
            "damaged-report",
            f"a report's environment has a key that perfci doesn't make: {key!r}",
            "Write the report again with --json.",
        )
    own = {
        name: path.with_name(f"{path.stem}.{key}{path.suffix}")
        for name, path in files_of(outputs).items()
    }
    return {**outputs, **own}
