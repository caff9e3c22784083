"""What GitHub's answers mean, and how long they are waited for."""

from __future__ import annotations

import pytest
import requests

from perfci.errors import OutsideError, UsageError
from perfci.forges.github import Missing, Refused, Unsure, judge

NOW = 1_000_000.0


def answer(status: int, text: str = "{}", **headers: str) -> requests.Response:
    one = requests.Response()
    one.status_code = status
    one.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    one._content = text.encode()
    return one


def judged(status: int, text: str = "{}", **headers: str) -> OutsideError | UsageError:
    with pytest.raises((OutsideError, UsageError)) as caught:
        judge(answer(status, text, **headers), "GET /x", NOW)
    assert isinstance(caught.value, OutsideError | UsageError)
    return caught.value


@pytest.mark.parametrize("status", [200, 201, 204])
def test_a_success_is_no_failure(status: int) -> None:
    judge(answer(status, ""), "GET /x", NOW)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, OutsideError),
        (401, UsageError),
        (403, Refused),
        (404, Missing),
        (408, Unsure),
        (410, Missing),
        (400, OutsideError),
        (422, OutsideError),
        (429, Unsure),
        (500, Unsure),
        (502, Unsure),
    ],
)
def test_each_status_has_its_meaning(status: int, kind: type[Exception]) -> None:
    assert type(judged(status)) is kind


@pytest.mark.parametrize(
    ("text", "headers", "wait"),
    [
        ('{"message": "You have exceeded a secondary rate limit"}', {}, 60.0),
        ('{"message": "You have triggered an abuse detection mechanism"}', {}, 60.0),
        ("{}", {"retry_after": "7"}, 7.0),
        ("{}", {"retry_after": "soon"}, 60.0),
        ("{}", {"retry_after": "²"}, 60.0),
        ("{}", {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "9" * 400}, 60.0),
        ("{}", {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1000030"}, 31.0),
        ("{}", {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "5"}, 1.0),
    ],
)
def test_a_rate_limit_says_how_long_to_wait(
    text: str, headers: dict[str, str], wait: float
) -> None:
    failure = judged(403, text, **headers)
    assert isinstance(failure, Unsure)
    assert failure.wait == wait


def test_a_missing_right_is_no_rate_limit() -> None:
    said = '{"message": "Resource not accessible by integration"}'
    failure = judged(403, said, x_ratelimit_remaining="4999")
    assert isinstance(failure, Refused)
    assert "Resource not accessible" in failure.message


@pytest.mark.parametrize("text", ["<html>Bad Gateway</html>", "", "[1]", '{"message": 3}', "{"])
def test_an_answer_that_is_not_githubs_is_still_told(text: str) -> None:
    assert judged(502, text).message == "GET /x was answered with 502"


def test_what_github_says_is_shown_on_one_line() -> None:
    failure = judged(422, '{"message": "a\\n::error::b\\u202e"}')
    assert failure.message.endswith("422 a ::error::b")
