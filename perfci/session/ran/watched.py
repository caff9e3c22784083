"""The watch of one worker, as its parent holds it: where it writes, and what that comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.session.ran.findings import read_findings
from perfci.session.ran.judging import Judged, judge
from perfci.session.ran.places import Places
from perfci.worker.hook.perfci_commands import VARIABLE


@dataclass(frozen=True, slots=True)
class Watched:
    """The file that one worker and its children write to, and whose files are whose."""

    findings: Path
    places: Places
    python_path: Sequence[str]
    built: bool

    def begin(self) -> None:
        """Make the file: a watch writes to it, and makes none anew where it was removed."""
        self.findings.touch()

    def environment(self) -> dict[str, str]:
        """Return what its environment has to say."""
        return {VARIABLE: self.places.settings(str(self.findings))}

    def judged(self) -> Judged:
        """Return what it ran until now; once it has ended, all of it. The file is removed."""
        found = read_findings(self.findings)
        self.findings.unlink(missing_ok=True)
        return judge(found, self.places, self.python_path, built=self.built)
