"""New events as plain lines: as an e-mail by SMTP, and as a card for Microsoft Teams.

A card's ``TextRun`` is plain text, where names can't mention anyone and can't link. Its schema:
https://adaptivecards.io/schemas/adaptive-card.json. Teams takes messages of up to 28 kB.
"""

from __future__ import annotations

import hashlib
import re
import smtplib
import ssl
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from perfci.errors import OutsideError, UsageError
from perfci.report.clean import clean_line
from perfci.report.site.catalogue import catalogue, standings
from perfci.report.site.rows import TrendRows, row_text
from perfci.report.site.words import news_of, news_title
from perfci.trend import Trend

_MOST_SHOWN, _MOST_ON_A_CARD = 50, 15
"""Events with a line each, in an e-mail and on a card. The others are counted."""
_LONGEST_LINE = 400
_TEAMS = (".webhook.office.com", ".logic.azure.com", ".powerplatform.com")
"""Hosts of Teams' webhooks: connectors, and workflows that post to a channel."""
_RECIPIENT = re.compile(r"[^\s@,;<>\"]+@[^\s@,;<>\"]+")
_HERE = {"localhost", "127.0.0.1", "::1"}
_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class MailServer:
    """A mail server. ``encrypted``: TLS from the beginning, else STARTTLS where it is offered."""

    host: str
    port: int
    encrypted: bool
    user: str
    password: str


def mail_server(address: str) -> MailServer:
    """Return the server at ``smtp://user:password@host:587`` or ``smtps://…``. UsageError else."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"smtp", "smtps"} or not parts.hostname or parts.path.strip("/"):
        raise UsageError(
            "bad-mail-server",
            "the mail server's address can't be read (it may be a secret, and is not shown)",
            "Give it as in smtp://user:password@mail.example.org:587, best by PERFCI_SMTP.",
        )
    encrypted = parts.scheme == "smtps"
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MailServer(
        parts.hostname, port or (465 if encrypted else 587), encrypted, user, password
    )


def require_address(address: str) -> str:
    """Return an e-mail address. UsageError for any other text."""
    if not address.isascii() or not _RECIPIENT.fullmatch(address):
        raise UsageError(
            "bad-mail-address",
            f"{clean_line(address, 80)!r} is no e-mail address",
            "Give it as in perf@example.org, one for each --email.",
        )
    return address


def news_lines(trend: Trend, most: int) -> tuple[str, list[str]]:
    """Return the title of the news, and a line for each new event. Empty if nothing is new."""
    news = news_of(trend)
    if not news:
        return "", []
    listed = catalogue(trend, standings(trend))
    rows = TrendRows(trend, listed, drawn=False).of(news[:most])
    lines = [clean_line(row_text(row, True), _LONGEST_LINE) for row in rows]
    rest = len(news) - len(lines)
    return news_title(news), [*lines, *([f"and {rest} more"] if rest else [])]


def mail_of(
    trend: Trend, sender: str, recipients: tuple[str, ...], report_url: str = ""
) -> EmailMessage | None:
    """Return the e-mail about new events, or None if there are none.

    The same news has the same ``Message-ID``, by which a mailbox recognises what it has already.
    """
    title, lines = news_lines(trend, _MOST_SHOWN)
    if not lines:
        return None
    message = EmailMessage()
    identity = "\0".join((*recipients, *sorted(event.id for event in news_of(trend))))
    digest = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32]
    message["Message-ID"] = f"<perfci.{digest}@{sender.rpartition('@')[2]}>"
    message["Subject"], message["From"], message["To"] = title, sender, ", ".join(recipients)
    message["Date"] = format_datetime(datetime.fromisoformat(trend.created_at))
    message["Auto-Submitted"] = "auto-generated"
    ending = [f"The whole report: {report_url}"] if report_url else []
    message.set_content("\n\n".join([f"{title}.", *lines, *ending]) + "\n")
    return message


def send_mail(server: MailServer, message: EmailMessage) -> tuple[str, ...]:
    """Send ``message``, and return the recipients whom the server refused.

    OutsideError if it was not sent. A password is only sent encrypted, or to this machine.
    """
    context = ssl.create_default_context()
    try:
        with _connected(server, context) as smtp:
            smtp.ehlo_or_helo_if_needed()
            if not server.encrypted and smtp.has_extn("starttls"):
                smtp.starttls(context=context)
            elif server.user and not server.encrypted and server.host not in _HERE:
                raise _unsent(server, "it offers no encryption, so no password is sent")
            if server.user:
                smtp.login(server.user, server.password)
            return tuple(smtp.send_message(message))
    except (OSError, UnicodeError) as error:  # smtplib's errors and TLS's are OSErrors, too
        raise _unsent(server, _reason(error)) from None


def _connected(server: MailServer, context: ssl.SSLContext) -> smtplib.SMTP:
    if server.encrypted:
        return smtplib.SMTP_SSL(server.host, server.port, timeout=_TIMEOUT_S, context=context)
    return smtplib.SMTP(server.host, server.port, timeout=_TIMEOUT_S)


def _reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"it refuses {', '.join(map(str, error.recipients))}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"it answered {error.smtp_code}"
    if isinstance(error, UnicodeError):  # its text holds the password
        return "user and password must be ASCII"
    return str(error) or type(error).__name__


def _unsent(server: MailServer, reason: str) -> OutsideError:
    return OutsideError(
        "mail-failed",
        f"the mail server {clean_line(server.host, 100)} took no e-mail: {clean_line(reason, 200)}",
        "Run it again later: what is new stays new.",
    )


def is_teams(url: str) -> bool:
    """Return whether a webhook's address is Microsoft's, so that it takes a card."""
    return (urlsplit(url).hostname or "").endswith(_TEAMS)


def teams_body(trend: Trend, *, report_url: str = "") -> bytes | None:
    """Return the message for a webhook of Teams, as JSON, or None if no event is new."""
    title, lines = news_lines(trend, _MOST_ON_A_CARD)
    if not lines:
        return None
    heading = {
        "type": "TextBlock",
        "text": title,
        "weight": "bolder",
        "size": "medium",
        "wrap": True,
    }
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [heading, *map(_block, lines)],
    }
    if report_url:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "The report", "url": report_url}]
    kind = "application/vnd.microsoft.card.adaptive"
    attachment = {"contentType": kind, "contentUrl": None, "content": card}
    return msgspec.json.encode({"type": "message", "attachments": [attachment]})


def _block(line: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line}]}
