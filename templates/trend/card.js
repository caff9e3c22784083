// A chart with its heading, the run below it, its changes, and what can be unfolded.
"use strict";
(() => {
  const { element, drawn } = perfci;
  const LEAST_DRAWN = 8; // pixels: less is a click
  const SHA = /^[0-9a-f]{7,64}$/;

  // `text` is a commit's hash, or two with `..` between
  const commitLink = (timeline, text) => {
    const shown = element("code", {}, text);
    const [commit, compare] = timeline.forge;
    const shas = text.split("..");
    if (!commit || !shas.every((sha) => SHA.test(sha))) return shown;
    const pattern = shas.length === 2 ? compare : commit;
    const href = pattern.replace("{before}", shas[0]).replace("{after}", shas.at(-1));
    return element("a", { href, rel: "noopener" }, shown);
  };

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
      commitLink(timeline, change.commits),
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
        commitLink(timeline, run.sha),
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

  // all runs: what the chart shows, for who reads rather than sees
  const filledTable = (series, timeline) => {
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

  const runsTable = (series, timeline) => {
    const frame = { class: "scroll tall", tabindex: "0", role: "group", "aria-label": `Runs of ${series.title}` };
    const holder = element("div", frame);
    const details = element("details", {}, element("summary", {}, "All runs as a table"), holder);
    details.addEventListener("toggle", () => {
      if (details.open && !holder.firstChild) holder.append(filledTable(series, timeline));
    });
    return details;
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
        node.append(runsTable(series, timeline));
      },
      fail: (error) => readout.replaceChildren(element("span", { class: "worse" }, error.message)),
    };
  };
})();
