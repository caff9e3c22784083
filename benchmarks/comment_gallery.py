"""What the pull-request comment looks like: made-up reports, as Markdown and as pictures.

    python benchmarks/comment_gallery.py [--out FOLDER] [--without-pictures]

Writes ``NAME.md`` and, with cmarkgfm, playwright and a Chromium, ``NAME.png`` as wide as a comment;
of four scenes also as wide as on a phone, and in the dark. No number in them was measured. Alerts
are GitHub's own: here they stay a quotation.
"""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfci.metrics import METRICS
from perfci.model.case import Failure
from perfci.model.finding import Reason, finding, stated
from perfci.model.report import Comparison, Estimate, Explanation, Report, Timing, Verdict
from perfci.model.run import Environment, Side
from perfci.model.words import words
from perfci.report.exporters.markdown import render_comment
from perfci.report.links import known_links
from perfci.stats.t_tests import t_quantile, two_sided_p
from perfci.verdict.decision import failed_finding
from perfci.verdict.policy import standard_error

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BASE = "3f2c8a91d7e04b65a1c2d3e4f5061728394a5b6c"
HEAD = "b81d06f3a95c4e27b0d1e2f30415263748596a7b"
ROOT = Path(__file__).resolve().parent.parent
WIDTHS = (780, 400)
SCHEMES = ("light", "dark")
STYLE = """
:root { --bg: #fff; --fg: #1f2328; --line: #d1d9e0; --soft: #f6f8fa; --code: #818b981f;
        --link: #0969da; --warn: #9a6700; }
:root[data-scheme=dark] { --bg: #0d1117; --fg: #f0f6fc; --line: #3d444d; --soft: #151b23;
        --code: #656c7633; --link: #4493f8; --warn: #d29922; }
* { box-sizing: border-box; }
body { margin: 0; padding: 16px; background: var(--bg); color: var(--fg); word-wrap: break-word;
       font: 14px/1.5 "Noto Sans", "Liberation Sans", Helvetica, Arial, sans-serif; }
h3, h4 { font-size: 1.25em; line-height: 1.25; margin: 24px 0 16px; } h4 { font-size: 1em; }
body > :first-child { margin-top: 0; }
a { color: var(--link); }
table { border-collapse: collapse; display: block; width: max-content; max-width: 100%;
        overflow: auto; margin: 0 0 16px; }
th, td { border: 1px solid var(--line); padding: 6px 13px; }
tr:nth-child(2n) { background: var(--soft); }
code, pre { font: 85%/1.45 "Liberation Mono", monospace; background: var(--code);
            border-radius: 6px; }
code { padding: .2em .4em; white-space: break-spaces; }
pre { padding: 16px; overflow: auto; } pre code { padding: 0; background: none; white-space: pre; }
p, ul, details { margin: 0 0 16px; } ul { padding-left: 2em; }
blockquote { margin: 0 0 16px; padding: 0 1em; border-left: .25em solid var(--warn); }
"""
"""Sizes, spaces and colours as GitHub's own style sheet of comments has them."""
SIGNS = {
    "\u274c": "<span style='color:#d1242f'>\u2718</span>",
    "\u2705": "<span style='color:#1a7f37'>\u2714</span>",
    "\u2754": "<span style='color:#9a6700'>?</span>",
    "\U0001f4a5": "<span style='color:#d1242f'>\u2718</span>",
}
"""What stands in a picture for GitHub's emoji, which few machines have a font for."""
LINKS = known_links("https://github.com/acme/speech", frozenset({BASE, HEAD}))
MODELS = ("encoder", "decoder", "attention", "conv_stack", "tokenise", "generate")
METRIC_NAMES = (
    "latency_p50", "cold_start", "compile_time", "peak_host_memory", "graph_breaks",
    "accuracy_loss",
)  # fmt: skip
BASES = (1.232e-3, 2.1, 12.3, float(412 << 20), 0.0, 1.0)
CPU = {"cpu": "AMD EPYC 9654", "python": "3.11.9", "torch": "2.6.0", "threads": "4"}
SLOW = "encoder[batch=16,mode=default]"


