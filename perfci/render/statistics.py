"""What a row's test knew, in words that every format shares: the test, n, df, p, Cohen's d."""

from __future__ import annotations

from perfci.model.report import Comparison, Method
from perfci.render.rows import measured_text
from perfci.stats.effect import magnitude

_NAMES: dict[Method, str] = {
    "paired_t": "paired t",
    "welch_t": "Welch's t",
    "exact": "exact",
    "same_code": "same code",
    "none": "",
}


def test_name(row: Comparison) -> str:
    """Return the test's name."""
    return _NAMES[row.method]


def number_text(row: Comparison) -> str:
    """Return n: pairs, or the workers of both sides. Exact counts have none."""
    return "" if row.method == "exact" else measured_text(row)


def freedom_text(row: Comparison) -> str:
    """Return the degrees of freedom: whole ones of pairs, a fraction of Welch's."""
    return "" if row.df is None else f"{row.df:.3g}"


def p_text(p: float | None) -> str:
    """Return a probability, two digits of it."""
    if p is None:
        return ""
    return "< 0.0001" if p < 0.0001 else f"{p:.2g}"


def effect_text(row: Comparison) -> str:
    """Return Cohen's d with his word for its size: ``2.50 (large)``."""
    d = row.cohens_d
    return "" if d is None else f"{d:.2f} ({magnitude(d)})"


def statistics_text(row: Comparison) -> str:
    """Return all of it on one line; n stands in the row's note. Empty where nothing was tested."""
    if row.p is None:
        return ""
    adjusted = "" if row.p_adjusted is None else f", adjusted {p_text(row.p_adjusted)}"
    parts = (
        test_name(row),
        f"p {p_text(row.p)}{adjusted}",
        f"df {freedom_text(row)}" if row.df is not None else "",
        f"d {effect_text(row)}" if row.cohens_d is not None else "",
    )
    return "; ".join(part for part in parts if part)
