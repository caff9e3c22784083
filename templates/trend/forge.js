// Commits as links to their pages on the forge, where the report knows one.
"use strict";
(() => {
  const { element } = perfci;
  const SHA = /^[0-9a-f]{7,64}$/;

  // `text` is a commit's hash, or two with `..` between
  perfci.commit = (timeline, text) => {
    const shown = element("code", {}, text);
    const [commit, compare] = timeline.forge;
    const shas = text.split("..");
    if (!commit || !shas.every((sha) => SHA.test(sha))) return shown;
    const pattern = shas.length === 2 ? compare : commit;
    const href = pattern.replace("{before}", shas[0]).replace("{after}", shas.at(-1));
    return element("a", { href, rel: "noopener" }, shown);
  };
})();
