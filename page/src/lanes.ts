// Rows of the timeline: spans that do not overlap, sorted, and how a row is drawn when most are thinner than a pixel.
import type { Kind, Timeline, Track } from "./data";

export const TITLE = 15;
const HEIGHT: Record<Kind, number> = { marks: 16, lines: 18, ops: 12, idle: 12, stream: 18 };
const DEEPEST = 6;

export interface Lane {
  track: number;
  kind: Kind;
  y: number;
  height: number;
  start: Float64Array;
  end: Float64Array;
  item: Int32Array; // in its track
}

export interface Layout {
  lanes: Lane[];
  titles: { y: number; text: string }[];
  height: number;
}

/** The lanes of all tracks, from `top` on. Calls deeper than a few levels are left out unless `deep`. */
export function layout(timeline: Timeline, top: number, deep: boolean): Layout {
  const lanes: Lane[] = [];
  const titles: Layout["titles"] = [];
  let y = top + 2;
  timeline.tracks.forEach((track, number) => {
    const deepest = track.depth.reduce((most, each) => Math.max(most, each), 0);
    const shown = deep ? deepest : Math.min(deepest, DEEPEST - 1);
    const more = deepest > shown ? ` (${deepest - shown} deeper levels hidden)` : "";
    titles.push({ y, text: track.name + more });
    y += TITLE;
    for (let depth = 0; depth <= shown; depth += 1) {
      lanes.push(lane(track, number, depth, y));
      y += HEIGHT[track.kind] + 1;
    }
    y += 4;
  });
  return { lanes, titles, height: y };
}

function lane(track: Track, number: number, depth: number, y: number): Lane {
  const items: number[] = [];
  track.depth.forEach((each, at) => {
    if (each === depth) items.push(at);
  });
  const start = Float64Array.from(items, (at) => track.start_ns[at] ?? 0);
  const end = Float64Array.from(items, (at) => (track.start_ns[at] ?? 0) + (track.length_ns[at] ?? 0));
  // Threads' calls are cut to the profiler's resolution: a call may seem to begin before the last one ended.
  for (let at = 1; at < items.length; at += 1)
    if ((end[at] ?? 0) < (end[at - 1] ?? 0)) end[at] = Math.max(end[at - 1] ?? 0, start[at] ?? 0);
  return { track: number, kind: track.kind, y, height: HEIGHT[track.kind], start, end, item: Int32Array.from(items) };
}

/** The first span that ends after `time`; ends are sorted because spans do not overlap. */
export function firstAfter(lane: Lane, time: number): number {
  let low = 0;
  let high = lane.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lane.end[middle] ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Call `box(x, width, index)` for what is to be drawn between `from` and `to` at `perPixel` ns. Of the spans that
 * share a pixel the longest one stands for all, so there are never more boxes than pixels.
 */
export function boxes(
  lane: Lane,
  from: number,
  to: number,
  perPixel: number,
  box: (x: number, width: number, index: number) => void,
): void {
  let pixel = -1;
  let chosen = -1;
  let longest = 0;
  const flush = (): void => {
    if (chosen >= 0) box(pixel, 1, chosen);
    chosen = -1;
    longest = 0;
  };
  for (let at = firstAfter(lane, from); at < lane.start.length; at += 1) {
    const start = lane.start[at] ?? 0;
    if (start >= to) break;
    const end = lane.end[at] ?? 0;
    const x = (Math.max(start, from) - from) / perPixel;
    const width = (Math.min(end, to) - from) / perPixel - x;
    if (width < 1) {
      const column = Math.floor(x);
      if (column !== pixel) {
        flush();
        pixel = column;
      }
      if (end - start > longest) {
        longest = end - start;
        chosen = at;
      }
    } else {
      flush();
      pixel = -1;
      box(x, width, at);
    }
  }
  flush();
}
