// A chart with its heading, the run below it, its changes, and what can be unfolded.
"use strict";
(() => {
  const { element, drawn } = perfci;
  const LEAST_DRAWN = 8; // pixels: less is a click

  const runText = (series, timeline, index) => {
    const row = series.rows[index];
    return {
      value: perfci.value(series.values[index], series.unit),
      date: perfci.dayText(timeline.dates[row]),
      sha: timeline.shas[row],
      subject: timeline.subjects[row],
      release: timeline.releases.find(([at]) => at === row)?.[1] ?? "",
      runner: timeline.runners.length > 1 ? timeline.runners[timeline.runner[row]] : "",
    };
  };

  const changeItem = (timeline) => (change) => {
    const sense = change.worse ? "worse" : "better";
    return element(
      "li",
      { class: sense },
      element("strong", {}, perfci.sign(change.rises), change.size),
      element("span", { class: "word" }, sense),
      element("span", { class: `badge ${change.status}` }, change.status),
      perfci.commit(timeline, change.commits),
      element("span", { class: "quiet" }, change.facts.join(" · ")),
    );
  };

  // the chart's keys: runs one by one, from change to change, and to both ends
  const moves = (series, index) => {
    const at = (row) => series.rows.indexOf(row);
    const last = series.rows.length - 1;
    return {
      ArrowLeft: Math.max(0, index - 1),
      ArrowDown: Math.max(0, index - 1),
      ArrowRight: Math.min(last, index + 1),
      ArrowUp: Math.min(last, index + 1),
      Home: 0,
      End: last,
      PageUp: series.changes.map((one) => at(one.after)).findLast((one) => one < index) ?? index,
      PageDown: series.changes.map((one) => at(one.after)).find((one) => one > index) ?? index,
    };
  };

  const live = (plot, readout, series, timeline) => {
    const frame = drawn("svg", { "aria-hidden": "true", focusable: "false" });
    plot.append(frame);
    const last = series.rows.length - 1;
    let index = last;
    let chart = perfci.chart(frame, series, timeline);

    const show = (at, marked) => {
      index = at;
      const run = runText(series, timeline, index);
      chart.show(marked ? index : null);
      plot.setAttribute("aria-valuenow", index);
      const spoken = [run.date, run.value, run.release, run.sha, run.subject];
      plot.setAttribute("aria-valuetext", spoken.filter(Boolean).join(", "));
      const facts = [run.date, run.release, run.runner].filter(Boolean).join(" · ");
      readout.replaceChildren(
        element("strong", {}, run.value),
        element("span", {}, facts),
        perfci.commit(timeline, run.sha),
        element("span", { class: "subject", title: run.subject }, run.subject),
      );
    };
    const rest = () => show(document.activeElement === plot ? index : last, document.activeElement === plot);

    // a mouse that is drawn over the chart zooms; a finger reads on, and scrolls
    let drawnFrom = null;
    plot.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) drawnFrom = event.offsetX;
      show(chart.nearest(event.offsetX), true); // a finger that taps doesn't move
    });
    plot.addEventListener("pointermove", (event) => {
      show(chart.nearest(event.offsetX), true);
      if (drawnFrom !== null && Math.abs(event.offsetX - drawnFrom) > LEAST_DRAWN) {
        chart.brush(drawnFrom, event.offsetX);
      }
    });
    plot.addEventListener("pointerup", (event) => {
      const far = drawnFrom !== null && Math.abs(event.offsetX - drawnFrom) > LEAST_DRAWN;
      const dates = far ? chart.dates(drawnFrom, event.offsetX) : null;
      drawnFrom = null;
      if (dates) perfci.zoom(...dates);
    });
    const redraw = () => {
      chart = perfci.chart(frame, series, timeline);
      rest();
    };
    perfci.onView(redraw);
    // a finger leaves as soon as it is lifted, and what it showed is still to be read
    plot.addEventListener("pointerleave", (event) => {
      drawnFrom = null;
      if (event.pointerType !== "touch") rest();
    });
    plot.addEventListener("focus", () => show(index, true));
    plot.addEventListener("blur", rest);
    plot.addEventListener("keydown", (event) => {
      const target = moves(series, index)[event.key];
      if (target === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      show(target, true);
    });
    perfci.onWidth(plot, redraw, plot.clientWidth);
    plot.setAttribute("aria-valuemin", 0);
    plot.setAttribute("aria-valuemax", last);
    show(last, false);
  };

  // A card that is empty until `fill(series, timeline)` is called.
  perfci.card = (about) => {
    const title = `${about.case} ${about.metricName}`;
    const plot = element("div", {
      class: "plot",
      role: "slider",
      tabindex: "0",
      "aria-label": `${title}, run`,
      "aria-valuemin": 0,
      "aria-valuemax": 0,
      "aria-valuenow": 0,
      "aria-valuetext": "not loaded yet",
    });
    const readout = element("p", { class: "readout" }, element("span", { class: "quiet" }, "Loading…"));
    const latest = element("p", { class: "latest" });
    const way = about.direction === "lower" ? "lower is better" : "higher is better";
    const heading = element("h3", {}, about.metricName, " ", element("span", { class: "quiet" }, way));
    const where = about.several && element("p", { class: "where quiet" }, about.environmentName);
    const node = element(
      "article",
      { class: `card ${about.standing}`, "aria-label": title },
      element("header", {}, element("div", {}, heading, where || null), latest),
      plot,
      readout,
    );
    return {
      node,
      plot,
      fill: (series, timeline) => {
        latest.textContent = perfci.value(series.values.at(-1), series.unit);
        live(plot, readout, series, timeline);
        const shown = [...series.changes].reverse().map(changeItem(timeline));
        if (shown.length) node.append(element("ul", { class: "changes" }, ...shown));
        node.append(perfci.runs(series, timeline));
      },
      fail: (error) => readout.replaceChildren(element("span", { class: "worse" }, error.message)),
    };
  };
})();
