"""Draw ``docs/results/peers.md``, the table and the plots, from the raw results.

python benchmarks/peers/draw.py [FILE.jsonl …]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.peers.finding import CONDITIONS, Measurement, machines, read
from benchmarks.peers.scoring import OWN_RULES, Rate, Score, scores

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs"
START, END = "<!-- peers: made by benchmarks/peers/draw.py -->", "<!-- /peers -->"
HEADING = "# perfci beside six other ways"
_SHARES = tuple(share for share in CONDITIONS.values() if share)
TITLES = {"same": "identical commits", "slow2": "2 % slower", "slow5": "5 % slower"}
COLUMNS = (
    "tool",
    "setting",
    "rule",
    "false alarms",
    "runs with one",
    "2 % found",
    "5 % found",
    "wall time",
    "failed",
)
ORDER = (
    "by hand",
    "Welch on raw calls",
    "torch.utils.benchmark",
    "pytest-benchmark",
    "asv",
    "pyperf",
    "perfci",
)


def main() -> None:
    """Write the section and its two plots."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--docs", type=Path, default=DOCS)
    options = parser.parse_args()
    files = options.files or sorted((HERE / "results").glob("run*.jsonl"))
    measurements = read(files)
    if not measurements:
        raise SystemExit("no results: python benchmarks/peers/run.py makes them")
    found = sorted(scores(measurements), key=lambda score: (ORDER.index(score.tool), score.setting))
    images = options.docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    _draw_rates(found, images / "peers-rates.svg")
    _draw_changes(measurements, images / "peers-changes.svg")
    injected = HERE / "results" / "injected.jsonl"
    checks = [json.loads(line) for line in injected.read_text(encoding="utf-8").splitlines()]
    notes = (HERE / "notes.md").read_text(encoding="utf-8")
    text = f"{notes}\n{section(found, machines(files))}\n{verified(checks)}"
    file = options.docs / "results" / "peers.md"
    file.parent.mkdir(exist_ok=True)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    file.write_text(insert(before, text), encoding="utf-8")


def insert(document: str, text: str) -> str:
    """Put ``text`` between the markers, or with its heading at the end where there are none."""
    block = f"{START}\n\n{text}\n{END}"
    if START in document and END in document:
        head, rest = document.split(START, 1)
        return head + block + rest.split(END, 1)[1]
    if f"{HEADING}\n" in document:
        return document.replace(f"{HEADING}\n", f"{HEADING}\n\n{block}\n", 1)
    return f"{document.rstrip()}\n\n{HEADING}\n\n{block}\n".lstrip()


