// What a row unfolds to: its pairs, both sides' distributions, what the test was, how to replay it.
"use strict";
(() => {
  const { element, drawn } = perfci;
  const NAMES = ["base", "head"];

  const figure = (title, picture) => element("figure", {}, element("figcaption", {}, title), picture);

  const laneFigure = (title, pair, unit, label) => {
    const frame = drawn("svg", { class: "workers", role: "img", "aria-label": label });
    const made = figure(title, frame);
    return { made, draw: () => perfci.lanes(frame, pair, unit, NAMES) };
  };

  const processes = (row) => {
    const known = row.sides.every((side) => side && side.values.length > 0);
    if (!known) return null;
    const pair = row.sides.map(({ center, values }) => ({ values, recorded: center }));
    const said = row.sides.map(({ center }, at) => `${NAMES[at]} ${perfci.value(center, row.unit)}`);
    return laneFigure("Processes: each dot is one process's value", pair, row.unit, `Processes: ${said.join(", ")}`);
  };

  const calls = (row) => {
    if (!row.sides.every((side) => side && side.quantiles.length === 9)) return null;
    const pair = row.sides.map(({ quantiles }) => ({ quantiles }));
    const said = row.sides.map(({ quantiles }, at) => {
      const [low, middle, high] = [1, 4, 7].map((at) => perfci.value(quantiles[at], row.unit));
      return `${NAMES[at]} ${middle} (${low} to ${high})`;
    });
    const title = "Calls: median, the middle half, and 1 to 99 %";
    return laneFigure(title, pair, row.unit, `Calls: ${said.join(", ")}`);
  };

  const warming = (row) => {
    const known = row.sides.map((side, at) => ({ name: NAMES[at], calls: side?.firsts ?? [] })).filter(({ calls }) => calls.length > 1);
    if (known.length === 0) return null;
    const said = known.map(({ name, calls }) => {
      const [first, last] = [calls[0], calls[calls.length - 1]].map((value) => perfci.value(value, row.unit));
      return `${name} from ${first} to ${last} in ${calls.length} calls`;
    });
    const frame = drawn("svg", { class: "workers", role: "img", "aria-label": `First calls: ${said.join(", ")}` });
    const made = figure("First calls of a process, each the median over the processes (logarithmic)", frame);
    return { made, draw: () => perfci.firstCalls(frame, known, row.unit) };
  };

  const table = (row) => {
    const pairs = perfci.pairs(row);
    if (pairs.length === 0) return null;
    const heads = ["Pair", "base", "head", "change"].map((head) => [head, true]);
    const rows = pairs.map(({ index, before, after, change }) => {
      const said = row.change.isRatio ? perfci.change(1 + change / 100) : perfci.difference(change, row.unit);
      return [String(index + 1), perfci.value(before, row.unit), perfci.value(after, row.unit), said];
    });
    const made = perfci.table({ class: "pairs" }, "", heads, rows);
    const frame = { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Pairs as a table" };
    return element("details", {}, element("summary", {}, "Pairs as a table"), element("div", frame, made));
  };

  const replay = (row) => {
    if (!row.replay) return null;
    const line = element("code", {}, row.replay);
    const button = element("button", { type: "button", hidden: !navigator.clipboard }, "Copy");
    const said = element("span", { role: "status", class: "quiet" });
    button.addEventListener("click", () =>
      navigator.clipboard.writeText(row.replay).then(
        () => said.replaceChildren("copied"),
        () => said.replaceChildren("the browser does not allow it"),
      ),
    );
    return element("div", { class: "replay" }, line, button, said);
  };

  // fills `holder`, which is in the page and seen: drawings are as wide as it is
  perfci.detail = (holder, row) => {
    const lanes = [processes(row), calls(row), warming(row)].filter(Boolean);
    const figures = element("div", { class: "figures" });
    const title = row.paired ? "Pairs: change of head against base" : "Change of head against base, unpaired";
    const strip = row.change && row.change.low !== row.change.high && figure(title, element("div"));
    if (strip) figures.append(strip);
    figures.append(...lanes.map(({ made }) => made));
    const terms = row.facts.map((text, at) => element(at % 2 ? "dd" : "dt", {}, text)); // in turn
    const inner = [
      row.note && element("p", { class: "facts" }, row.note),
      figures.childElementCount ? figures : null,
      element("dl", { class: "facts-list" }, ...terms),
      table(row),
      replay(row),
    ];
    holder.replaceChildren(...inner.filter(Boolean));
    const draw = () => {
      for (const lane of lanes) lane.draw();
      if (strip) strip.lastChild.replaceChildren(perfci.largeStrip(row, Math.max(strip.clientWidth, 200)));
    };
    perfci.onWidth(holder, draw);
  };
})();
