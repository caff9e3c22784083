// Scales and ticks: from runs and values to pixels.
"use strict";
(() => {
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const LEAST_SPAN = 0.03; // of the value: noise of a thousandth is not drawn as mountains

  const quantile = (sorted, share) => sorted[Math.round(share * (sorted.length - 1))];

  // What the axis shows: all values but far outliers, which are drawn at the edge.
  perfci.extent = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const [low, high] = [quantile(sorted, 0.02), quantile(sorted, 0.98)];
    const reach = Math.max(high - low, Math.abs(high) * LEAST_SPAN);
    const bottom = Math.max(sorted[0], low - reach);
    const top = Math.min(sorted.at(-1), high + reach);
    const least = Math.max(Math.abs(top), Math.abs(bottom)) * LEAST_SPAN || 1;
    const lack = Math.max(0, least - (top - bottom)) / 2;
    const room = (top - bottom + 2 * lack) * 0.08;
    const lowest = bottom >= 0 ? Math.max(0, bottom - lack - room) : bottom - lack - room;
    return [lowest, top + lack + room];
  };

  // round numbers in the unit people read: [{value, text}], about `count` of them
  perfci.ticks = ([low, high], unit, count) => {
    const [size, name] = perfci.scaleOf(Math.max(Math.abs(low), Math.abs(high)), unit);
    const span = (high - low) / size;
    const power = 10 ** Math.floor(Math.log10(span / count));
    let step = [1, 2, 5, 10].map((round) => round * power).find((one) => span / one <= count);
    if (unit === "count") step = Math.max(1, step);
    const digits = Math.max(0, Math.min(10, -Math.floor(Math.log10(step) + 1e-9)));
    const found = [];
    for (let at = Math.ceil(low / size / step); at * step <= high / size + step * 1e-9; at += 1) {
      found.push({ value: at * step * size, text: (at * step).toFixed(digits) });
    }
    return { found, name };
  };

  perfci.dayText = (date) => {
    const [year, month, day] = date.split("-");
    return month ? `${Number(day)} ${MONTHS[month - 1]} ${year}` : date;
  };

  // Where dates stand below the axis: at the turn of months, or evenly in a short history.
  perfci.dateTicks = (dates, first, last, room) => {
    const turns = [];
    for (let row = first + 1; row <= last; row += 1) {
      if (dates[row] && dates[row].slice(0, 7) !== dates[row - 1]?.slice(0, 7)) turns.push(row);
    }
    const months = turns.length >= 3;
    const rows = months ? turns : Array.from({ length: last - first + 1 }, (_, at) => first + at);
    const each = Math.max(1, Math.ceil(rows.length / room));
    const yearOf = (row) => (dates[row] ?? "").slice(0, 4);
    const text = (row, before) => {
      const [year, month, day] = (dates[row] ?? "").split("-");
      if (!month) return "";
      if (!months) return `${Number(day)} ${MONTHS[month - 1]}`;
      if (month === "01") return year;
      const turned = before !== undefined && yearOf(before) !== year; // no January between them
      return turned ? `${MONTHS[month - 1]} ${year}` : MONTHS[month - 1];
    };
    // the turn of the year is kept: without it months are of no year
    const newYear = rows.findIndex((row) => months && dates[row].slice(5, 7) === "01");
    const from = newYear >= 0 ? newYear % each : 0;
    const shown = rows.filter((_, at) => at % each === from);
    return shown.map((row, at) => ({ row, text: text(row, shown[at - 1]) }));
  };
})();
