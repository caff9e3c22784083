"""A module whose import takes a while: it defines a few hundred data classes."""

from dataclasses import make_dataclass

from work.planted import units

FIELDS = [(f"field_{number}", int, number) for number in range(12)]
RECORDS = [make_dataclass(f"Record{number}", FIELDS) for number in range(units(300, "start"))]
