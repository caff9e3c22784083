// Light or dark: as the system says, until somebody presses the button. Runs before the first paint.
"use strict";
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  // a browser may forbid a page from disk to keep anything: then the choice lasts for this page
  const kept = (action) => {
    try {
      return action(window.localStorage);
    } catch {
      return null;
    }
  };
  const chosen = kept((storage) => storage.getItem("perfci-theme"));
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const say = () => {
      button.textContent = isDark() ? "Switch to light" : "Switch to dark";
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      kept((storage) => storage.setItem("perfci-theme", root.dataset.theme));
      say();
    });
    system.addEventListener("change", say);
    say();
  });
})();
