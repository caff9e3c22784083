// Two samples on one axis: a lane each, every value a dot, what stands for them a thick line.
"use strict";
(() => {
  const SIZE = { height: 108, top: 8, bottom: 24, base: 8 };
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
    const ticks = perfci.axis({ x, extent }, unit, { ...SIZE, width }, Math.max(2, Math.floor(width / 110)));
    frame.setAttribute("viewBox", `0 0 ${width} ${SIZE.height}`);
    frame.setAttribute("height", SIZE.height);
    const lanes = pair.flatMap((run, at) => laneOf(run, x, LANES[at], at ? "second" : "first"));
    const names = letters.map((letter, at) => drawn("text", { class: "lane", x: 0, y: LANES[at] - 12 }, letter));
    frame.replaceChildren(...ticks, ...lanes, ...names);
  };
})();
