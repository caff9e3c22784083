"""Sends one message to a webhook, whose address is a secret: nothing here ever shows it.

A message is repeated only where it surely didn't arrive: it was never sent whole, or the answer was
429 or 5xx. Where the answer is lost nobody knows, and a message twice would be worse than none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from urllib.parse import SplitResult

from perfci.errors import OutsideError, UsageError
from perfci.publish.http import Answer, Connection, NoAnswer, address_of, asked_wait
from perfci.publish.retry import Retryable, RetryPolicy, retry
from perfci.render.clean import clean_line
from perfci.units import format_duration

POLICY = RetryPolicy(tries=4)
_HEADERS = {
    "Content-Type": "application/json",
    "Connection": "close",  # on one kept open, a message may be lost to a server that is closing
}


class MaybeDelivered(OutsideError):
    """The message was sent and the answer was lost; it is not sent again."""


def require_webhook(url: str) -> SplitResult:
    """Return the parts of a webhook's address; UsageError, which doesn't show it, on none."""
    parts = address_of(url)
    plain = url.isascii() and url.isprintable() and " " not in url
    if parts is None or not plain or "@" in parts.netloc:
        raise UsageError(
            "bad-webhook",
            "the webhook's address is no address (it is a secret, and not shown)",
            "Give it as in https://hooks.slack.com/services/…, best by PERFCI_WEBHOOK.",
        )
    return parts


def send(
    url: str,
    body: bytes,
    policy: RetryPolicy = POLICY,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> None:
    """Send ``body``, which is JSON. OutsideError where it did not arrive."""
    webhook = f"the webhook at {clean_line(require_webhook(url).hostname or '', 100)}"
    with closing(Connection(policy.timeout, most_bytes=0)) as connection:

        def post() -> None:
            try:
                answer = connection.send("POST", url, _HEADERS, body)
            except NoAnswer as failure:
                raise _undelivered(webhook, failure) from None
            _judge(webhook, answer, now())

        retry(post, policy, sleep)


def _undelivered(webhook: str, failure: NoAnswer) -> OutsideError:
    if failure.sent:
        return MaybeDelivered(
            "webhook-unsure",
            f"{webhook} took the message and gave no answer: {failure.why}",
            "Look whether it arrived. It is not sent again.",
        )
    how = f" in {format_duration(failure.spent)}" if failure.spent else f": {failure.why}"
    return _failed(f"{webhook} can't be reached{how}", spent=failure.spent)


def _judge(webhook: str, answer: Answer, now: float) -> None:
    """Return where the message was taken, else raise what the answer means."""
    if 200 <= answer.status < 300:
        return
    what = f"{webhook} answered {answer.status}"
    if answer.status == 429 or answer.status >= 500:
        raise _failed(what, wait=asked_wait(answer.headers.get("retry-after", ""), now))
    if 300 <= answer.status < 400:
        raise OutsideError(
            "webhook-moved",
            f"{what}: it wants the message sent elsewhere",
            "Redirects are not followed: the address is a secret. Give the new one.",
        )
    raise OutsideError(
        "webhook-refused",
        f"{what}: it didn't take the message",
        "Is the webhook still there, and its channel? Make a new one, and set PERFCI_WEBHOOK.",
    )


def _failed(what: str, wait: float | None = None, spent: float = 0.0) -> Retryable:
    advice = "Nothing was sent. Run it again later: what is new stays new."
    return Retryable("webhook-failed", what, advice, wait, spent)
