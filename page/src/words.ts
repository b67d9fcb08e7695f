// Numbers as words, as server/warpline/model/units.py writes them: a test compares the two.

/** `toFixed` that rounds exact ties to even, as Python does: 12.25 MiB is "12.2 MiB" in both. */
function fixed(value: number, digits: number): string {
  const plain = value.toFixed(digits);
  if (!Number.isInteger(value * 2 ** (digits + 1))) return plain; // ties have no more binary digits
  const scaled = value * 10 ** digits;
  const below = Math.floor(scaled);
  if (scaled - below !== 0.5) return plain;
  return ((below % 2 === 0 ? below : below + 1) / 10 ** digits).toFixed(digits);
}

function digits(value: number, smallest: number): string {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return "0";
  if (magnitude < smallest) return `<${smallest}`;
  if (magnitude < 0.0995) return fixed(value, 3);
  if (magnitude < 9.95) return fixed(value, 2);
  return magnitude < 99.95 ? fixed(value, 1) : fixed(value, 0);
}

/** The number of a time in milliseconds, for columns that are headed by it. */
export const milliseconds = (value: number): string => digits(value, 0.001);

export const ms = (value: number): string =>
  Math.abs(value) >= 10_000 ? `${fixed(value / 1000, 1)} s` : `${milliseconds(value)} ms`;

/** A span on the timeline, given in nanoseconds. */
export function span(ns: number): string {
  if (Math.abs(ns) < 1000) return `${fixed(ns, 0)} ns`;
  if (Math.abs(ns) < 1e6) return `${digits(ns / 1000, 0.001)} µs`;
  return ms(ns / 1e6);
}

export const percent = (ratio: number): string => percentage(ratio * 100);

export function percentage(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return "0 %";
  if (magnitude < 0.1) return "<0.1 %";
  if (magnitude >= 99.5 && magnitude < 100) return `${fixed(Math.min(magnitude, 99.9), 1)} %`;
  return magnitude < 9.95 ? `${fixed(value, 1)} %` : `${fixed(value, 0)} %`;
}

export function size(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (Math.abs(value) >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 || Math.abs(value) >= 100 ? fixed(value, 0) : fixed(value, 1)} ${units[at] ?? ""}`;
}

export function count(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 10_000) return String(value);
  if (Math.abs(value) < 100) return fixed(value, 1);
  return fixed(value, 0).replace(/\B(?=(\d{3})+(?!\d))/g, " ");
}

export function rate(value: number, unit: string): string {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let at = 0;
  while (Math.abs(value) >= 1000 && at < prefixes.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${Math.abs(value) >= 100 ? fixed(value, 0) : fixed(value, 1)} ${prefixes[at] ?? ""}${unit}`;
}

/** Without control and direction characters: a run may come from a stranger. */
export const printable = (text: string): string => text.replace(/\t/g, "    ").replace(/\p{C}/gu, "\uFFFD");
