// A series out of its chunk: rows, values, and the level between changes.
"use strict";
(() => {
  const TO_SD = 1.4826; // of normal noise: standard deviation ÷ median absolute deviation

  const median = (values) => {
    if (values.length === 0) return NaN;
    const sorted = [...values].sort((a, b) => a - b);
    const half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  };

  // the level is the median between two changes; a ramp leads from one level to the next
  const levelsOf = (rows, values, changes) => {
    const levels = [];
    let start = 0;
    for (const change of [...changes, null]) {
      const end = change ? rows.indexOf(change.before) : rows.length - 1;
      if (end >= start) {
        const own = values.slice(start, end + 1);
        const level = median(own);
        const spread = TO_SD * median(own.map((value) => Math.abs(value - level)));
        levels.push({ first: rows[start], last: rows[end], level, spread });
      }
      if (change) start = rows.indexOf(change.after);
    }
    return levels;
  };

  perfci.decoded = (entry, about) => {
    const { values } = entry;
    const rows = entry.rows ?? values.map((_, index) => index);
    return {
      ...about,
      rows,
      values,
      changes: entry.changes,
      sources: entry.sources,
      levels: levelsOf(rows, values, entry.changes),
    };
  };
})();
