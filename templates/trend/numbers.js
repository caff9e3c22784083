// Numbers for people: the same rules as perfci/units.py (a test compares the two).
"use strict";
(() => {
  const TIME = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const FLOP = [[1e12, "TFLOP"], [1e9, "GFLOP"], [1e6, "MFLOP"], [1e3, "kFLOP"], [1, "FLOP"]];
  const BYTES = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
  const DASH = "–";

  const steps = (unit) => {
    if (unit === "s") return TIME;
    if (unit === "flop") return FLOP;
    return unit === "bytes" || unit === "bytes/call" ? BYTES : null;
  };

  const threeDigits = (value) => {
    const size = Math.abs(value);
    if (size >= 1e6) return exponent(value.toExponential(2));
    if (size >= 100) return value.toFixed(0);
    if (size >= 10) return value.toFixed(1);
    if (size >= 0.001) return String(Number(value.toPrecision(3)));
    return size === 0 ? "0" : exponent(value.toExponential(2), true);
  };

  // as Python writes them: 1.2e+06 and 1.20e-06
  const exponent = (text, keepZeros = false) => {
    const [mantissa, power] = text.split("e");
    const digits = keepZeros ? mantissa : String(Number(mantissa));
    return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  };

  // the step by which an axis or a value is written: [size of one, its name]
  perfci.scaleOf = (value, unit) => {
    const known = steps(unit);
    if (!known) {
      const name = unit === "ratio" || unit === "count" ? "" : unit;
      return [1, name];
    }
    const [size, name] = known.find(([least]) => Math.abs(value) >= least) ?? known.at(-1);
    return [size, unit === "bytes/call" ? `${name}/call` : name];
  };

  perfci.value = (value, unit) => {
    if (value == null || !Number.isFinite(value)) return DASH;
    if (unit === "count") return value.toFixed(0);
    const [size, name] = perfci.scaleOf(value, unit);
    return name ? `${threeDigits(value / size)} ${name}` : threeDigits(value / size);
  };

  perfci.change = (ratio) => {
    if (ratio == null || !Number.isFinite(ratio)) return DASH;
    if (ratio >= 3) return `×${threeDigits(ratio)}`;
    const percent = Math.round((ratio - 1) * 1000) / 10;
    return `${percent < 0 ? "-" : "+"}${Math.abs(percent).toFixed(1)} %`;
  };

  perfci.difference = (difference, unit) => {
    const sign = difference > 0 ? "+" : difference < 0 ? "-" : "±";
    return sign + perfci.value(Math.abs(difference), unit);
  };
})();
