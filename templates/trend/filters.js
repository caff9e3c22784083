// The form above a list: words, metric, environment, and whether it moved.
"use strict";
(() => {
  const WAIT_MS = 120;
  const STANDINGS = ["steady", "worse", "better", "drifting", "too_few"];

  perfci.standing = (code) => STANDINGS[code];
  perfci.standingCode = (word) => STANDINGS.indexOf(word);
  perfci.hasMoved = (standing) => !["steady", "too_few"].includes(standing);

  // an empty select says "all": where there is only one to choose, nothing is asked
  const offer = (select, names) => {
    select.append(...names.map((name, place) => perfci.option(String(place), name)));
    select.closest("label").hidden = names.length < 2;
  };

  // calls changed({words, metric, environment, moved}) now and whenever the form changes;
  // metric and environment are places in the lists handed in, or null
  perfci.filters = (metrics, environments, changed) => {
    const form = document.getElementById("filters");
    const [words, metric, environment, moved] = ["words", "metric", "environment", "moved"].map(
      (name) => document.getElementById(name),
    );
    offer(metric, metrics);
    offer(environment, environments);
    const place = (select) => (select.value === "" ? null : Number(select.value));
    const notify = () =>
      changed({
        words: words.value.toLowerCase().split(/\s+/).filter(Boolean),
        metric: place(metric),
        environment: place(environment),
        moved: moved.checked,
      });
    let waiting = 0;
    words.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(notify, WAIT_MS);
    });
    for (const control of [metric, environment, moved]) control.addEventListener("change", notify);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      notify();
    });
    form.hidden = false;
    notify();
  };

  perfci.hasWords = (text, words) => words.every((word) => text.includes(word));

  perfci.found = (text) => {
    document.getElementById("found").textContent = text;
  };
})();
