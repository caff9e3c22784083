// Two chosen runs of any age side by side: the recorded values, and each worker's where it is kept.
"use strict";
(() => {
  const LETTERS = ["A", "B"];
  const { element, drawn, option } = perfci;

  const sentence = (pair, unit) => {
    const [first, second] = pair.map(({ recorded }) => recorded);
    const change = first === 0 ? perfci.difference(second - first, unit) : perfci.change(second / first);
    const values = `As recorded (the thick lines): A ${perfci.value(first, unit)}, B ${perfci.value(second, unit)}; B against A ${change}.`;
    const counts = pair.map(({ values }) => values.length);
    if (counts.every((count) => count > 0)) return `${values} From ${counts.join(" and ")} workers.`;
    return `${values} Workers’ own values are shown of the newest runs and around open changes.`;
  };

  // the runs around the newest change, best where their workers are kept, else the last two
  const suggested = (series) => {
    const known = series.rows.filter((row) => series.workers.has(row));
    const hasWorkers = (one) => known.includes(one.before) && known.includes(one.after);
    const change = series.changes.findLast(hasWorkers) ?? series.changes.at(-1);
    const rows = known.length > 1 ? known : series.rows;
    return change ? [change.before, change.after] : [rows.at(-2), rows.at(-1)];
  };

  const namesOf = (series, timeline) => {
    const nameAt = (date, row) => `${date}  ${timeline.shas[row] || "no commit"}`.trim();
    const plain = series.rows.map((row) => nameAt(timeline.dates[row], row));
    const uses = new Map();
    for (const name of plain) uses.set(name, (uses.get(name) ?? 0) + 1);
    // twice on one day: only the time distinguishes them
    const timed = (row) => nameAt(timeline.measured[row].replace("T", " "), row);
    return series.rows.map((row, at) => (uses.get(plain[at]) > 1 ? timed(row) : plain[at]));
  };

  // a select of all runs, and a date that chooses the last run up to it
  const chooser = (letter, series, timeline, changed) => {
    const lower = letter.toLowerCase();
    const select = element("select", { class: `run-${lower}` });
    const date = element("input", { type: "date", class: `date-${lower}`, "aria-label": `Date for ${letter}` });
    date.addEventListener("change", () => {
      const row = series.rows.findLast((one) => timeline.dates[one] <= date.value);
      if (!date.value || row === undefined) return;
      select.value = String(row);
      changed();
    });
    select.addEventListener("change", () => {
      date.value = "";
      changed();
    });
    const label = element("label", {}, element("span", {}, `Run ${letter}`), select);
    return { select, node: element("div", {}, label, date) };
  };

  perfci.comparison = (series, timeline) => {
    if (series.rows.length < 2) return null;
    const frame = drawn("svg", { class: "workers", "aria-hidden": "true" });
    const said = element("p", { class: "said", role: "status" });
    const show = () => {
      const pair = choosers.map(({ select }) => {
        const row = Number(select.value);
        // the run's own value, as in the chart: the workers' median may be another number
        return { values: series.workers.get(row) ?? [], recorded: series.values[series.rows.indexOf(row)] };
      });
      perfci.lanes(frame, pair, series.unit, LETTERS);
      said.textContent = sentence(pair, series.unit);
    };
    const choosers = LETTERS.map((letter) => chooser(letter, series, timeline, show));
    const details = element(
      "details",
      { class: "compare" },
      element("summary", {}, "Compare two runs"),
      element("div", { class: "choose" }, ...choosers.map(({ node }) => node)),
      element("div", { class: "lanes" }, frame),
      said,
    );
    details.addEventListener("toggle", () => {
      if (!details.open) return;
      if (!choosers[0].select.options.length) {
        const names = namesOf(series, timeline);
        const chosen = suggested(series);
        choosers.forEach(({ select }, letter) => {
          const options = series.rows.map((row, at) => option(String(row), names[at], row === chosen[letter]));
          select.append(...options.reverse());
        });
      }
      show();
    });
    return details;
  };
})();
