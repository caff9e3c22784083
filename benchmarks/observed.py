"""A session of perfci in a process of its own, and what each of its workers gave.

A script that observes sessions starts itself anew, by ``outputs_of``, for each of them; started
so, it calls ``be_session``, after whatever it changes of perfci for that session.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from perfci.model.codec import from_plain, to_plain
from perfci.model.measuring import WorkerOutput

OBSERVED = "--session"
Pairs = dict[str, list[tuple[WorkerOutput, WorkerOutput]]]


def outputs_of(script: str, folder: Path, *arguments: str) -> list[WorkerOutput]:
    """Run ``script``'s session in ``folder`` and return its workers' outputs.

    The first of ``arguments`` is the script's own; the others are perfci's.
    """
    done = subprocess.run(
        [sys.executable, script, OBSERVED, *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    try:
        plain = json.loads(done.stderr.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise SystemExit(f"the session failed:\n{done.stderr}") from None
    return [from_plain(one, WorkerOutput) for one in plain]


def is_session() -> bool:
    """Say whether this process was started by ``outputs_of``."""
    return sys.argv[1:2] == [OBSERVED]


def be_session() -> None:
    """Be perfci's own command line, whose workers' outputs are noted as they come."""
    from perfci.measure.progress import Journal

    outputs: list[WorkerOutput] = []
    plain = Journal.result

    def noted(this: Journal, slug: str, result: Any, printed: str) -> None:
        plain(this, slug, result, printed)
        if isinstance(result, WorkerOutput):
            outputs.append(result)

    Journal.result = noted  # type: ignore[assignment, method-assign]
    from perfci.cli.main import main

    del sys.argv[1:3]
    try:
        main()
    finally:
        print(json.dumps([to_plain(one) for one in outputs]), file=sys.stderr)


def show(found: Any, file: Path | None) -> None:
    """Print what was found as JSON, and write it to ``file`` where one is named."""
    text = json.dumps(found, indent=1)
    print(text)
    if file:
        file.write_text(text + "\n", encoding="utf-8")


def pairs_of(outputs: Sequence[WorkerOutput], metrics: Iterable[str] = ()) -> Pairs:
    """Return each case's pairs, base's and head's worker of a round that has all ``metrics``."""
    rounds: dict[tuple[str, int], dict[str, WorkerOutput]] = defaultdict(dict)
    for one in outputs:
        if all(metric in one.values for metric in metrics):
            rounds[one.case, one.round][one.side] = one
    found: Pairs = defaultdict(list)
    for (case, _), sides in sorted(rounds.items(), key=lambda one: one[0]):
        if len(sides) == 2:
            found[case].append((sides["base"], sides["head"]))
    return found
