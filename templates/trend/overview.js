// The overview's list of all series: searched, filtered, and shown a part at a time.
"use strict";
(() => {
  const FIRST = 12;
  const OWN_ACCORD = 100_000; // bytes of the list of all series that are loaded without being asked for
  const PAGE = 200;
  const { element } = perfci;

  if (matchMedia("(max-width: 46rem)").matches) {
    for (const wide of document.querySelectorAll(".wide")) wide.open = false;
  }

  const unpacked = ({ slugs, cases, series }) =>
    series.map(([caseAt, metric, environment, latest, standing = "steady", isNew = 0, size = ""]) => {
      const [benchmark, name] = cases[caseAt];
      return { slug: slugs[benchmark], case: name, metric, environment, latest, standing, isNew, size };
    });

  const show = (payload) => {
    const all = unpacked(payload);
    const { metrics, environments } = payload;
    const names = metrics.map(([name, unit], index) =>
      metrics.some(([other], at) => other === name && at !== index) ? `${name} (${unit})` : name,
    );
    for (const one of all) {
      const words = [one.case, metrics[one.metric][0], environments[one.environment][1]];
      one.text = words.join(" ").toLowerCase();
    }
    const results = document.getElementById("results");
    let matching = [];
    let body = null;

    const status = (one) => {
      if (!perfci.hasMoved(one.standing)) {
        const text = one.standing === "too_few" ? "too few runs" : one.standing;
        return element("td", { class: "status quiet", role: "cell" }, text);
      }
      const cell = element("td", { class: `status ${one.standing}`, role: "cell" });
      cell.append(element("span", { class: "word" }, one.standing));
      if (one.size) cell.append(" ", element("span", { class: "figure" }, one.size));
      if (one.isNew) cell.append(" ", element("span", { class: "badge" }, "new"));
      return cell;
    };

    const row = (one) => {
      const [metric, unit] = metrics[one.metric];
      const [key, label] = environments[one.environment];
      const wanted = [one.case, metric, key].map(encodeURIComponent).join("/");
      const href = `benchmarks/${one.slug}.html#${wanted}`;
      const cells = [
        element("td", { role: "cell" }, element("a", { href }, element("code", {}, one.case))),
        element("td", { role: "cell" }, metric),
      ];
      if (environments.length > 1) cells.push(element("td", { class: "where quiet", role: "cell" }, label));
      const latest = perfci.value(one.latest, unit);
      cells.push(element("td", { class: "number", role: "cell" }, latest), status(one));
      return element("tr", { role: "row" }, ...cells);
    };

    const table = () => {
      body = element("tbody", { role: "rowgroup" });
      // roles in so many words: on a phone the table is laid out as a list, and would be read as none
      const column = { scope: "col", role: "columnheader" };
      const heads = ["Case", "Metric", ...(environments.length > 1 ? ["Environment"] : [])];
      const cells = heads.map((head) => element("th", column, head));
      cells.push(element("th", { ...column, class: "number" }, "Latest"));
      cells.push(element("th", column, "Status"));
      const caption = element("caption", { class: "unseen" }, "All series, with the latest value");
      const head = element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...cells));
      const made = element("table", { role: "table" }, caption, head, body);
      const frame = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results" };
      results.replaceChildren(element("div", frame, made));
    };

    const lists = { metric: names, environment: environments.map(([, label]) => label) };
    const begin = (found) => {
      matching = found;
      table();
      if (found.length > 0) return;
      results.replaceChildren(element("p", {}, "Nothing matches. Take a word away, or untick “Only what moved”."));
    };
    perfci.listing(all, lists, {
      first: FIRST,
      page: PAGE,
      noun: "series",
      hasMoved: (one) => perfci.hasMoved(one.standing),
      begin,
      append: (next) => body.append(...next.map(row)),
    });
  };

  document.addEventListener("DOMContentLoaded", () => {
    const results = document.getElementById("results");
    if (!results) return;
    const load = () =>
      perfci.load("data/search.js", "search", "").then(show, (error) => perfci.found(error.message));
    const bytes = Number(results.dataset.bytes);
    const isChosen = ["words", "moved", "metric", "environment"].some((name) => perfci.chosen(name));
    if (bytes <= OWN_ACCORD || isChosen) {
      load();
      return;
    }
    const [form, more] = ["filters", "more"].map((id) => document.getElementById(id));
    let begun = false;
    const begin = () => {
      if (begun) return;
      begun = true;
      more.textContent = "Loading…";
      load();
    };
    form.addEventListener("focusin", begin);
    more.addEventListener("click", begin);
    more.textContent = `List all ${Number(results.dataset.series).toLocaleString("en")} series (${perfci.value(bytes, "bytes")})`;
    form.hidden = more.hidden = false;
  });
})();
