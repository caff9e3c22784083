"""The other tools, each at its defaults and at other settings that might suit it better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np
import ruptures
from asv.step_detect import detect_steps
from otava.analysis import compute_change_points

Detector = Callable[[np.ndarray], Sequence[int]]


def otava(values: np.ndarray, **settings: float) -> list[int]:
    """apache-otava: E-divisive in windows, then t tests."""
    points, _ = compute_change_points(list(values), **settings)
    return sorted({point.index for point in points})


def asv(values: np.ndarray, minimum: float) -> list[int]:
    """asv: L1 Potts. ``minimum``: smaller shares of the level before are left out."""
    steps = _steps(values.tobytes())
    pairs = pairwise(steps)
    return [new[0] for old, new in pairs if abs(new[2] - old[2]) >= minimum * abs(old[2])]


@lru_cache(maxsize=4096)
def _steps(raw: bytes) -> list[tuple[int, int, float]]:
    return detect_steps(list(np.frombuffer(raw)))


def pelt(values: np.ndarray, factor: float) -> list[int]:
    """ruptures: PELT, squared error, penalty ``factor × 2 σ² log n``, σ from the differences.

    Of its two implementations the quick one: the linear kernel is the squared error.
    """
    sigma = np.median(np.abs(np.diff(values))) / (0.6745 * np.sqrt(2))
    penalty = (
        factor * 2 * max(sigma, 1e-9 * np.abs(values).max(), 1e-300) ** 2 * np.log(len(values))
    )
    found = ruptures.KernelCPD(kernel="linear", min_size=2).fit(values).predict(pen=penalty)
    return list(found[:-1])


PEERS: dict[str, dict[str, Detector]] = {
    "apache-otava 0.8.0": {
        "defaults": otava,
        "p < 1e-5": partial(otava, max_pvalue=1e-5),
        "p < 1e-8": partial(otava, max_pvalue=1e-8),
        "2 %": partial(otava, min_magnitude=0.02),
        "5 %": partial(otava, min_magnitude=0.05),
        "p < 1e-5, 2 %": partial(otava, max_pvalue=1e-5, min_magnitude=0.02),
        "p < 1e-5, 5 %": partial(otava, max_pvalue=1e-5, min_magnitude=0.05),
        "window 100, p < 1e-5, 2 %": partial(
            otava, window_len=100, max_pvalue=1e-5, min_magnitude=0.02
        ),
    },
    "asv 0.6.6": {
        "defaults": partial(asv, minimum=0.0),
        "1 %": partial(asv, minimum=0.01),
        "2 %": partial(asv, minimum=0.02),
        "3 %": partial(asv, minimum=0.03),
        "5 %": partial(asv, minimum=0.05),
    },
    "ruptures 1.1.10 PELT": {
        "2 σ² log n": partial(pelt, factor=1.0),
        "× 2": partial(pelt, factor=2.0),
        "× 4": partial(pelt, factor=4.0),
        "× 8": partial(pelt, factor=8.0),
        "× 16": partial(pelt, factor=16.0),
        "× 64": partial(pelt, factor=64.0),
    },
}
