"""Pure: what a forge's answer means for who asked."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from perfci.errors import OutsideError, UsageError
from perfci.publish.http import Answer, asked_wait, whole_seconds
from perfci.publish.retry import Retryable
from perfci.render.clean import clean_line

_LIMITED = re.compile(
    r"rate limit|abuse detection|wait a few minutes|retry your request again later", re.IGNORECASE
)
_SECONDARY_WAIT = 60.0
"""What GitHub's guide asks for where a rate limit names no time, in s."""


@dataclass(frozen=True, slots=True)
class Service:
    """A forge, as messages name it.

    ``address`` and ``token`` are the variables that hold them, ``example`` is an address, and
    ``rights`` where the rights of a token are told.
    """

    name: str
    address: str
    token: str
    example: str
    rights: str = "see docs/commenting.md"
    later: str = "Run it again later."

    @property
    def slug(self) -> str:
        """The name as slugs begin with it."""
        return self.name.lower()


class Unsure(Retryable):
    """Nobody knows whether it took effect, or it came too soon: look, and then repeat it."""


class Refused(OutsideError):
    """The token may not do this. Nothing was written."""


class Rejected(OutsideError):
    """The forge does not take this request as it is. Nothing was written."""


class TooLong(OutsideError):
    """The answer is longer than is read of one; a part of it may not be."""


class Missing(OutsideError):
    """What was asked for isn't there, or the token may not even know that it is."""


def judge(answer: Answer, request: str, now: float, service: Service) -> None:
    """Return where ``answer`` is a success, else raise what it means. ``now`` in s since 1970."""
    status = answer.status
    if 200 <= status < 300:
        return
    what = f"{request} was answered with {status} {_said(answer)}".rstrip()
    if status in {403, 429}:
        wait = _asked_wait(answer, now)
        if wait is not None:
            said = f"{service.name} limits how often it is asked."
            raise Unsure(f"{service.slug}-limit", what, said, wait or None)
    if status >= 500 or status in {408, 409, 429}:  # GitLab's 409: the status is being written
        raise Unsure(f"{service.slug}-failed", what, service.later)
    if status == 401:
        raise UsageError(
            "bad-token", what, f"Give the job a token that is valid: {service.token} in its env."
        )
    if status == 403:
        raise Refused("no-rights", what, f"Give the job's token the right: {service.rights}.")
    if status in {404, 410}:
        raise Missing(
            "not-there", what, "Is --repository right, and may the token read that repository?"
        )
    raise Rejected(f"{service.slug}-refused", what, "Please report it with this line.")


def _asked_wait(answer: Answer, now: float) -> float | None:
    """Return how long it wants to be left alone, in s; None where it limits no rate."""
    after = answer.headers.get("retry-after", "")
    asked = asked_wait(after, now)
    if asked is not None:
        return asked
    if answer.headers.get("x-ratelimit-remaining") == "0":
        reset = whole_seconds(answer.headers.get("x-ratelimit-reset", ""))
        # a second more: the header doesn't say when in that second
        return _SECONDARY_WAIT if reset is None else max(0.0, reset - now) + 1.0
    if after:  # nothing that names a time
        return _SECONDARY_WAIT
    return _SECONDARY_WAIT if _LIMITED.search(_said(answer)) else None


def _said(answer: Answer) -> str:
    """Return the forge's own words, or nothing: a proxy's page of HTML says nothing."""
    try:
        plain = msgspec.json.decode(answer.text)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if not isinstance(plain, dict):
        return ""
    said = plain.get("message") or plain.get("error")
    if isinstance(said, dict):  # GitLab's, by field
        said = msgspec.json.encode(said).decode()
    return clean_line(said, 200) if isinstance(said, str) else ""
