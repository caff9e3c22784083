"""Chrome traces: of a real process, and what a process may send instead of one."""

from __future__ import annotations

import base64
import json
import sys
import zlib

import pytest

from perfci.instruments import RecordingScene
from perfci.instruments.trace import MOST_BYTES, record, trace_text
from perfci.model.worker import WorkOrder
from tests.builders.warm import Warm

_RECORD = """
import json, torch
from perfci.instruments import RecordingScene, trace
from perfci.model.worker import WorkOrder
x = torch.zeros(8)

def call():
    with torch.profiler.record_function('a "name" \\\\ of\\nits </script> own'):
        return x + 1

call()
scene = RecordingScene(WorkOrder("/", (), "/"), call=call, once=call)
print(json.dumps(trace.record(scene)))
trace._MOST_EVENTS = 1
try:
    trace.record(scene)
except Exception as error:
    print(error)
"""


def packed(text: bytes) -> str:
    return base64.b64encode(zlib.compress(text)).decode()


def test_a_trace_is_json_whatever_its_names_are_and_has_a_limit(warm: Warm) -> None:
    recorded, refused = warm.run(_RECORD).splitlines()
    names = {one["name"] for one in json.loads(trace_text(json.loads(recorded)))["traceEvents"]}
    assert "aten::add" in names
    assert 'a "name" \\ of\nits </script> own' in names
    assert "the trace of a call has " in refused


def test_a_case_without_torch_has_no_events_and_does_not_import_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    recorded = record(RecordingScene(WorkOrder("/", (), "/")))
    assert json.loads(trace_text(recorded)) == {"traceEvents": []}
    assert "torch" not in sys.modules


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"trace": 3},
        {"trace": "no base64!"},
        {"trace": base64.b64encode(b"nothing packed").decode()},
        {"trace": packed(b"[1]")},
        {"trace": packed(b'{"traceEvents": 1}')},
        {"trace": packed(b'{"traceEvents": [NaN]}')},
        {"trace": packed(b"{")},
        {"trace": packed(b'{"traceEvents": [1]}')[:-8]},
        {"trace": packed(b" " * (MOST_BYTES + 1))},
    ],
)
def test_what_is_no_trace_is_refused(sent: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        trace_text(sent)
