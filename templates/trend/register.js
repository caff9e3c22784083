// Where data files leave what they hold: each is a script that calls perfciTrend once.
"use strict";
const perfci = {};
(() => {
  const received = new Map();
  const id = (kind, name) => `${kind} ${name}`;

  window.perfciTrend = (kind, name, payload) => received.set(id(kind, name), payload);

  perfci.data = (kind, name) => received.get(id(kind, name));

  const coming = new Map();
  perfci.load = (path, kind, name) => {
    if (!coming.has(path)) {
      coming.set(
        path,
        new Promise((resolve, reject) => {
          const script = document.createElement("script");
          script.src = path;
          script.onload = () => {
            const payload = perfci.data(kind, name);
            if (payload === undefined) reject(new Error(`${path} holds something else`));
            else resolve(payload);
            script.remove();
          };
          script.onerror = () => reject(new Error(`${path} is missing: copy the whole folder`));
          document.head.append(script);
        }),
      );
    }
    return coming.get(path);
  };
})();
