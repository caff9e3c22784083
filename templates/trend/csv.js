// What is shown, as a file for spreadsheets.
"use strict";
(() => {
  const { element } = perfci;
  const FORMULA = /^[=+\-@\t\r＝＋－＠]/; // what a spreadsheet would compute gets an apostrophe

  const cell = (value) => {
    if (typeof value === "number") return String(value);
    const text = FORMULA.test(value) ? `'${value}` : value;
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };

  perfci.csv = (rows) => rows.map((row) => `${row.map(cell).join(",")}\n`).join("");

  // a button that saves what `rows()` returns, the first of them the heads
  perfci.saver = (name, label, rows) => {
    const button = element("button", { type: "button", class: "small" }, label);
    button.addEventListener("click", () => {
      const href = URL.createObjectURL(new Blob([perfci.csv(rows())], { type: "text/csv" }));
      element("a", { href, download: `${name.replace(/[^\w.=-]+/g, "_").slice(0, 100)}.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(href), 1000);
    });
    return button;
  };
})();
