"""``python -m benchmarks.corpus record`` or ``score``."""

import sys

from benchmarks.corpus import record, score

_COMMANDS = {"record": record.main, "score": score.main}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in _COMMANDS:
        raise SystemExit(f"{__doc__}: name one of {', '.join(_COMMANDS)}")
    raise SystemExit(_COMMANDS[sys.argv[1]](sys.argv[2:]))
