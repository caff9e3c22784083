// Building the page. Text goes in as text nodes and attributes only: no string is read as HTML.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";

  const filled = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child != null && child !== ""));
    return element;
  };

  perfci.element = (tag, attributes = {}, ...children) =>
    filled(document.createElement(tag), attributes, children);

  perfci.drawn = (tag, attributes = {}, ...children) =>
    filled(document.createElementNS(SVG, tag), attributes, children);

  // `heads` are texts, each with whether its column is of numbers; a row has a cell for each of them
  perfci.table = (attributes, caption, heads, rows) => {
    const classOf = (at) => heads[at][1] && "number";
    const cellOf = (tag, more) => (content, at) => perfci.element(tag, { ...more, class: classOf(at) }, content);
    const head = heads.map(([text]) => text).map(cellOf("th", { scope: "col" }));
    const body = rows.map((cells) => perfci.element("tr", {}, ...cells.map(cellOf("td", {}))));
    return perfci.element(
      "table",
      attributes,
      caption && perfci.element("caption", { class: "unseen" }, caption),
      perfci.element("thead", {}, perfci.element("tr", {}, ...head)),
      perfci.element("tbody", {}, ...body),
    );
  };

  // calls `draw` whenever `node`, which is in the page, has another width than before
  perfci.onWidth = (node, draw, before = 0) => {
    let width = before;
    new ResizeObserver(() => {
      if (node.clientWidth === width || node.clientWidth === 0) return;
      width = node.clientWidth;
      draw();
    }).observe(node);
  };

  perfci.option = (value, text) => perfci.element("option", { value }, text);

  // "worse" is a word and an arrow, too: some people can't see the colour
  perfci.sign = (rises) => perfci.element("span", { "aria-hidden": "true" }, rises ? "▲ " : "▼ ");
})();
