// The first calls of both sides, which warm a process up: call by call, on a logarithmic scale.
"use strict";
(() => {
  const HEIGHT = 150;
  const LEFT = 64;
  const RIGHT = 44;
  const TOP = 12;
  const BOTTOM = 28;
  const { drawn } = perfci;

  // `sides`: {name, calls} each, the calls in `unit`
  perfci.firstCalls = (frame, sides, unit) => {
    const width = Math.max(frame.parentElement.clientWidth, 200);
    const every = sides.flatMap(({ calls }) => calls).filter((value) => value > 0);
    const [low, high] = [Math.log(Math.min(...every)), Math.log(Math.max(...every))];
    const most = Math.max(...sides.map(({ calls }) => calls.length));
    const x = (index) => LEFT + (index / (most - 1)) * (width - LEFT - RIGHT);
    const y = (value) => HEIGHT - BOTTOM - ((Math.log(value) - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
    const levels = [high, (low + high) / 2, low].flatMap((level) => {
      const at = y(Math.exp(level));
      const line = drawn("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: at, y2: at });
      return [line, drawn("text", { class: "tick end", x: LEFT - 6, y: at + 4 }, perfci.value(Math.exp(level), unit))];
    });
    const callNames = [1, Math.round(most / 2), most].map((call) =>
      drawn("text", { class: "tick middle", x: x(call - 1), y: HEIGHT - 8 }, call === 1 ? "call 1" : String(call)),
    );
    const lines = sides.flatMap(({ name, calls }) => {
      const kept = calls.map((value, index) => [x(index), y(value)]).filter(([, at]) => Number.isFinite(at));
      const points = kept.map((point) => point.map((value) => value.toFixed(1)).join(",")).join(" ");
      return [
        drawn("polyline", { class: `first-calls ${name}`, points }),
        ...kept.map(([cx, cy]) => drawn("circle", { class: `first-call ${name}`, cx, cy, r: 2.5 })),
      ];
    });
    // names beside the last call of each; where these lie close, one above the other
    const ends = sides.map(({ calls }) => y(calls[calls.length - 1]));
    const apart = ends.length === 2 && Math.abs(ends[0] - ends[1]) < 14;
    const names = sides.map(({ name, calls }, at) => {
      const shift = apart ? (at === (ends[0] <= ends[1] ? 0 : 1) ? -4 : 12) : 4;
      return drawn("text", { class: "lane", x: x(calls.length - 1) + 6, y: ends[at] + shift }, name);
    });
    frame.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    frame.setAttribute("height", HEIGHT);
    frame.replaceChildren(...levels, ...callNames, ...lines, ...names);
  };
})();
