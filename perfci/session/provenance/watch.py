"""The watch of one worker, as its parent holds it: where it writes, and what that comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.model.case import Failure
from perfci.model.ran import WRONG_CODE
from perfci.session.provenance.attribution import Provenance, WrongCode, provenance_of
from perfci.session.provenance.events import ENTRY_POINTS, read_events
from perfci.session.provenance.places import Places
from perfci.worker.hook.perfci_watch.ownership import VARIABLE


@dataclass(frozen=True, slots=True)
class Watched:
    """The file that one worker and its children write to, and whose files are whose."""

    events: Path
    places: Places
    python_path: Sequence[str]
    built: bool

    def begin(self) -> None:
        """Make the file: a watch writes to it, and makes none anew where it was removed."""
        self.events.touch()

    def environment(self) -> dict[str, str]:
        """Return what its environment has to say."""
        return {VARIABLE: self.places.settings(str(self.events))}

    def provenance(self, *, failed: int = 0) -> Provenance:
        """Return what it ran until now; once it has ended, all of it. The file is removed.

        ``failed`` is the worker's process id where it ended before it could look at all it had.
        """
        events = read_events(self.events)
        self.events.unlink(missing_ok=True)
        return provenance_of(events, self.places, self.python_path, built=self.built, failed=failed)


# In words.

_SHOWN = 3
_CODE_OF = {
    "checkout": " of the user's checkout",
    "another tree": ", another tree of the project",
    "copy": ", an installed copy of the project",
    "perhaps a copy": ", perhaps an installed copy of the project",
}
_VERBS = {
    "import": "is imported from",
    "kept out": "would be imported from",
    **dict.fromkeys(("open", ENTRY_POINTS), "is read from"),
    "run": "is run from",
}


def described(one: WrongCode, side: str) -> str:
    """Return in one line what is wrong."""
    if one.where == "child":
        return f"`{one.file}` could not be watched: which code it imported isn't known"
    what = f"`{one.name}`" if one.name and one.how != "open" else "a file"
    verb = _VERBS.get(one.how, "is loaded from")
    return f"{what} {verb} {one.file}{_CODE_OF[one.where]}: not {side}'s own code"


def wrong_code(wrong: Sequence[WrongCode], case: str, side: str, log_tail: str) -> Failure:
    """Return the failure of a case whose worker ran what isn't its side's."""
    lines = [described(one, side) for one in wrong[:_SHOWN]]
    if len(wrong) > _SHOWN:
        lines[-1] += f" (and {len(wrong) - _SHOWN} more)"
    advice = dict.fromkeys(one.advice for one in wrong[:_SHOWN] if one.advice)
    message = "; ".join(lines) + "".join(f"\n{one}" for one in advice)
    return Failure(case, side, "finish", WRONG_CODE, message, log_tail)


def record_removed(case: str, side: str) -> Failure:
    """Return the failure of a case whose worker measured, and whose events were removed."""
    message = (
        "what this worker ran isn't known: what it wrote down was removed\n"
        "Leave the session's files (below TMPDIR's parent) as they are."
    )
    return Failure(case, side, "finish", WRONG_CODE, message)
