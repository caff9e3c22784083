// A strip: each pair a dot from the first round to the last, the interval, what counts as no change.
"use strict";
(() => {
  const { drawn } = perfci;
  const SMALL = { width: 200, height: 50, side: 6, top: 2, bottom: 14, base: 3, radius: 2.5 };
  const LARGE = { side: 14, top: 4, bottom: 22, base: 6, radius: 4 };
  const LANE = 13;

  const percent = (ratio) => (ratio - 1) * 100;

  // pairs as changes on the scale of the row's own change: per cent, or differences in its unit
  perfci.pairs = (row) => {
    if (!row.paired || !row.change) return [];
    const [base, head] = row.sides.map((side) => side?.values ?? []);
    const found = [];
    for (let index = 0; index < Math.min(base.length, head.length); index += 1) {
      const [before, after] = [base[index], head[index]];
      const change = row.change.isRatio ? (before > 0 ? percent(after / before) : NaN) : after - before;
      found.push({ index, before, after, change });
    }
    return found.filter(({ change }) => Number.isFinite(change));
  };

  const marksOf = ({ isRatio, estimate, low, high, least, most }) => {
    const scale = isRatio ? percent : (value) => value;
    const on = (value) => (value === null ? null : scale(value));
    return { estimate: on(estimate), low: on(low), high: on(high), least: on(least), most: on(most) };
  };

  const xOf = (marks, pairs, size) => {
    const known = [marks.estimate, marks.low, marks.high, marks.least, marks.most, 0];
    const all = [...known.filter((value) => value !== null), ...pairs.map(({ change }) => change)];
    let [low, high] = [Math.min(...all), Math.max(...all)];
    if (low === high) [low, high] = [low - 1, high + 1];
    const inner = size.width - 2 * size.side;
    const x = (value) => size.side + ((value - low) / (high - low)) * inner;
    return { x, extent: [low, high] };
  };

  const parts = (row, size) => {
    const pairs = perfci.pairs(row);
    const marks = marksOf(row.change);
    const { x, extent } = xOf(marks, pairs, size);
    const [top, bottom] = [size.top, size.height - size.bottom];
    const upright = (name, value) => drawn("line", { class: name, x1: x(value), x2: x(value), y1: top, y2: bottom });
    const block = (name, from, to, inset) =>
      drawn("rect", { class: name, x: x(from), y: top + inset, width: Math.max(1, x(to) - x(from)), height: bottom - top - 2 * inset });
    const { least, most, low, high, estimate } = marks;
    const made = [];
    if (least !== null && most > least) made.push(block("band", least, most, 0));
    made.push(upright("zero", 0));
    if (low !== null && high !== null) made.push(block("interval", low, high, size.height > 60 ? 2 : 5));
    made.push(upright("estimate", estimate));
    const step = (bottom - top) / pairs.length;
    for (const [at, { change }] of pairs.entries()) {
      made.push(drawn("circle", { class: "pair", cx: x(change), cy: top + (at + 0.5) * step, r: Math.min(size.radius, Math.max(1.25, step)) }));
    }
    return { made, x, extent };
  };

  const spoken = (row) => {
    const pairs = perfci.pairs(row);
    const up = pairs.filter(({ change }) => change > 0).length;
    const dots = pairs.length ? `${up} of ${pairs.length} pairs rise; ` : "";
    return `${dots}change ${row.size}${row.interval ? `, 95 % interval ${row.interval}` : ""}`;
  };

  // the axis below a drawing: lines at round values, with their signs where these are changes
  perfci.axis = ({ x, extent }, unit, size, count, signed = false) => {
    const { found, name } = perfci.ticks(extent, unit, count);
    return found.flatMap(({ value, text }) => {
      const at = x(value);
      const words = { class: "tick middle", x: Math.min(Math.max(at, 22), size.width - 22), y: size.height - size.base };
      return [
        drawn("line", { class: "grid", x1: at, x2: at, y1: size.top, y2: size.height - size.bottom }),
        drawn("text", words, `${signed && value > 0 ? "+" : ""}${text}${name ? ` ${name}` : ""}`),
      ];
    });
  };

  const axis = (row, scale, size, count) =>
    perfci.axis(scale, row.change.isRatio ? "%" : row.unit, size, count, true);

  perfci.strip = (row) => {
    if (!row.change) return null;
    const { made, ...scale } = parts(row, SMALL);
    const { width, height } = SMALL;
    const said = { role: "img", "aria-label": spoken(row) };
    return drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, ...said }, ...axis(row, scale, SMALL, 3), ...made);
  };

  // the same with an axis, a lane for each pair
  perfci.largeStrip = (row, width) => {
    const lanes = Math.min(Math.max(perfci.pairs(row).length, 4), 24);
    const size = { ...LARGE, width, height: LARGE.top + LARGE.bottom + lanes * LANE };
    const { made, ...scale } = parts(row, size);
    const ticks = axis(row, scale, size, Math.max(2, Math.floor(width / 90)));
    const box = { viewBox: `0 0 ${width} ${size.height}`, height: size.height };
    return drawn("svg", { ...box, role: "img", "aria-label": spoken(row) }, ...ticks, ...made);
  };
})();
