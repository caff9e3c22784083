"""``perfci.prompts``: the prompts of a data set. ``perfci.openai``: requests for prompts."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from perfci.api import is_count, require_right
from perfci.api.serving.endpoint import Endpoint, Url, wrong_url
from perfci.errors import Unusable

Prompt = str | Mapping[str, Any]
"""A text, or an entry of a data set."""
_PATHS = {"chat": "/chat/completions", "completions": "/completions"}


def prompts(
    file: str | os.PathLike[str], *, count: int | None = None, seed: int = 0
) -> tuple[Prompt, ...]:
    """Return the prompts of a data set, or ``count`` of them, drawn by ``seed``.

    ``file`` is JSON by line, or a JSON list. An entry is a text, or has ``prompt``, ``messages``
    or, as in ShareGPT, ``conversations``, of which the user's first message counts. It may have
    ``max_tokens``, too. Raises Unusable for a file that can't be read.
    """
    wrong = f"`count` is {count!r}; give how many to draw: 1 or more"
    require_right(
        "prompts",
        "bad-prompts",
        iter(() if count is None or is_count(count) else (wrong,)),
        'Write perfci.prompts("benchmarks/prompts.jsonl", count=32): docs/serving.md.',
    )
    try:
        text = Path(file).read_text(encoding="utf-8")
        lines = (json.loads(line) for line in text.splitlines() if line.strip())
        entries = json.loads(text) if text.lstrip().startswith("[") else list(lines)
        for entry in entries:
            _messages(entry)
    except (OSError, ValueError, RecursionError) as error:
        raise Unusable("bad_prompts", f"{file} can't be read as prompts: {error}") from error
    if len(entries) < (count or 1):
        raise Unusable("bad_prompts", f"{file} has {len(entries)} prompts, not {count or 'any'}")
    draw = random.Random(seed)  # noqa: S311 (a load, no secret)
    return tuple(draw.sample(entries, count) if count else entries)


def openai(
    url: Url,
    prompts: Prompt | Sequence[Prompt],
    *,
    api: Literal["chat", "completions"] = "chat",
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> Endpoint:
    """Return a stream of OpenAI's API, for ``perfci.generate``: one request for each prompt.

    ``url`` is the server's, with or without ``/v1``, or ``{"base": …, "head": …}`` for servers that
    run already. ``prompts`` is a text, an entry as in ``perfci.prompts``, or a list of these.
    ``options`` are further keys of the body, such as ``model``, ``temperature`` and the
    ``max_tokens`` of prompts without their own. The stream is asked for its ``usage``.
    """
    several = [prompts] if isinstance(prompts, (str, Mapping)) else prompts
    require_right(
        "openai",
        "bad-endpoint",
        _wrongs(url, several, api),
        'Write perfci.openai(server.url, ["Tell me a story."], model="m", max_tokens=64): '
        "docs/serving.md.",
    )
    usual = {"stream": True, "stream_options": {"include_usage": True}, **options}
    bodies = [{**usual, **_content(prompt, api)} for prompt in several]
    return Endpoint(_address(url, _PATHS[api]), bodies, headers or {})


def _wrongs(url: Any, prompts: Any, api: Any) -> Iterator[str]:
    """Yield errors in the arguments, each with its correction."""
    if wrong := wrong_url(url):
        yield wrong
    if not prompts or not isinstance(prompts, Sequence):
        yield f"the prompts are {prompts!r}; give a text, a list of texts, or perfci.prompts(…)"
        return
    try:
        for prompt in prompts:
            _messages(prompt)
    except ValueError as error:
        yield str(error)
    if api not in _PATHS:
        yield f"`api` is {api!r}; give one of {', '.join(_PATHS)}"


def _messages(prompt: Any) -> list[dict[str, Any]]:
    """Return a prompt's messages. Raises ValueError for an entry of another form."""
    match prompt:
        case str(text) | {"prompt": str(text)}:
            return [{"role": "user", "content": text}]
        case {"messages": [_, *_] as messages} if all(map(_is_message, messages)):
            return list(messages)
        case {"conversations": [*turns]}:
            for turn in turns:
                match turn:
                    case {"from": "human" | "user", "value": str(text)}:
                        return [{"role": "user", "content": text}]
    form = "a prompt is a text, or has `prompt`, `messages` or `conversations` with a text"
    raise ValueError(f"{form}: {repr(prompt)[:80]}")


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and isinstance(message.get("content"), str)


def _content(prompt: Prompt, api: str) -> dict[str, Any]:
    """Return the keys of a request's body that are the prompt's own."""
    most = {} if isinstance(prompt, str) else {"max_tokens": prompt.get("max_tokens")}
    messages = _messages(prompt)
    if api == "chat":
        content: dict[str, Any] = {"messages": messages}
    else:
        content = {"prompt": "\n".join(message["content"] for message in messages)}
    return content | {name: count for name, count in most.items() if count is not None}


def _address(url: Url, path: str) -> Url:
    if isinstance(url, Mapping):
        return {side: str(_address(text, path)) for side, text in url.items()}
    return f"{url.rstrip('/').removesuffix('/v1')}/v1{path}"
