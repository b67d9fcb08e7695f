// Finding items of the timeline by what they are called or what their line says.
import type { Model, Timeline } from "./data";
import type { Layout } from "./lanes";
import type { Hit } from "./timeline_draw";

/** By track, 1 for each item that matches; `words` are in lower case. */
export function matches(model: Model, timeline: Timeline, words: string): Uint8Array[] {
  const label = timeline.labels.map((each) => each.toLowerCase().includes(words));
  const line = timeline.lines.map(([file, number]) => {
    const place = { file, line: number };
    return `${model.place(place)} ${model.source(place)}`.toLowerCase().includes(words);
  });
  return timeline.tracks.map((track) =>
    Uint8Array.from(track.label, (each, at) => Number((label[each] ?? false) || (line[track.line[at] ?? -1] ?? false))),
  );
}

/** The match that begins next after `now` (before it, for a negative `by`). */
export function nextMatch(rows: Layout, found: Uint8Array[], now: number, by: number): Hit | null {
  let best: Hit | null = null;
  let least = Infinity;
  for (const lane of rows.lanes) {
    for (let index = 0; index < lane.item.length; index += 1) {
      const away = ((lane.start[index] ?? 0) - now) * by;
      if (found[lane.track]?.[lane.item[index] ?? 0] === 1 && away > 0 && away < least) {
        best = { lane, index };
        least = away;
      }
    }
  }
  return best;
}
