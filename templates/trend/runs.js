// All runs of a series as a table: what the chart shows, for who reads rather than sees.
"use strict";
(() => {
  const { element } = perfci;

  const filled = (series, timeline) => {
    const starts = new Map(series.changes.map((change) => [change.after, change]));
    const rows = series.rows.map((row, index) => {
      const change = starts.get(row);
      const size = change ? `${change.size} ${change.worse ? "worse" : "better"}` : "";
      const value = perfci.value(series.values[index], series.unit);
      return [timeline.dates[row], value, size, element("code", {}, timeline.shas[row]), timeline.subjects[row]];
    });
    const heads = ["Date", "Value", "Change", "Commit", "Subject"].map((head) => [head, head === "Value"]);
    return perfci.table({}, `Every run of ${series.title}`, heads, rows.reverse());
  };

  perfci.runs = (series, timeline) => {
    const frame = { class: "scroll tall", tabindex: "0", role: "group", "aria-label": `Runs of ${series.title}` };
    const holder = element("div", frame);
    const details = element("details", {}, element("summary", {}, "All runs as a table"), holder);
    details.addEventListener("toggle", () => {
      if (details.open && !holder.firstChild) holder.append(filled(series, timeline));
    });
    return details;
  };
})();
