"""A recorded history as the rows of a table, for notebooks: millions of them in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfci.trend.series import LoadedHistory

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class History:
    """Everything that a history has recorded, as it was when it was loaded.

    ``place`` names it without a password; ``environments`` has the facts of each by its key.
    """

    place: str
    environments: Mapping[str, Mapping[str, str]]
    loaded: LoadedHistory

    def __len__(self) -> int:
        return sum(len(one.values) for one in self.loaded.series)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each recorded value, by series and then as measured.

        Texts are categories, times are in UTC, ``value`` is in ``unit``. ``run`` names the run
        that it was recorded in; ``position`` is its commit's place on the branch, where known.
        """
        import numpy as np
        import pandas as pd

        series = self.loaded.series
        counts = [len(one.values) for one in series]
        of_series = np.repeat(np.arange(len(series), dtype=np.int32), counts)
        runs = _joined([one.runs for one in series], np.int32)
        values = _joined([one.values for one in series], np.float64)
        # the loaded runs are in the order of measuring, and mostly so are a series' values
        place = of_series * np.int64(len(self.loaded.runs)) + runs
        if not np.all(place[1:] > place[:-1]):
            order = np.argsort(place, kind="stable")
            runs, values = runs[order], values[order]
        del place
        headers = [one.header for one in self.loaded.runs]

        def by_series(texts: Iterable[str]) -> pd.Categorical:
            return _categories(list(texts), of_series)

        def by_run(texts: Iterable[str]) -> pd.Categorical:
            return _categories(list(texts), runs)

        def times(texts: Sequence[str]) -> Any:
            known = pd.to_datetime(pd.Series(texts, dtype=object), utc=True, format="ISO8601")
            return known.array[runs]

        positions = pd.array([one.position for one in headers], dtype="Int64")
        return pd.DataFrame(
            {
                "environment": by_series(one.key.environment for one in series),
                "case": by_series(one.key.case for one in series),
                "metric": by_series(one.key.metric for one in series),
                "unit": by_series(one.unit for one in series),
                "value": values,
                "sha": by_run(one.sha for one in headers),
                "committed_at": times([one.committed_at for one in headers]),
                "measured_at": times([one.measured_at for one in headers]),
                "position": positions[runs],
                "branch": by_run(one.branch for one in headers),
                "subject": by_run(one.subject for one in headers),
                "runner": by_run(one.runner for one in headers),
                "source": by_run(one.source for one in headers),
                "run": by_run(one.id for one in headers),
            },
            copy=False,
        )


def _joined(parts: Sequence[Any], kind: Any) -> Any:
    import numpy as np

    return np.concatenate(parts) if parts else np.empty(0, kind)


def _categories(texts: Sequence[str], rows: Any) -> pd.Categorical:
    """Return ``texts`` at ``rows``, each text stored once."""
    import numpy as np
    import pandas as pd

    codes, names = pd.factorize(np.array(texts, dtype=object))
    return pd.Categorical.from_codes(codes[rows], categories=pd.Index(names, dtype=object))
