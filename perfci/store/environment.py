"""Pure: the facts that decide speed, and the key that names a set of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from perfci.record.run import Environment


def make_environment(facts: Mapping[str, str]) -> Environment:
    """Return the environment of ``facts``: all of them are in the key's hash.

    The key reads ``linux-x86_64-cpu-torch2.13.0-py3.11-1a2b3c4d``, so that people know it again.
    """
    ordered = dict(sorted(facts.items()))
    digest = hashlib.sha256(json.dumps(ordered).encode()).hexdigest()[:8]
    device = facts.get("device_name", "cpu")
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
    """Return each fact that differs, with both values; a dash where one has none."""
    return {
        name: (first.get(name, "–"), second.get(name, "–"))
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    }


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "_", text).strip("_").lower()[:40] or "unknown"
