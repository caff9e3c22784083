// One series as a chart: values, levels, changes with their commit range, releases, one run.
"use strict";
(() => {
  const HEIGHT = 224;
  const MARGIN = { left: 50, right: 14, top: 40, bottom: 24 };
  const LETTER = 6.6; // width of a date's letter below the axis
  const DATE_GAP = 8;
  const DATE_ROOM = 34; // a month's name, with the gap to the next one
  const LONG = 28; // pixels: a wider range is marked above the values, and does not cover them
  const { drawn } = perfci;

  // the part of a series in the rows from `first` to `last`; all of it where none of it is there
  const within = (series, first, last) => {
    const isIn = (row) => row >= first && row <= last;
    const kept = series.rows.map((row, index) => index).filter((index) => isIn(series.rows[index]));
    if (kept.length === 0 || kept.length === series.rows.length) return series;
    const clip = (row) => Math.min(Math.max(row, first), last);
    const levels = series.levels.filter((level) => level.last >= first && level.first <= last);
    return {
      ...series,
      rows: kept.map((index) => series.rows[index]),
      values: kept.map((index) => series.values[index]),
      sources: series.sources.filter(isIn),
      changes: series.changes.filter((change) => isIn(change.before) && isIn(change.after)),
      levels: levels.map((level) => ({ ...level, first: clip(level.first), last: clip(level.last) })),
    };
  };

  const layout = (series, { first, last, positions }, width) => {
    const [low, high] = perfci.extent(series.values);
    const at = (row) => positions[row] ?? row;
    const span = at(last) - at(first) || 1;
    const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
    return {
      width,
      low,
      high,
      first,
      last,
      right: width - MARGIN.right,
      bottom: HEIGHT - MARGIN.bottom,
      x: (row) => MARGIN.left + ((at(Math.min(Math.max(row, first), last)) - at(first)) / span) * inner.width,
      y: (value) => MARGIN.top + (1 - (value - low) / (high - low)) * inner.height,
    };
  };

  const axes = (series, timeline, scale) => {
    const parts = [];
    const { found, name } = perfci.ticks([scale.low, scale.high], series.unit, 5);
    for (const { value, text } of found) {
      const y = scale.y(value);
      parts.push(drawn("line", { class: "grid", x1: MARGIN.left, x2: scale.right, y1: y, y2: y }));
      parts.push(drawn("text", { class: "tick end", x: MARGIN.left - 7, y: y + 4 }, text));
    }
    if (name) parts.push(drawn("text", { class: "tick end", x: MARGIN.left - 7, y: MARGIN.top - 9 }, name));
    const room = Math.max(2, Math.floor((scale.right - MARGIN.left) / DATE_ROOM));
    const taken = [];
    const ticks = perfci.dateTicks(timeline.dates, scale.first, scale.last, room);
    const isYear = ({ text }) => /\d{4}$/.test(text);
    // runs lie unevenly: of dates that would overlap the year stays, or the first
    for (const { row, text } of [...ticks.filter(isYear), ...ticks.filter((one) => !isYear(one))]) {
      const x = scale.x(row);
      const half = (text.length * LETTER + DATE_GAP) / 2;
      const overlaps = taken.some(([other, reach]) => Math.abs(other - x) < half + reach);
      if (x > scale.right - 12 || overlaps) continue;
      taken.push([x, half]);
      parts.push(drawn("line", { class: "grid", x1: x, x2: x, y1: scale.bottom, y2: scale.bottom + 4 }));
      parts.push(drawn("text", { class: "tick middle", x, y: scale.bottom + 17 }, text));
    }
    return parts;
  };

  const releases = (timeline, scale) => {
    const parts = [];
    let free = -Infinity;
    for (const [row, name] of timeline.releases) {
      if (row < scale.first || row > scale.last) continue;
      const x = scale.x(row);
      parts.push(drawn("line", { class: "release", x1: x, x2: x, y1: 14, y2: scale.bottom }));
      const length = Math.min(name.length, 14) * 6.2 + 8;
      const start = Math.min(x + 3, scale.right - length + 8);
      if (start < free) continue; // its line is drawn, and the run below names it
      const text = name.length > 14 ? `${name.slice(0, 13)}…` : name;
      parts.push(drawn("text", { class: "tick release-name", x: start, y: 12 }, text));
      free = start + length;
    }
    return parts;
  };

  const isOpen = (change) => change.status === "new" || change.status === "known";

  const changes = (series, scale) => {
    const parts = [];
    let free = -Infinity;
    for (const change of series.changes) {
      const [left, right, from, to] = [change.before, change.after, ...change.within].map(scale.x);
      const sense = `${change.worse ? "worse" : "better"}${isOpen(change) ? "" : " past"}`;
      const width = Math.max(right - left, 3);
      const whole = { y: MARGIN.top - 4, height: scale.bottom - MARGIN.top + 4 };
      const strip = { y: MARGIN.top - 4, height: 5 };
      const tall = (span) => (span > LONG ? strip : whole);
      if (to - from > width) {
        parts.push(drawn("rect", { class: `within ${sense}`, x: from, width: to - from, ...tall(to - from) }));
      }
      const long = width > LONG ? " long" : "";
      parts.push(drawn("rect", { class: `range ${sense}${long}`, x: (left + right - width) / 2, width, ...tall(width) }));
      const text = `${change.rises ? "▲" : "▼"} ${change.size}`;
      const length = text.length * 6.6;
      const x = Math.min(Math.max((left + right) / 2, MARGIN.left + length / 2), scale.right - length / 2);
      if (x - length / 2 < free) continue; // it is in the list below the chart
      parts.push(drawn("text", { class: `size ${sense}`, x, y: MARGIN.top - 9 }, text));
      free = x + length / 2 + 4;
    }
    return parts;
  };

  const clip = (scale) => (y) => Math.min(Math.max(y, MARGIN.top), scale.bottom);

  // of the runs that share half a pixel the first, the lowest and the highest are drawn
  const drawnRuns = (series, scale) => {
    const columns = new Map();
    series.rows.forEach((row, index) => {
      const column = Math.round(scale.x(row) * 2);
      const known = columns.get(column);
      if (!known) columns.set(column, { first: index, low: index, high: index });
      else if (series.values[index] < series.values[known.low]) known.low = index;
      else if (series.values[index] > series.values[known.high]) known.high = index;
    });
    const indices = [...columns.values()].flatMap(({ first, low, high }) => [first, low, high]);
    return [...new Set(indices)].sort((one, other) => one - other);
  };

  const values = (series, scale) => {
    const parts = [];
    const isShown = (index) => {
      const value = series.values[index];
      return value <= scale.high && value >= scale.low;
    };
    // a missing run breaks the line: nothing is known there
    const follows = (index) => series.rows[index - 1] === series.rows[index] - 1 && isShown(index - 1);
    let [line, dots, edge] = ["", "", ""];
    for (const index of drawnRuns(series, scale)) {
      const row = series.rows[index];
      const [x, y] = [scale.x(row).toFixed(1), scale.y(series.values[index]).toFixed(1)];
      if (!isShown(index)) {
        const above = series.values[index] > scale.high;
        edge += above ? `M${x} ${MARGIN.top + 1}l4 6h-8z` : `M${x} ${scale.bottom - 1}l4 -6h-8z`;
        continue;
      }
      line += `${follows(index) ? "L" : "M"}${x} ${y}`;
      const goesOn = index + 1 < series.rows.length && follows(index + 1) && isShown(index + 1);
      if (!follows(index) && !goesOn) dots += `M${x} ${y}m-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0`;
    }
    parts.push(drawn("path", { class: "values", d: line }));
    if (dots) parts.push(drawn("path", { class: "dots", d: dots }));
    // a level's runs lie within two of their standard deviations, most of them
    for (const { first, last, level: y, spread } of series.levels) {
      const [top, bottom] = [y + 2 * spread, y - 2 * spread].map(scale.y).map(clip(scale));
      const box = { x: scale.x(first), width: Math.max(scale.x(last) - scale.x(first), 0), y: top };
      if (bottom > top) parts.unshift(drawn("rect", { class: "noise", ...box, height: bottom - top }));
    }
    const level = series.levels.map(
      ({ first, last, level: y }, index) =>
        `${index ? "L" : "M"}${scale.x(first).toFixed(1)} ${scale.y(y).toFixed(1)}L${scale.x(last).toFixed(1)} ${scale.y(y).toFixed(1)}`,
    );
    parts.push(drawn("path", { class: "level", d: level.join("") }));
    for (const row of series.sources) {
      const x = scale.x(row);
      parts.push(drawn("path", { class: "source", d: `M${x - 4} ${scale.bottom}h8l-4 -6z` }));
    }
    if (edge) parts.push(drawn("path", { class: "outside", d: edge }));
    return parts;
  };

  const cursor = (series, scale, index) => {
    const x = scale.x(series.rows[index]);
    const y = Math.min(Math.max(scale.y(series.values[index]), MARGIN.top), scale.bottom);
    return [
      drawn("line", { class: "cursor", x1: x, x2: x, y1: MARGIN.top, y2: scale.bottom }),
      drawn("circle", { class: "cursor-dot", cx: x, cy: y, r: 4.5 }),
    ];
  };

  // Draws into `frame` (an SVG element) and returns what moves on it: {show(index), nearest(x),
  // brush(x, x), dates(x, x)}. Indices are into `whole`, all of the series.
  perfci.chart = (frame, whole, timeline) => {
    const width = Math.max(frame.parentElement.clientWidth, 200);
    const shown = perfci.shown(timeline);
    const series = within(whole, shown.first, shown.last);
    const scale = layout(series, shown, width);
    const run = drawn("g");
    const indexOf = (row) => whole.rows.indexOf(row);
    const isShown = (index) => whole.rows[index] >= scale.first && whole.rows[index] <= scale.last;
    frame.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    frame.setAttribute("height", HEIGHT);
    frame.replaceChildren(
      ...axes(series, timeline, scale),
      ...changes(series, scale),
      ...releases(timeline, scale),
      ...values(series, scale),
      run,
    );
    return {
      show: (index) =>
        run.replaceChildren(...(index === null || !isShown(index) ? [] : cursor(whole, scale, index))),
      nearest: (x) => {
        const distance = (row) => Math.abs(scale.x(row) - x);
        return indexOf(series.rows.reduce((near, row) => (distance(row) < distance(near) ? row : near)));
      },
      brush: (from, to) => {
        const box = { x: Math.min(from, to), width: Math.abs(to - from) };
        const tall = { y: MARGIN.top, height: scale.bottom - MARGIN.top };
        run.replaceChildren(drawn("rect", { class: "brush", ...box, ...tall }));
      },
      // the first and the last date between two points
      dates: (from, to) => {
        const inside = timeline.dates.filter(
          (_, row) => scale.x(row) >= Math.min(from, to) && scale.x(row) <= Math.max(from, to) && row >= scale.first && row <= scale.last,
        );
        return inside.length > 1 ? [inside.reduce((a, b) => (a < b ? a : b)), inside.reduce((a, b) => (a > b ? a : b))] : null;
      },
    };
  };
})();
