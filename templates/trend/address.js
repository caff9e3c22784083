// The page's address holds what is chosen: a link to it shows the same. A page opened from disk
// may change nothing but what follows the #.
"use strict";
(() => {
  const split = () => {
    const [place, query = ""] = location.hash.slice(1).split("?");
    return [place, new URLSearchParams(query)];
  };

  perfci.chosen = (name) => split()[1].get(name) ?? "";

  perfci.choose = (choices) => {
    const [place, query] = split();
    for (const [name, value] of Object.entries(choices)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    const text = query.toString();
    const wanted = `#${place}${text && `?${text}`}`;
    if (wanted !== (location.hash || "#")) history.replaceState(null, "", wanted);
  };
})();
