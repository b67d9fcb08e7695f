// Numbers in words, as server/warpline/view/units.py writes them, for the few that the server sends as numbers.

/** A time in milliseconds with three significant digits: "12.4 ms". */
export function ms(value: number): string {
  if (Math.abs(value) >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  const size = Math.abs(value);
  return `${value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)} ms`;
}

/** A ratio of step times: "2.6 times". */
export function times(value: number): string {
  return `${value.toFixed(value >= 1.995 ? 1 : 2)} times`;
}
