// The report's rows: strips beside those that stand open, and a list of all to search in.
"use strict";
(() => {
  const FIRST = 25;
  const PAGE = 200;
  const { element } = perfci;

  // a row's fields by name, with the texts that rows share
  const unpacked = (payload) =>
    payload.rows.map((values, index) => {
      const row = Object.fromEntries(payload.fields.map((name, at) => [name, values[at]]));
      const metricName = payload.metrics[row.metric] ?? "";
      return {
        ...row,
        index,
        metricName,
        note: payload.texts[row.note],
        facts: row.facts.map((at) => payload.texts[at]),
        replay: payload.replay && row.selection && payload.replay + row.selection,
        statusName: payload.statuses[row.status],
        causeName: payload.causes[row.cause],
        text: `${row.case} ${metricName}`.toLowerCase(),
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
    const sides = element("span", { class: "quiet" }, row.values);
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
    const ranked = [...rows].sort((one, other) => one.status - other.status || one.index - other.index);
    const lists = {
      metric: payload.metrics,
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
