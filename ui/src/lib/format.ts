/** Numbers as text, always with their unit. */

const UNITS: readonly [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** Three significant digits, without an exponent. */
function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 99.95) return Math.round(value).toLocaleString("en-US");
  return size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** A length of time. */
export function span(ns: number): string {
  if (!Number.isFinite(ns)) return "–";
  if (ns === 0) return "0 s";
  const size = Math.abs(ns);
  if (size >= 120e9) {
    const s = Math.round(size / 1e9);
    const rest = `${Math.floor(s / 60) % 60} min ${s % 60} s`;
    return (ns < 0 ? "−" : "") + (s >= 3600 ? `${Math.floor(s / 3600)} h ${rest}` : rest);
  }
  for (const [scale, unit] of UNITS) {
    if (size >= scale * 0.9995) return `${digits(ns / scale)} ${unit}`;
  }
  return `${digits(ns)} ns`;
}

export const spanS = (s: number): string => span(s * 1e9);

/** An instant, as precise as a picture of `visible` nanoseconds needs. */
export function instant(ns: number, visible: number): string {
  const step = visible / 1000;
  if (visible >= 2e9) return `${(ns / 1e9).toFixed(decimals(step / 1e9))} s`;
  if (ns < 100e9) return `${(ns / 1e6).toLocaleString("en-US", fixed(decimals(step / 1e6)))} ms`;
  return `${(ns / 1e9).toFixed(decimals(step / 1e9))} s`;
}

function decimals(step: number): number {
  return Math.max(0, Math.min(9, Math.ceil(-Math.log10(step))));
}

function fixed(n: number): Intl.NumberFormatOptions {
  return { minimumFractionDigits: n, maximumFractionDigits: n };
}

export function count(n: number): string {
  if (!Number.isFinite(n)) return "–";
  if (Math.abs(n) >= 1e9) return `${digits(n / 1e9)} G`;
  if (Math.abs(n) >= 1e7) return `${digits(n / 1e6)} M`;
  return Number.isInteger(n) ? n.toLocaleString("en-US") : digits(n);
}

/** Of the whole, 0 to 1. */
export function percent(share: number): string {
  const p = share * 100;
  if (!Number.isFinite(p)) return "–";
  if (p === 0) return "0 %";
  if (Math.abs(p) < 0.05) return "< 0.1 %";
  return `${Math.abs(p) >= 9.95 ? Math.round(p) : p.toFixed(1)} %`;
}

/** A cell of a table, by its unit. */
export function cell(value: string | number | null, unit: string): string {
  if (value === null) return "–";
  if (typeof value === "string") return value;
  switch (unit) {
    case "ns":
      return span(value);
    case "ns since start":
      return `${(value / 1e9).toFixed(6)} s`;
    case "share":
      return percent(value);
    case "number":
      return String(value);
    case "address":
      return `0x${value.toString(16)}`;
    default:
      return count(value);
  }
}

/** `threads` or `1 thread`. */
export function many(n: number, one: string, more = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : more}`;
}

/** Where a path ends. */
export function base(path: string): string {
  const at = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"));
  return path.slice(at + 1) || path;
}

/** One line of CSV. */
export function csvLine(cells: readonly (string | number | null)[]): string {
  const quote = (c: string | number | null) => {
    const text = c === null ? "" : String(c);
    // A cell that a spreadsheet would take for a formula is shown as text.
    const safe = /^[=+\-@\t\r]/.test(text) && typeof c === "string" ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return `${cells.map(quote).join(",")}\n`;
}
