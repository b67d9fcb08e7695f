// Which colour an item of the timeline has.
import type { Model, Timeline, Track } from "./data";
import { key } from "./data";
import { colours } from "./theme";

export type By = "line" | "kind";

/** Names of `Track.sort`, by the kind of track; each is a colour of the style sheet. */
export const SORTS: Record<"stream" | "idle" | "ops", string[]> = {
  stream: ["forward", "backward", "recompute", "copy", "communication"],
  ops: ["forward", "backward", "recompute"],
  idle: ["host", "loader", "waiting"],
};
const PART: Record<string, string> = { recompute: "optimizer", waiting: "idle" };

/** The style sheet's variable for the colour of a phase or a cause. */
export const variable = (name: string): string => `--${PART[name] ?? name}`;

/** The costliest lines have a colour each; all others share one. */
export function ranks(model: Model): Map<string, number> {
  const sorted = [...model.data.report.lines].sort((a, b) => b.step_ms - a.step_ms).slice(0, 10);
  return new Map(sorted.map((line, at) => [key(line), at]));
}

export function lineColour(rank: number | undefined): string {
  const known = colours();
  return rank === undefined ? known.other : (known.lines[rank] ?? known.other);
}

/** A function from an item of `track` to its colour. */
export function painter(
  timeline: Timeline,
  track: Track,
  of: Map<string, number>,
  by: By,
): (item: number) => string {
  const known = colours();
  if (track.kind === "marks") return (item) => known.lines[(track.label[item] ?? 0) % known.lines.length] ?? known.other;
  if (track.kind === "idle" || (by === "kind" && track.kind !== "lines")) {
    const names = SORTS[track.kind];
    const table = names.map((name) => known.parts[PART[name] ?? name] ?? known.other);
    return (item) => table[track.sort[item] ?? 0] ?? known.other;
  }
  const table = timeline.lines.map(([file, line]) => lineColour(of.get(key({ file, line }))));
  return (item) => {
    const line = track.line[item] ?? -1;
    return line < 0 ? known.other : (table[line] ?? known.other);
  };
}
