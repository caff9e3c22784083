"""Everything perfci raises on purpose.

    PerfciError                 slug, what happened, what to do; carries the exit code
    ├── UsageError        (2)   a wrong option, ref, configuration or benchmark definition
    │   ├── BenchmarkError      a benchmark is written wrongly; names file and line
    │   │   └── UnfitBenchmark  so that the commit it belongs to can't be measured
    │   ├── UnfitCommit         a commit has no such case, or imports another copy of its package
    │   └── NoRepository        there is no repository with a working tree here
    ├── MeasureError      (3)   no trustworthy verdict can be reached
    │   ├── UnbuiltCommit       a commit can't be checked out or built, or none of its files imports
    │   └── NoTimeToImport      the budget ended before a benchmark file was imported
    ├── OutsideError      (4)   git, disk, database or GitHub failed
    │   └── DamagedFile         a stored file is not valid: truncated, NaN, another schema
    └── Bug               (4)   perfci failed; made in ``cli/`` of whatever else was raised

``UnfitBenchmark``, ``UnfitCommit`` and ``UnbuiltCommit`` are each an ``UnmeasurableCommit``. The
commit would fail again tomorrow, so a night records it and a search skips it.

    Unusable                a worker's: the benchmark can't be measured. It is reported as a failure

Caught once, in ``cli/``. A traceback on a user's screen is a bug.
"""

from __future__ import annotations

from collections.abc import Sequence

EXIT_PASS = 0
EXIT_REGRESSION = 1
EXIT_USAGE = 2
EXIT_NO_VERDICT = 3
EXIT_OUTSIDE = 4
EXIT_INTERRUPTED = 130


class PerfciError(Exception):
    """An error that tells people what to do.

    ``slug`` is stable and searchable; ``message`` says what happened; ``advice`` what to do.
    """

    exit_code = EXIT_USAGE

    def __init__(self, slug: str, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message}\n{self.advice}" if self.advice else self.message


class UsageError(PerfciError):
    """The command line, the configuration or a ref is wrong."""


class BenchmarkError(UsageError):
    """A benchmark is written wrongly; the message begins with ``file:line``."""


class MeasureError(PerfciError):
    """Nothing that could be believed was measured."""

    exit_code = EXIT_NO_VERDICT


class OutsideError(PerfciError):
    """Git, the disk, a database or GitHub failed."""

    exit_code = EXIT_OUTSIDE


class UnmeasurableCommit(PerfciError):
    """The commit is at fault, and would fail again tomorrow. A full disk is not such an error."""


class UnfitBenchmark(UnmeasurableCommit, BenchmarkError):
    """A benchmark of the commit is written wrongly, or has the name of another one."""


class UnfitCommit(UnmeasurableCommit, UsageError):
    """The commit has no case that is selected, or imports another copy of its package."""


class UnbuiltCommit(UnmeasurableCommit, MeasureError):
    """The commit lacks a submodule, doesn't build, or none of its benchmark files imports."""


class NoTimeToImport(MeasureError):
    """The budget ended before it was known whether a side's benchmark files import."""


class NoRepository(UsageError):
    """A folder is in no repository, or in one without a working tree."""


def joined_error(errors: Sequence[PerfciError]) -> PerfciError:
    """Return the first error with the messages of all, and each advice once."""
    first, advice = errors[0], dict.fromkeys(error.advice for error in errors if error.advice)
    messages = "; ".join(error.message for error in errors)
    return type(first)(first.slug, messages, "\n".join(advice))


def refusal(error: OSError) -> OutsideError:
    """Return the error for a refusal by the system that no caller has better advice for."""
    where = f" ({error.filename})" if error.filename else ""
    return OutsideError(
        "system",
        f"the system refused: {error.strerror or error}{where}",
        "Check that the disk is writable and has room; `perfci doctor` looks at both.",
    )


class DamagedFile(OutsideError):
    """A stored file is truncated, malformed or of another schema. Never "no baseline"."""


class Bug(PerfciError):
    """Perfci failed. Its exit code is not a verdict's."""

    exit_code = EXIT_OUTSIDE


class Unusable(Exception):
    """Raised in a worker if a benchmark can't be measured. ``kind`` is the kind of the failure."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def extra_advice(extra: str) -> str:
    """Return how to install ``extra``. perfci is on no index: its bare name may be a stranger's."""
    return (
        f"Install perfci's extra `{extra}` from perfci's own source: for a clone, "
        f"pip install '/path/to/perfci[{extra}]'; for a repository, "
        f"pip install 'perfci[{extra}] @ git+ADDRESS@COMMIT'."
    )
