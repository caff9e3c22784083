"""Pure: the facts that decide speed, and the key that names a set of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from perfci.model.run import Environment

_NOTE = "note_"
"""Facts whose names begin so are kept to be read, and decide nothing."""


def make_environment(facts: Mapping[str, str]) -> Environment:
    """Return the environment of ``facts``: all but notes are in the key's hash.

    The key reads ``linux-x86_64-cpu-torch2.13.0-py3.11-1a2b3c4d``, so that people know it again.
    """
    ordered = dict(sorted(facts.items()))
    digest = hashlib.sha256(json.dumps(_deciding(ordered)).encode()).hexdigest()[:8]
    device = facts.get("device_name") or "cpu"
    parts = (
        facts.get("system", "system"),
        facts.get("machine", "machine"),
        device,
        f"torch{facts.get('torch', 'none').split('+')[0]}",
        f"py{'.'.join(facts.get('python', '0.0').split('.')[:2])}",
        digest,
    )
    return Environment("-".join(_plain(part) for part in parts), ordered)


def differences(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return each deciding fact that differs, with both values; a dash where one has none."""
    first, second = _deciding(first), _deciding(second)
    return {
        name: (first.get(name, "–"), second.get(name, "–"))
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    }


def _deciding(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if not name.startswith(_NOTE)}


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "_", text).lower()[:40].strip("_.") or "unknown"
