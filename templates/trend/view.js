// What all charts of a page show: their axis, and from when to when. It is in the page's address.
"use strict";
(() => {
  const listeners = new Set();
  const fields = ["axis", "from", "to"];
  const control = (name) => document.getElementById(name);
  const view = Object.fromEntries(fields.map((name) => [name, perfci.chosen(name)]));

  // where each run stands on the axis: as many days on as its date, or one run after the other
  const positionsOf = (timeline) => {
    if (view.axis !== "dates") return timeline.dates.map((_, row) => row);
    let latest = -Infinity;
    return timeline.dates.map((date) => {
      const day = Date.parse(date) / 86400000;
      if (day > latest) latest = day; // a commit may be older than the one it came after
      return Number.isFinite(latest) ? latest : 0;
    });
  };

  // the rows that are shown, at least two of them, and where each stands
  perfci.shown = (timeline) => {
    const positions = positionsOf(timeline);
    const last = timeline.dates.length - 1;
    let rows = timeline.dates.map((_, row) => row);
    const inside = rows.filter((row) => {
      const date = timeline.dates[row];
      return (!view.from || date >= view.from) && (!view.to || date <= view.to);
    });
    if (inside.length > 1) rows = inside;
    return { first: rows[0] ?? 0, last: Math.max(rows.at(-1) ?? 0, 1), positions, whole: rows.length > last };
  };

  perfci.onView = (listener) => listeners.add(listener);

  const apply = () => {
    for (const name of fields) control(name).value = view[name];
    control("whole").hidden = !view.from && !view.to;
    perfci.choose(view);
    for (const listener of listeners) listener();
  };

  perfci.zoom = (from, to) => {
    Object.assign(view, { from, to });
    apply();
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const name of fields) {
      control(name).value = view[name];
      control(name).addEventListener("change", () => {
        view[name] = control(name).value;
        apply();
      });
    }
    control("whole").hidden = !view.from && !view.to;
    control("whole").addEventListener("click", () => perfci.zoom("", ""));
    control("view").hidden = false;
  });
})();
