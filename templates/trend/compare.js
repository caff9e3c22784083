// Two chosen runs side by side: each worker's value on one axis.
"use strict";
(() => {
  const LETTERS = ["A", "B"];
  const { element, drawn, option } = perfci;

  const sentence = (pair, unit) => {
    const [first, second] = pair.map(({ recorded }) => recorded);
    const change = first === 0 ? perfci.difference(second - first, unit) : perfci.change(second / first);
    const workers = pair.map(({ values }) => values.length).join(" and ");
    return `As recorded (the thick lines): A ${perfci.value(first, unit)}, B ${perfci.value(second, unit)}; B against A ${change}. From ${workers} workers.`;
  };

  // the runs around the newest change where their workers are kept, else the last two
  const suggested = (series, rows) => {
    const change = series.changes.findLast((one) => rows.includes(one.before) && rows.includes(one.after));
    return change ? [change.before, change.after] : [rows.at(-2) ?? rows.at(-1), rows.at(-1)];
  };

  perfci.comparison = (series, timeline) => {
    const rows = [...series.workers.keys()].filter((row) => series.rows.includes(row));
    if (rows.length === 0) return null;
    const chosen = suggested(series, rows);
    const nameAt = (date, row) => `${date}  ${timeline.shas[row] || "no commit"}`.trim();
    const names = rows.map((row) => nameAt(timeline.dates[row], row));
    // twice on one day: only the time distinguishes them
    const isTwice = (name) => names.indexOf(name) !== names.lastIndexOf(name);
    const name = (row) => {
      const plain = nameAt(timeline.dates[row], row);
      return isTwice(plain) ? nameAt(timeline.measured[row].replace("T", " "), row) : plain;
    };
    const selects = LETTERS.map((letter, at) => {
      const options = [...rows].reverse().map((row) => option(String(row), name(row), row === chosen[at]));
      const select = element("select", { class: `run-${letter.toLowerCase()}` }, ...options);
      return element("label", {}, element("span", {}, `Run ${letter}`), select);
    });
    const frame = drawn("svg", { class: "workers", "aria-hidden": "true" });
    const said = element("p", { class: "said", role: "status" });
    const details = element(
      "details",
      { class: "compare" },
      element("summary", {}, "Compare two runs"),
      element("div", { class: "choose" }, ...selects),
      element("div", { class: "lanes" }, frame),
      said,
    );
    const show = () => {
      if (!details.open) return;
      const pair = selects.map((label) => {
        const row = Number(label.lastChild.value);
        // the run's own value, as in the chart: the workers' median may be another number
        return { values: series.workers.get(row), recorded: series.values[series.rows.indexOf(row)] };
      });
      perfci.lanes(frame, pair, series.unit, LETTERS);
      said.textContent = sentence(pair, series.unit);
    };
    for (const label of selects) label.lastChild.addEventListener("change", show);
    details.addEventListener("toggle", show);
    return details;
  };
})();
