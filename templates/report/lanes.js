// Two samples on one axis: a lane each, every value a dot, what stands for them a thick line.
"use strict";
(() => {
  const HEIGHT = 108;
  const LEFT = 12;
  const LANES = [28, 62];
  const { drawn } = perfci;

  // quantiles of many values: a line from the second to the last but one, a box in the middle
  const boxOf = (quantiles, x, y) => {
    const [, low, , left, middle, right, , high] = quantiles.map(x);
    return [
      drawn("line", { class: "whisker", x1: low, x2: high, y1: y, y2: y }),
      drawn("rect", { class: "box", x: left, y: y - 8, width: Math.max(1, right - left), height: 16 }),
      drawn("line", { class: "recorded", x1: middle, x2: middle, y1: y - 11, y2: y + 11 }),
    ];
  };

  const laneOf = ({ values, recorded, quantiles }, x, y, name) => {
    const ground = drawn("line", { class: "grid", x1: LEFT, x2: "100%", y1: y, y2: y });
    if (quantiles) return [ground, ...boxOf(quantiles, x, y)];
    const dotOf = (value) => drawn("circle", { class: `worker ${name}`, cx: x(value), cy: y, r: 5 });
    const middle = x(recorded);
    return [
      ground,
      ...values.map(dotOf),
      drawn("line", { class: "recorded", x1: middle, x2: middle, y1: y - 13, y2: y + 13 }),
    ];
  };

  const shownOf = ({ values, recorded, quantiles }) =>
    quantiles ? quantiles.slice(1, -1) : [...values, recorded];

  // `pair`: two of {values, recorded} or {quantiles}, in `unit`; `letters` are their names
  perfci.lanes = (frame, pair, unit, letters) => {
    const width = Math.max(frame.parentElement.clientWidth, 200);
    const all = pair.flatMap(shownOf);
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
    const names = letters.map((letter, at) => drawn("text", { class: "lane", x: 0, y: LANES[at] - 12 }, letter));
    frame.replaceChildren(...ticks, ...lanes, ...names);
  };
})();