def row(
    case: str,
    metric: str,
    before: float,
    after: float,
    status: str,
    room: float = 0.011,
    **more: Any,
) -> Comparison:
    """Return a comparison as a session of eight rounds gives it."""
    known = METRICS[metric]
    exact = known.kind == "exact"
    room = 0.0 if exact else room
    ratio = None if known.absolute else after / before
    difference = after - before if known.absolute else None
    p = None
    if ratio is not None and not exact:
        t = math.log(ratio) / -math.log1p(-room) * t_quantile(0.975, 7.0)
        p = two_sided_p(t, 7.0)
    made = Comparison(
        case=case,
        metric=metric,
        unit=known.unit,
        status=status,  # type: ignore[arg-type]
        gate=known.gate,
        method="exact" if exact else "paired_t",
        base=Estimate(before, before * (1 - room), before * (1 + room), 8, 2400),
        head=Estimate(after, after * (1 - room), after * (1 + room), 8, 2400),
        ratio=ratio,
        ratio_lo=None if ratio is None else ratio * (1 - room),
        ratio_hi=None if ratio is None else ratio / (1 - room),
        threshold=known.threshold,
        p=p,
        p_adjusted=None if p is None else min(1.0, 20 * p),
        df=None if exact else 7.0,
        cohens_d=None if exact else math.copysign(1.9, after - before),
        detectable=None if exact else 0.013,
        difference=difference,
        difference_lo=difference,
        difference_hi=difference,
        direction=known.direction,
    )
    made = replace(made, **more)
    return replace(made, se=standard_error(made))


def quiet(cases: int) -> list[Comparison]:
    """Return six unchanged rows for each of ``cases``."""
    names = [
        f"{MODELS[number % len(MODELS)]}[batch={1 << number // len(MODELS) % 7},seed={number}]"
        for number in range(cases)
    ]
    return [
        row(name, metric, base, base * 1.002, "unchanged")
        for name in names
        for metric, base in zip(METRIC_NAMES, BASES, strict=True)
    ]


def report(
    status: str, reasons: Sequence[Reason], results: Sequence[Comparison], **more: Any
) -> Report:
    """Return a compare of main with a branch."""
    made = Report(
        perfci_version="0.1.0",
        created_at="2026-03-04T05:06:07+00:00",
        command="compare",
        base=Side("main", BASE, "/usr/bin/python3.11"),
        head=Side("HEAD", HEAD, "/usr/bin/python3.11"),
        environment=Environment("linux-x86_64-cpu-torch2.6.0-py3.11-1a2b3c4d", CPU),
        verdict=Verdict(status, tuple(reasons)),  # type: ignore[arg-type]
        timing=Timing(412.0, 251.0, 96),
        results=tuple(results),
        failures=(),
        not_measured={"device_time_p50": "no CUDA device", "energy": "no CUDA device"},
    )
    return replace(made, **more)


def all_quiet() -> list[Report]:
    """Ten cases in which nothing moved."""
    return [report("pass", (), quiet(10))]


def one_regression() -> list[Report]:
    """One regression among sixty comparisons."""
    slow = row(SLOW, "latency_p50", 1.232e-3, 1.34e-3, "regressed")
    reasons = (stated(f"{SLOW}: latency_p50 +8.8 % (threshold 5 %)", SLOW, "latency_p50"),)
    return [report("fail", reasons, [*quiet(10)[1:], slow])]


def improvements() -> list[Report]:
    """Nothing got worse, two cases got better."""
    better = (
        row("tokenise", "latency_p50", 31e-6, 26e-6, "improved"),
        row(SLOW, "cold_start", 2.1, 1.7, "improved"),
    )
    return [report("pass", (), [*better, *quiet(8)])]


def graph_break() -> list[Report]:
    """A new graph break, and what it costs."""
    results = (
        row(SLOW, "graph_breaks", 0.0, 1.0, "regressed"),
        row(SLOW, "latency_p50", 0.62e-3, 0.75e-3, "regressed"),
    )
    reasons = (
        stated(f"{SLOW}: graph_breaks +1 (threshold 0)", SLOW, "graph_breaks"),
        stated(f"{SLOW}: latency_p50 +21.0 % (threshold 5 %)", SLOW, "latency_p50"),
    )
    why = Explanation(SLOW, "graph_breaks", "graph_break", "call to print()", "lib/encoder.py", 41)
    return [report("fail", reasons, [*results, *quiet(6)], explanations=(why,))]


