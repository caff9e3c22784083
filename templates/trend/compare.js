// Two chosen runs side by side: each worker's value on one axis.
"use strict";
(() => {
  const HEIGHT = 108;
  const LEFT = 12;
  const LANES = [28, 62];
  const { element, drawn, option } = perfci;

  const laneOf = ({ values, recorded }, x, y, name) => {
    const middle = x(recorded);
    return [
      drawn("line", { class: "grid", x1: LEFT, x2: "100%", y1: y, y2: y }),
      ...values.map((value) => drawn("circle", { class: `worker ${name}`, cx: x(value), cy: y, r: 5 })),
      drawn("line", { class: "recorded", x1: middle, x2: middle, y1: y - 13, y2: y + 13 }),
    ];
  };

  const draw = (frame, pair, unit) => {
    const width = Math.max(frame.parentElement.clientWidth, 200);
    const all = pair.flatMap(({ values, recorded }) => [...values, recorded]);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const room = Math.max((high - low) * 0.06, Math.abs(high) * 0.002) || 1;
    const extent = [low - room, high + room];
    const x = (value) => LEFT + ((value - extent[0]) / (extent[1] - extent[0])) * (width - 2 * LEFT);
    const { found, name } = perfci.ticks(extent, unit, Math.max(2, Math.floor(width / 110)));
    const ticks = found.flatMap(({ value, text }) => {
      const at = x(value);
      const line = drawn("line", { class: "grid", x1: at, x2: at, y1: 8, y2: HEIGHT - 24 });
      const words = { class: "tick middle", x: Math.min(Math.max(at, 24), width - 24), y: HEIGHT - 8 };
      return [line, drawn("text", words, name ? `${text} ${name}` : text)];
    });
    frame.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    frame.setAttribute("height", HEIGHT);
    const lanes = pair.flatMap((run, at) => laneOf(run, x, LANES[at], at ? "second" : "first"));
    const names = ["A", "B"].map((letter, at) => drawn("text", { class: "lane", x: 0, y: LANES[at] - 12 }, letter));
    frame.replaceChildren(...ticks, ...lanes, ...names);
  };

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
    const selects = ["A", "B"].map((letter, at) => {
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
      draw(frame, pair, series.unit);
      said.textContent = sentence(pair, series.unit);
    };
    for (const label of selects) label.lastChild.addEventListener("change", show);
    details.addEventListener("toggle", show);
    return details;
  };
})();
