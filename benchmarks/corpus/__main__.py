"""``python -m benchmarks.corpus record``, ``score`` or ``few``."""

import sys

from benchmarks.corpus import few_rounds, record, score

_COMMANDS = {"record": record.main, "score": score.main, "few": few_rounds.main}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in _COMMANDS:
        raise SystemExit(f"{__doc__}: name one of {', '.join(_COMMANDS)}")
    raise SystemExit(_COMMANDS[sys.argv[1]](sys.argv[2:]))