def regressions() -> list[Report]:
    """Seven regressions in two cases, two warnings, and why."""
    sampling, lm = "sampling[default]", "lm[8]"
    results = (
        row(sampling, "graph_breaks", 0.0, 1.0, "regressed"),
        row(sampling, "latency_p50", 222e-6, 286e-6, "regressed"),
        row(sampling, "compile_time", 6.1, 8.2, "regressed"),
        row(lm, "cold_start", 2.2, 3.87, "regressed"),
        row(lm, "latency_p50", 31.2e-3, 40.1e-3, "regressed"),
        row(lm, "peak_host_memory", float(412 << 20), float(690 << 20), "regressed"),
        row(lm, "compile_time", 12.3, 15.1, "regressed"),
        row(lm, "latency_p95", 35.1e-3, 44.7e-3, "regressed"),
        row(sampling, "latency_p95", 260e-6, 330e-6, "regressed"),
    )
    reasons = [
        Reason("regressed" if one.gate == "fail" else "warned", one.case, one.metric, {
            "difference": one.difference, "unit": one.unit, "threshold": one.threshold,
        } if one.difference is not None else {"ratio": one.ratio, "threshold": one.threshold})
        for one in results
    ]  # fmt: skip
    whys = (
        Explanation(sampling, "graph_breaks", "graph_break", "call to Tensor.item()",
                    "speech/sampling.py", 7),
        Explanation(lm, "cold_start", "slow_import", "new imports: scipy.stats, pandas"),
    )  # fmt: skip
    return [report("fail", reasons, [*results, *quiet(6)], explanations=whys)]


def cut_short() -> list[Report]:
    """A session that its time limit ended: one case is decided, two have too few rounds."""
    few = finding("too-few", count=2, what="pair", needed=8, setting="rounds")
    left = [
        row(name, "latency_p50", 1.2e-3, 1.23e-3, "inconclusive", room=0.2, findings=(few,),
            detectable=None)
        for name in ("encoder[batch=64]", "decoder[batch=64]")
    ]  # fmt: skip
    reasons = (Reason("interrupted"), *(
        Reason("undecided", one.case, one.metric, because=few) for one in left
    ))  # fmt: skip
    done = [*left, *quiet(1)]
    return [report("inconclusive", reasons, done, interrupted=True, timing=Timing(58.0, 9.0, 12))]


def noisy() -> list[Report]:
    """A machine on which little could be decided."""
    undecided = finding("more-rounds", change=0.14, rounds=40, threshold=0.05, setting="rounds")
    open_rows = [
        row(name, "latency_p50", 1.2e-3, 1.24e-3, "inconclusive", detectable=0.14,
            room=0.1, findings=(undecided,))
        for name in ("encoder[batch=1]", "decoder[batch=1]", "attention[batch=8]")
    ]  # fmt: skip
    reasons = [Reason("undecided", one.case, one.metric, because=undecided) for one in open_rows]
    taken = finding("bursts-excluded", excluded=31, bursts=6240, reason="core taken")
    return [report("inconclusive", reasons, [*open_rows, *quiet(3)], notes=(f"{words(taken)}.",))]


def crashed() -> list[Report]:
    """A benchmark that head breaks."""
    message = "mat1 and mat2 shapes cannot be multiplied (1x128 and 64x32)"
    failure = Failure(
        "generate[beams=4]", "head", "setup", "RuntimeError", f"lib/generate.py:17: {message}",
        f'  File "lib/generate.py", line 17, in project\n    return self.out(x)\n'
        f"RuntimeError: {message}\n",
    )  # fmt: skip
    finding = failed_finding(failure)
    lost = replace(
        row(failure.case, "latency_p50", 1.0, 1.0, "failed", findings=(finding,), method="none"),
        base=None, head=None, ratio=None, ratio_lo=None, ratio_hi=None,
        p=None, p_adjusted=None, df=None, se=None,
    )  # fmt: skip
    reason = Reason("failed", failure.case, because=finding)
    return [report("error", (reason,), [lost, *quiet(6)], failures=(failure,))]


