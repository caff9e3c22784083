"""New events as an e-mail and as a card of Teams: what they say, and names that stay text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from perfci.errors import OutsideError, UsageError
from perfci.forges.plain_news import (
    MailServer,
    is_teams,
    mail_of,
    mail_server,
    require_address,
    send_mail,
    teams_body,
)
from perfci.forges.webhook import webhook_body
from perfci.trend import SeriesKey, Timeline, Trend
from tests.forges.mail_server import MailReceiver
from tests.forges.trends import CASE, KEY, SHAS, change, many, run, series, trend
from tests.report.hostile import NAMES

DATA = Path(__file__).parents[1] / "data"
TO = ("ann@example.org", "perf@example.org")


@pytest.fixture
def mail() -> Iterator[MailReceiver]:
    receiver = MailReceiver()
    yield receiver
    receiver.close()


def of_many(count: int, **changed: Any) -> Trend:
    changes = many(count, **changed)
    return trend(changes=changes, series=tuple(series(each.series) for each in changes))


def named(name: str) -> Trend:
    key = KEY._replace(case=name, metric=name)
    return trend(changes=(change("c", key),), series=(series(key),))


def test_an_e_mail_says_what_is_new_and_reaches_everyone(mail: MailReceiver) -> None:
    message = mail_of(trend(), "perfci@example.org", TO, "https://ci.example/1")
    assert message is not None
    assert send_mail(mail_server(mail.url), message) == ()
    (received,) = mail.messages
    assert mail.recipients == [list(TO)]
    assert received["subject"] == "perfci: 1 new regression"
    assert received["date"] == "Sun, 08 Nov 2026 03:00:00 +0000"
    assert received["auto-submitted"] == "auto-generated"
    text = received.get_content().replace("\r\n", "\n")
    assert f"+25.0 % worse, {CASE} latency_p50, " in text
    assert f"{SHAS[1][:10]}..{SHAS[2][:10]}" in text
    assert text.endswith("The whole report: https://ci.example/1\n")


def test_the_same_news_has_the_same_identity_and_other_news_another() -> None:
    def identity(told: Trend) -> str:
        message = mail_of(told, TO[0], TO)
        assert message is not None
        return message["message-id"]

    assert identity(trend()) == identity(trend(created_at="2026-11-09T03:00:00+00:00"))
    assert identity(trend()) != identity(of_many(2))


def test_nothing_new_is_no_e_mail_and_no_card() -> None:
    old = trend(changes=(change(status="known"),))
    assert mail_of(old, TO[0], TO) is None
    assert teams_body(old) is None


def test_a_refused_recipient_is_named_and_the_others_get_it(mail: MailReceiver) -> None:
    mail.refused = {TO[1]}
    message = mail_of(trend(), TO[0], TO)
    assert message is not None
    assert send_mail(mail_server(mail.url), message) == (TO[1],)
    assert mail.recipients == [[TO[0]]]
    mail.refused = set(TO)
    with pytest.raises(OutsideError, match=r"it refuses ann@example.org, perf@example.org"):
        send_mail(mail_server(mail.url), message)


def test_a_server_that_refuses_or_is_gone_is_an_error_without_the_password() -> None:
    busy = MailReceiver("421 too busy")
    message = mail_of(trend(), TO[0], TO)
    assert message is not None
    server = MailServer("127.0.0.1", busy.port, False, "ann", "SeCrEt")
    with pytest.raises(OutsideError, match="it answered 421") as refused:
        send_mail(server, message)
    busy.close()
    with pytest.raises(OutsideError, match="took no e-mail") as gone:
        send_mail(server, message)
    assert "SeCrEt" not in f"{refused.value} {gone.value}"


def test_a_password_goes_over_no_open_line_to_another_machine(
    mail: MailReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = mail_of(trend(), TO[0], TO)
    assert message is not None
    server = MailServer("127.0.0.1", mail.port, False, "ann", "SeCrEt")
    send_mail(server, message)
    assert any(command.startswith("AUTH") for command in mail.commands)
    monkeypatch.setattr("perfci.forges.plain_news._HERE", set())
    mail.commands.clear()
    with pytest.raises(OutsideError, match="no password is sent"):
        send_mail(server, message)
    assert not any(command.startswith(("AUTH", "MAIL")) for command in mail.commands)


def test_a_servers_address_is_read_and_a_wrong_one_is_not_shown() -> None:
    given = mail_server("smtps://ann%40example.org:p%3Aw@mail.example.org")
    assert given == MailServer("mail.example.org", 465, True, "ann@example.org", "p:w")
    assert mail_server("smtp://mail.example.org").port == 587
    for wrong in ("", "mail.example.org", "http://SeCrEt@x", "smtp://u:SeCrEt@h:99999", "smtp://"):
        with pytest.raises(UsageError, match="can't be read") as refused:
            mail_server(wrong)
        assert "SeCrEt" not in str(refused.value)
    for wrong in ("ann", "ann@", "a@b, c@d", "a@b\nBcc: c@d", "<a@b>"):
        with pytest.raises(UsageError, match="no e-mail address"):
            require_address(wrong)


def test_microsofts_hosts_get_cards() -> None:
    assert is_teams("https://acme.webhook.office.com/webhookb2/1")
    assert is_teams("https://prod-1.westeurope.logic.azure.com:443/workflows/1")
    assert not is_teams("https://hooks.slack.com/services/1")
    assert not is_teams("https://webhook.office.com.evil.example/1")


@pytest.mark.parametrize("shown", [1, 100])
def test_a_card_keeps_to_the_published_schema(shown: int) -> None:
    body = teams_body(of_many(shown), report_url="https://ci.example/1")
    assert body is not None
    (attachment,) = json.loads(body)["attachments"]
    card = attachment["content"]
    schema = json.loads((DATA / "adaptive-card-1.5.json").read_bytes())
    jsonschema.Draft6Validator(schema).validate(card)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft6Validator(schema).validate(card | {"body": [{"type": "RichTextBlok"}]})
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert card["actions"][0]["url"] == "https://ci.example/1"
    assert len(card["body"]) == 1 + min(shown, 16)


def test_long_names_of_wide_characters_keep_a_card_below_teams_limit() -> None:
    wide = "🚀" * 300
    keys = [SeriesKey(wide, f"{n}{wide}", wide) for n in range(20)]
    changes = tuple(change(f"id{n}", key) for n, key in enumerate(keys))
    lines = {wide: Timeline(wide, tuple(map(run, range(4))))}
    told = trend(changes=changes, series=tuple(map(series, keys)), timelines=lines)
    body = teams_body(told)
    assert body is not None
    assert 20_000 < len(body) < 28_000


@pytest.mark.parametrize("name", NAMES)
def test_any_name_stays_plain_text(name: str) -> None:
    body = teams_body(named(name))
    assert body is not None
    card = json.loads(body)["attachments"][0]["content"]
    heading, *blocks = card["body"]
    assert heading["text"] == "perfci: 1 new regression"
    (text,) = [run for block in blocks for run in block["inlines"]]
    assert text["type"] == "TextRun"
    assert "\n" not in text["text"]
    message = mail_of(named(name), TO[0], TO)
    assert message is not None
    assert message["to"] == ", ".join(TO)


@pytest.mark.parametrize("shown", [1, 100])
def test_slacks_message_keeps_to_the_rules_of_slacks_own_library(shown: int) -> None:
    body = webhook_body(of_many(shown), report_url="https://ci.example/1")
    assert body is not None
    schema = json.loads((DATA / "slack-blocks.json").read_bytes())
    message = json.loads(body)
    jsonschema.validate(message, schema)
    wrong = {"type": "section", "text": {"type": "markdown", "text": "a"}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(message | {"blocks": [wrong]}, schema)
