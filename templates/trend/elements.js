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

  perfci.option = (value, text, selected = false) =>
    perfci.element("option", { value, selected }, text);

  // "worse" is a word and an arrow, too: some people can't see the colour
  perfci.sign = (rises) => perfci.element("span", { "aria-hidden": "true" }, rises ? "▲ " : "▼ ");
})();
