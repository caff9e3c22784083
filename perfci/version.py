"""The version of perfci and of every format it writes."""

VERSION = "0.1.0"
REPORT_SCHEMA = "perfci.report/1"
CALIBRATION_SCHEMA = "perfci.calibration/1"
BISECTION_SCHEMA = "perfci.bisection/1"
BASELINE_SCHEMA = 1
