"""A calibration as GitHub Markdown, for a wiki page or an issue."""

from __future__ import annotations

from perfci.model.calibration import Calibration
from perfci.render.calibration import text as words
from perfci.render.calibration.files import toml_lines
from perfci.render.cutting import cut
from perfci.render.escape import Safe
from perfci.render.markdown import LIMIT, markdown_environment
from perfci.render.templates import read_template


def render_calibration_markdown(calibration: Calibration, limit: int = LIMIT) -> str:
    """Return the calibration as Markdown, at most ``limit`` characters long."""
    environment = markdown_environment()
    environment.globals |= {
        "share": words.share,
        "rounds": words.rounds,
        "modes": words.modes_text,
        "setting": words.setting_text,
        "why": words.suggestion_text,
    }
    template = environment.from_string(read_template("calibration.md.j2"))
    toml = toml_lines(calibration)
    return cut(
        template.render(
            calibration=calibration,
            headline=words.headline(calibration),
            legend=words.LEGEND,
            main=words.main_rows(calibration),
            others=(*words.other_rows(calibration), *words.tail_rows(calibration)),
            bimodal=[row for row in calibration.seen if row.modes is not None],
            promise=words.promise_text(calibration),
            blind=words.blind_text(calibration),
            alarms=words.alarms_text(calibration),
            suggestions=calibration.suggestions,
            # keys and numbers only: names of benchmarks are letters, digits, `_`, `.` and `-`
            toml=Safe(f"```toml\n{toml}\n```") if toml else "",
            spent=words.spent_text(calibration),
        ),
        limit,
    )
