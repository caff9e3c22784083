// The form above a list: words, selects such as the metric, and whether it moved. The page's address
// holds what is chosen, behind the #: a page opened from disk may change nothing else.
"use strict";
(() => {
  const WAIT_MS = 120;

  const split = () => {
    const [anchor, query = ""] = location.hash.slice(1).split("?");
    return [anchor, new URLSearchParams(query)];
  };

  perfci.chosen = (name) => split()[1].get(name) ?? "";

  perfci.choose = (choices) => {
    const [anchor, query] = split();
    for (const [name, value] of Object.entries(choices)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    const text = query.toString();
    const wanted = `#${anchor}${text && `?${text}`}`;
    if (wanted !== (location.hash || "#")) history.replaceState(null, "", wanted);
  };

  perfci.hasMoved = (standing) => !["steady", "too_few"].includes(standing);

  // an empty select says "all": where there is only one to choose, nothing is asked
  const offer = (select, names) => {
    select.append(...names.map((name, index) => perfci.option(String(index), name)));
    select.closest("label").hidden = names.length < 2;
  };

  // calls changed({words, moved, …}) now and whenever the form changes; `lists` are names by the
  // select's id, and the choice is an index into its list, or null
  const filters = (lists, changed) => {
    const [form, words, moved, ...selects] = ["filters", "words", "moved", ...Object.keys(lists)].map(
      (name) => document.getElementById(name),
    );
    for (const select of selects) offer(select, lists[select.id]);
    const chosenIndex = (select) => (select.value === "" ? null : Number(select.value));
    const nameOf = (select) => (select.value === "" ? "" : lists[select.id][Number(select.value)]);
    words.value ||= perfci.chosen("words"); // words may have been typed while the list was loaded
    moved.checked ||= perfci.chosen("moved") !== "";
    for (const select of selects) {
      const at = lists[select.id].indexOf(perfci.chosen(select.id) || null);
      if (at >= 0) select.value = String(at);
    }
    const notify = () => {
      perfci.choose({
        words: words.value,
        moved: moved.checked ? "1" : "",
        ...Object.fromEntries(selects.map((select) => [select.id, nameOf(select)])),
      });
      changed({
        words: words.value.toLowerCase().split(/\s+/).filter(Boolean),
        moved: moved.checked,
        ...Object.fromEntries(selects.map((select) => [select.id, chosenIndex(select)])),
      });
    };
    let waiting = 0;
    words.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(notify, WAIT_MS);
    });
    for (const control of [moved, ...selects]) control.addEventListener("change", notify);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      notify();
    });
    form.hidden = false;
    notify();
  };

  perfci.found = (text) => {
    document.getElementById("found").textContent = text;
  };

  // those of `rows` that the form asks for, a part at a time: `begin(matching)` empties the list,
  // `append(next)` adds to it. `lists` are as above: a row has its indices into them by the same names
  perfci.listing = (rows, lists, { first, page, noun, hasMoved, begin, append }) => {
    const more = document.getElementById("more");
    const counted = (number) => number.toLocaleString("en");
    let [matching, shown] = [[], 0];

    const extend = () => {
      const next = matching.slice(shown, shown + (shown ? page : first));
      append(next);
      shown += next.length;
      const left = matching.length - shown;
      more.hidden = left <= 0;
      more.textContent = `Show ${counted(Math.min(page, left))} more of ${counted(left)}`;
    };

    more.addEventListener("click", extend);
    filters(lists, (wanted) => {
      matching = rows.filter(
        (row) =>
          (!wanted.moved || hasMoved(row)) &&
          Object.keys(lists).every((name) => wanted[name] === null || row[name] === wanted[name]) &&
          wanted.words.every((word) => row.text.includes(word)),
      );
      shown = 0;
      perfci.found(`${counted(matching.length)} of ${counted(rows.length)} ${noun}`);
      begin(matching);
      extend();
    });
  };
})();
