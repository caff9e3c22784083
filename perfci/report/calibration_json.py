"""The calibration file, ``perfci.calibration/1``."""

from __future__ import annotations

import msgspec

from perfci.record.calibration import Calibration
from perfci.record.codec import to_plain
from perfci.report.clean import Clean, clean_json
from perfci.report.json_report import encodable


def render_calibration_json(calibration: Calibration) -> Clean:
    """Return the calibration as JSON. CodecError on a number that isn't finite."""
    plain = to_plain(calibration)
    ordered = {"schema": plain.pop("schema"), **plain}
    encoded = msgspec.json.encode(encodable(ordered))
    return clean_json(msgspec.json.format(encoded, indent=2).decode() + "\n")
