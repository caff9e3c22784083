// One benchmark's page: its cases, filtered; a chart loads its chunk when it comes into view.
"use strict";
(() => {
  const PAGE = 40;
  const TO_SD = 1.4826; // of normal noise: standard deviation ÷ median absolute deviation
  const { element } = perfci;
  const slug = document.getElementById("data").dataset.slug;
  const holder = document.getElementById("cases");

  const described = (index) =>
    index.series.map(([caseAt, metricAt, environmentAt, , standing = "steady", isNew = 0], number) => {
      const name = index.cases[caseAt][1];
      const axes = /\[(.*)\]$/.exec(name)?.[1];
      const [metric, unit, direction] = index.metrics[metricAt];
      const [key, environment, timeline] = index.environments[environmentAt];
      const title = `${name} ${metric}`;
      const text = `${title} ${environment}`.toLowerCase();
      return {
        number, case: name, axes, caseAt, metric: metricAt, metricName: metric, unit, direction, key,
        environment: environmentAt, environmentName: environment, title, text, isNew,
        timeline: perfci.data("timeline", String(timeline)), standing,
        several: index.environments.length > 1,
      };
    });

  const median = (values) => {
    if (values.length === 0) return NaN;
    const sorted = [...values].sort((a, b) => a - b);
    const half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  };

  // the level is the median between two changes; a ramp leads from one level to the next
  const levelsOf = (rows, values, changes) => {
    const levels = [];
    let start = 0;
    for (const change of [...changes, null]) {
      const end = change ? rows.indexOf(change.before) : rows.length - 1;
      if (end >= start) {
        const own = values.slice(start, end + 1);
        const level = median(own);
        const spread = TO_SD * median(own.map((value) => Math.abs(value - level)));
        levels.push({ first: rows[start], last: rows[end], level, spread });
      }
      if (change) start = rows.indexOf(change.after);
    }
    return levels;
  };

  // a series out of its chunk: rows, values, and the level between changes
  const decoded = (entry, about) => {
    const { values } = entry;
    const rows = entry.rows ?? values.map((_, index) => index);
    return {
      ...about,
      rows,
      values,
      changes: entry.changes,
      sources: entry.sources,
      levels: levelsOf(rows, values, entry.changes),
    };
  };

  const filler = (size) => (card, about) => {
    const chunk = Math.floor(about.number / size);
    const name = `${slug}.${chunk}`;
    perfci.load(`../data/${encodeURIComponent(name)}.js`, "chunk", name).then(
      (entries) => card.fill(decoded(entries[about.number % size], about), about.timeline),
      card.fail,
    );
  };

  const wanted = () => {
    const parts = location.hash.slice(1).split("?")[0].split("/");
    try {
      return parts.length === 3 ? parts.map(decodeURIComponent) : null;
    } catch {
      return null; // not an address that this site made
    }
  };

  // the chart that the address names comes first, whatever the filters say
  const linkedFirst = (all) => {
    const address = wanted();
    if (!address) return [all, null];
    const [name, metric, key] = address;
    const linked = all.find((one) => one.case === name && one.metricName === metric && one.key === key);
    if (!linked) return [all, null];
    const own = all.filter((one) => one.caseAt === linked.caseAt && one !== linked);
    const others = all.filter((one) => one.caseAt !== linked.caseAt);
    return [[linked, ...own, ...others], linked];
  };

  const environments = (all) => {
    const box = document.getElementById("facts");
    const timelines = new Set(all.map((one) => one.timeline));
    for (const timeline of timelines) {
      const facts = timeline.facts.flatMap(([fact, value]) => [
        element("dt", {}, fact),
        element("dd", {}, value),
      ]);
      box.lastElementChild.append(
        element("h3", {}, timeline.label),
        element("p", {}, element("code", {}, timeline.key)),
        element("dl", { class: "facts-list" }, ...facts),
      );
    }
    box.hidden = false;
  };

  const show = (index) => {
    const [all, linked] = linkedFirst(described(index));
    const fill = filler(index.chunk);
    const waiting = new Map();
    const near = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          if (!isIntersecting) continue;
          near.unobserve(target);
          fill(...waiting.get(target));
        }
      },
      { rootMargin: "600px" },
    );
    let section = null;

    const add = (about) => {
      if (section?.caseAt !== about.caseAt) {
        const cards = element("div", { class: "cards" });
        const heading = element("h2", {}, element("code", {}, about.axes || about.case));
        holder.append(element("section", { class: "case" }, heading, cards));
        section = { caseAt: about.caseAt, cards };
      }
      const card = perfci.card(about);
      waiting.set(card.node, [card, about]);
      section.cards.append(card.node);
      near.observe(card.node);
      if (about === linked) card.node.classList.add("linked");
    };

    const begin = (matching) => {
      near.disconnect();
      waiting.clear();
      holder.replaceChildren();
      section = null;
      if (matching.length === all.length) perfci.found("");
      if (matching.length === 0) holder.append(element("p", {}, "Nothing matches."));
    };

    environments(all);
    const lists = {
      metric: index.metrics.map(([name]) => name),
      environment: index.environments.map(([, label]) => label),
    };
    perfci.listing(all, lists, {
      first: PAGE,
      page: PAGE,
      noun: "charts",
      hasMoved: (one) => perfci.hasMoved(one.standing),
      begin,
      append: (next) => next.forEach(add),
    });
  };

  const index = perfci.data("benchmark", slug);
  if (index) show(index);
  else perfci.found("The data of this page are missing: copy the whole folder.");
  window.addEventListener("hashchange", () => location.reload());
})();
