// The report's rows: strips beside those that stand open, and a list of all to search in.
"use strict";
(() => {
  const FIRST = 25;
  const PAGE = 200;
  const SENSES = new Map([[1, "worse"], [-1, "better"], [0, "steady"]]);
  const { element } = perfci;

  const sideOf = (packed) => {
    if (!packed) return null;
    const [center, ...both] = packed;
    const [values, quantiles, firsts] = both.map(([scale, ...deltas]) => (deltas.length ? perfci.sums(deltas, scale) : []));
    return { center, values, quantiles, firsts };
  };

  const changeOf = (packed) => {
    if (!packed) return null;
    const [kind, estimate, low, high, least, most] = packed;
    return { isRatio: kind === 0, estimate, low, high, least, most };
  };

  // a row's numbers are unpacked when it is first drawn
  const unpacked = (payload) =>
    payload.rows.map((packed, place) => {
      const [name, metric, status, cause, sense, size, interval, before, after, note, facts, selection, change, sides, paired] = packed;
      const { texts } = payload;
      const [metricName, unit] = payload.metrics[metric] ?? ["", ""];
      const selected = texts[selection];
      let drawnSides = null;
      return {
        place,
        case: texts[name],
        metric,
        metricName,
        unit,
        status,
        statusName: payload.statuses[status],
        cause,
        causeName: payload.causes[cause],
        sense: SENSES.get(sense),
        size: texts[size],
        interval: texts[interval],
        before: texts[before],
        after: texts[after],
        note: texts[note],
        facts: facts.flatMap((text, at) => (at % 2 ? [] : [[texts[text], texts[facts[at + 1]]]])),
        replay: payload.replay && selected ? payload.replay + selected : "",
        change: changeOf(change),
        get sides() {
          drawnSides ??= sides.map(sideOf);
          return drawnSides;
        },
        paired: paired === 1,
        text: `${texts[name]} ${metricName}`.toLowerCase(),
      };
    });

  const unfolds = (details, row) => {
    const holder = element("div", { class: "opened" });
    details.append(holder);
    details.addEventListener("toggle", () => {
      if (details.open && !holder.hasChildNodes()) perfci.detail(holder, row);
    });
  };

  const lineOf = (row) => {
    const name = element("span", { class: "name" }, element("code", {}, row.case), " ", element("span", { class: "metric" }, row.metricName));
    const sides = element("span", { class: "quiet" }, `${row.before} → ${row.after}`);
    const figure = element("span", { class: "figure" }, element("strong", {}, row.size), " ", sides);
    const strip = element("span", { class: "strip" }, perfci.strip(row));
    const status = element("span", { class: "status" }, element("span", { class: "word" }, row.statusName));
    if (row.causeName) status.append(" ", element("span", { class: "badge" }, row.causeName));
    const details = element("details", { class: row.sense }, element("summary", {}, name, figure, strip, status));
    unfolds(details, row);
    return element("li", {}, details);
  };

  const list = (payload, rows) => {
    const results = document.getElementById("results");
    const ranked = [...rows].sort((one, other) => one.status - other.status || one.place - other.place);
    const lists = {
      metric: payload.metrics.map(([name]) => name),
      status: payload.statuses,
      cause: payload.causes.map((name) => name || "nothing to blame"),
    };
    perfci.listing(ranked, lists, {
      first: FIRST,
      page: PAGE,
      noun: "comparisons",
      hasMoved: (row) => row.sense !== "steady",
      begin: () => results.replaceChildren(),
      append: (next) => results.append(...next.map(lineOf)),
    });
  };

  const payload = JSON.parse(document.getElementById("rows").textContent);
  const rows = unpacked(payload);
  for (const holder of document.querySelectorAll(".moved .strip")) {
    const strip = perfci.strip(rows[holder.dataset.row]);
    if (strip) holder.append(strip);
  }
  for (const details of document.querySelectorAll(".moved .detail")) {
    details.hidden = false;
    unfolds(details, rows[details.dataset.row]);
  }
  list(payload, rows);
})();