def section(found: list[Score], about: list[dict[str, object]]) -> str:
    """Return the Markdown: where it was measured, the table, the plots."""
    lines = [_place(about), ""] if about else []
    lines += [
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    for score in found:
        rates = [score.rates[condition] for condition in CONDITIONS]
        same, *slower = (_rate(rate) for rate in rates)
        own = OWN_RULES[score.tool] == score.rule
        rule = f"**{score.rule}**" if own else score.rule
        failed = f"{score.failures.hits} of {score.failures.of}" if score.failures.hits else "–"
        cells = (score.tool, score.setting, rule, same, _rate(score.suites), *slower)
        lines.append(f"| {' | '.join((*cells, _seconds(score.wall), failed))} |")
    lines += [
        "",
        "![false alarms and detections by tool](../images/peers-rates.svg)",
        "",
        "![estimated changes by tool](../images/peers-changes.svg)",
        "",
    ]
    return "\n".join(lines)


def verified(checks: list[dict[str, float | str]]) -> str:
    """Return the Markdown of what ``run.py --verify`` found."""
    lines = [
        "Is the slow-down what it says? Plain and slowed calls in turn in one process, on the same",
        "objects (`run.py --verify`): the ratio of medians, ± its standard error.",
        "",
        "| benchmark | a call | nothing injected | 2 % injected | 5 % injected |",
        "|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(check["benchmark"] for check in checks):
        rows = {check["share"]: check for check in checks if check["benchmark"] == name}
        cells = (
            f"{row['median']:+.2%} ± {row['median_error']:.2%}"
            for row in (rows[share] for share in (0.0, *_SHARES))
        )
        plain = float(rows[0.0]["plain_s"])
        lines.append(f"| {name} | {plain * 1e6:.0f} µs | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _place(about: list[dict[str, object]]) -> str:
    last = about[-1]
    packages = last["packages"]
    if not isinstance(packages, dict):
        raise SystemExit("damaged results: packages is no table")
    versions = ", ".join(f"{name} {number}" for name, number in packages.items())
    days = ", ".join(sorted({str(one["at"])[:10] for one in about}))
    return (
        f"Measured {days} on {last['machine']} with {last['cores']} cores, "
        f"Python {last['python']}, {versions}."
    )


def _rate(rate: Rate) -> str:
    if not rate.of:
        return "–"
    low, high = rate.interval()
    return f"{rate.share:.0%} ({rate.hits}/{rate.of}; {low:.0%}–{high:.0%})"


def _seconds(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _draw_rates(found: list[Score], file: Path) -> None:
    """False alarms and detections, one row a rule, with Wilson intervals."""
    plt = _pyplot()
    rows = [score for score in reversed(found) if any(rate.of for rate in score.rates.values())]
    figure, panels = plt.subplots(
        1, len(CONDITIONS), sharey=True, figsize=(11, 1.0 + 0.28 * len(rows)), layout="constrained"
    )
    for axes, condition in zip(panels, CONDITIONS, strict=True):
        for position, score in enumerate(rows):
            rate = score.rates[condition]
            if not rate.of:
                continue
            low, high = rate.interval()
            colour = "tab:green" if score.tool == "perfci" else "tab:gray"
            axes.plot([low, high], [position, position], color=colour, linewidth=1.5)
            axes.plot(rate.share, position, "o", color=colour, markersize=4)
        said = "false alarms" if condition == "same" else "found"
        axes.set_title(f"{TITLES[condition]}: {said}", fontsize=10)
        axes.set_xlim(-0.03, 1.03)
        axes.xaxis.set_major_formatter("{x:.0%}")
        axes.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(
        range(len(rows)), [f"{row.tool}, {row.setting}: {row.rule}" for row in rows], fontsize=7
    )
    _save(figure, file)


def _draw_changes(measurements: list[Measurement], file: Path) -> None:
    """Every estimate of the change, one row a tool and setting; a line at what is true."""
    plt = _pyplot()
    answered = [measurement for measurement in measurements if not measurement.failure]
    rows = sorted(
        {(m.tool, m.setting) for m in answered},
        key=lambda row: (ORDER.index(row[0]), row[1]),
        reverse=True,
    )
    figure, panels = plt.subplots(
        1, len(CONDITIONS), sharey=True, figsize=(11, 1.0 + 0.4 * len(rows)), layout="constrained"
    )
    for axes, (condition, share) in zip(panels, CONDITIONS.items(), strict=True):
        axes.axvline(share, color="tab:red", linewidth=1.0)
        for position, row in enumerate(rows):
            changes = [
                max(-0.3, min(0.3, finding.change))
                for measurement in answered
                if (measurement.tool, measurement.setting) == row
                and measurement.condition == condition
                for finding in measurement.findings
                if finding.rule == measurement.findings[0].rule
            ]
            colour = "tab:green" if row[0] == "perfci" else "tab:gray"
            axes.plot(changes, [position] * len(changes), "|", color=colour, markersize=9)
        axes.set_title(f"{TITLES[condition]}: estimates (cut at ±30 %)", fontsize=10)
        axes.xaxis.set_major_formatter("{x:+.0%}")
        axes.set_xlim(-0.32, 0.32)
    panels[0].set_yticks(range(len(rows)), [", ".join(row) for row in rows], fontsize=8)
    _save(figure, file)


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "peers"  # the same results give the same file
    from matplotlib import pyplot as plt

    return plt


def _save(figure: Any, file: Path) -> None:
    figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    main()
