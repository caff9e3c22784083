"""A library that is mostly imports."""

from work import heavy

import perfci


@perfci.benchmark
def imports():
    records = heavy.RECORDS
    return lambda: [record(1).field_0 for record in records[:50]]
