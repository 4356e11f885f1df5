// Formats quantities by the same rules as the terminal report: durations and bytes with three significant digits, shares with one decimal, counts in full.

/** Returns the number of decimals that gives three significant digits. */
function decimals(size: number): number {
  return size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
}

/** Formats a value in the first unit in which it is below `step`, or the last; each is `step` of the one before. */
function scaled(value: number, step: number, units: readonly string[]): string {
  let size = Math.abs(value);
  let unit = 0;
  // The comparison is with the rounded text, so that 999.96 becomes 1.00 of the next unit.
  while (unit < units.length - 1 && Number(size.toFixed(decimals(size))) >= step) {
    size /= step;
    unit += 1;
  }
  return `${value < 0 ? "-" : ""}${size.toFixed(decimals(size))} ${units[unit]}`;
}

/** Formats a duration in nanoseconds, such as `873 ns`, `12.3 µs`, `1.04 ms`. */
export function duration(ns: number): string {
  if (Math.abs(ns) < 1000 && Number.isInteger(ns)) return `${ns} ns`;
  return scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
}

/** Formats bytes, such as `512 B`, `1.50 KiB`. */
export function bytes(size: number): string {
  if (size < 1024) return `${Math.round(size)} B`;
  return scaled(size, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
}

/** Formats a value of a counter in its unit, such as `1.98 GHz`, `12.5 %`. */
export function quantity(value: number, unit: string): string {
  switch (unit) {
    case "count":
      return Number.isInteger(value) ? count(value) : value.toFixed(decimals(Math.abs(value)));
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return `${bytes(value)}/s`;
    case "percent":
      return share(value / 100);
    case "hertz":
      return scaled(value, 1000, ["Hz", "kHz", "MHz", "GHz"]);
    case "watts":
      return `${value.toFixed(decimals(Math.abs(value)))} W`;
    case "celsius":
      return `${value.toFixed(1)} °C`;
    default:
      return `${value} ${unit}`;
  }
}

/**
 * Formats mean, least and greatest value, such as `63.0 % (41.0 % to 88.0 %)`; a constant as one value, and null as
 * `unknown here`.
 */
export function statisticsText(found: { mean: number; least: number; most: number } | null, unit: string): string {
  if (!found) return "unknown here";
  if (found.least === found.most) return quantity(found.mean, unit);
  return `${quantity(found.mean, unit)} (${quantity(found.least, unit)} to ${quantity(found.most, unit)})`;
}

/** Formats a count with thousands separators. */
export function count(number: number): string {
  return Math.round(number).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** Formats a share of 1 in per cent. A share close to nothing or everything never reads as if it were exactly that. */
export function share(part: number): string {
  const percent = part * 100;
  if (!Number.isFinite(percent)) return "unknown";
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  if (percent >= 99.95 && percent < 100) return ">99.9 %";
  return percent === 0 || percent === 100 ? `${percent} %` : `${percent.toFixed(1)} %`;
}

/** Formats a count with its noun, such as `1 gap`, `1,204 gaps`. */
export function plural(number: number, one: string, many: string): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Formats a factor, such as `4.57 ×`, `0.012 ×`. */
export function times(factor: number): string {
  if (!Number.isFinite(factor)) return "unknown";
  if (factor > 0 && factor < 0.095) return `${factor < 0.001 ? "<0.001" : factor.toPrecision(2)} ×`;
  return `${factor >= 99.5 ? count(factor) : factor.toFixed(decimals(factor))} ×`;
}

const UNITS = [
  { ns: 1e9, name: "s" },
  { ns: 1e6, name: "ms" },
  { ns: 1e3, name: "µs" },
  { ns: 1, name: "ns" },
] as const;

/** Formats a point in time since the trace's start, such as `1.0034 s`, as exactly as steps of `step_ns` need. */
export function instant(ns: number, step_ns: number): string {
  const unit = UNITS.find((unit) => Math.abs(ns) >= unit.ns) ?? UNITS[3];
  const digits = Math.max(0, Math.min(9, Math.round(Math.log10(unit.ns)) - Math.floor(Math.log10(Math.max(step_ns, 1)))));
  return `${(ns / unit.ns).toFixed(digits)} ${unit.name}`;
}

/** Formats a number; `unknown` for null and undefined. */
export function known(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "unknown" : format(value);
}