def three_hundred_cases() -> list[Report]:
    """Three hundred cases, forty of which got slower."""
    results = quiet(300)
    slow = [
        row(one.case, one.metric, 1.232e-3, 1.232e-3 * (1.06 + number / 100), "regressed")
        for number, one in enumerate(results[: 40 * len(METRIC_NAMES) : len(METRIC_NAMES)])
    ]
    moved = {one.case for one in slow}
    others = [one for one in results if one.case not in moved or one.metric != "latency_p50"]
    reasons = [stated(f"{one.case}: latency_p50 worse", one.case, one.metric) for one in slow]
    return [report("fail", reasons, [*slow, *others], timing=Timing(5_130.0, 3_300.0, 2_400))]


def two_gpus() -> list[Report]:
    """The same commits on two GPUs, of which one got slower."""

    def on(device: str, one: Report) -> Report:
        key = f"linux-x86_64-{device.lower().replace(' ', '_')}-torch2.6.0-py3.11"
        facts = {**CPU, "device_name": device, "cuda": "12.6", "driver": "570.86.15"}
        return replace(one, environment=Environment(key, facts), not_measured={})

    return [on("NVIDIA H200", one_regression()[0]), on("NVIDIA L4", all_quiet()[0])]


SCENES: dict[str, Callable[[], list[Report]]] = {
    "all-quiet": all_quiet,
    "one-regression": one_regression,
    "improvements": improvements,
    "graph-break": graph_break,
    "regressions": regressions,
    "noisy-machine": noisy,
    "cut-short": cut_short,
    "crashed": crashed,
    "300-cases": three_hundred_cases,
    "two-gpus": two_gpus,
}


GOLDEN = {"pass": "all-quiet", "fail": "regressions", "undecided": "noisy-machine",
          "cut short": "cut-short"}  # fmt: skip
"""The scenes of which there is a picture in each width and scheme."""


def comment_of(name: str) -> str:
    """Return the comment of a scene."""
    return render_comment(SCENES[name](), links=LINKS)


def page_of(markdown: str, scheme: str) -> str:
    """Return ``markdown`` as GitHub's own cmark renders it, in GitHub's sizes and colours."""
    import cmarkgfm
    from cmarkgfm.cmark import Options

    body = cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    for emoji, sign in SIGNS.items():
        body = body.replace(emoji, sign)
    return (
        f"<!doctype html><html lang=en data-scheme={scheme}><meta charset=utf-8>"
        f"<title>A comment</title><style>{STYLE}</style><body>{body}"
    )


def pictures(markdown: str, folder: Path, name: str, browser: Browser) -> None:
    """Take the picture of ``markdown``; of a golden scene in each width and scheme."""
    every = name in GOLDEN.values()
    for width in WIDTHS if every else WIDTHS[:1]:
        for scheme in SCHEMES if every else SCHEMES[:1]:
            page = browser.new_page(viewport={"width": width, "height": 100})
            page.set_content(page_of(markdown, scheme))
            page.mouse.move(0, 0)
            suffix = "" if (width, scheme) == (WIDTHS[0], "light") else f"-{width}-{scheme}"
            path = folder / f"{name}{suffix}.png"
            page.screenshot(path=path, full_page=True)
            page.close()
            if shrink := shutil.which("pngquant"):  # a third of the size
                subprocess.run(
                    [shrink, "--force", "--output", str(path), "32", str(path)], check=True
                )


def main() -> int:
    """Write the gallery; exit with 1 where pictures are wanted and no browser is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "comments")
    parser.add_argument("--without-pictures", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    texts = {name: comment_of(name) for name in SCENES}
    for name, text in texts.items():
        (options.out / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"{name}: {len(text):,} characters")
    if options.without_pictures:
        return 0
    if browser:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            for name, text in texts.items():
                pictures(text, options.out, name, started)
            started.close()
        return 0
    print("no chromium: there are no pictures", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
