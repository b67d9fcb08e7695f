// The timeline on its canvas.
import type { ScaleLinear } from "d3-scale";
import { fitting } from "./canvas";
import type { Model, Timeline, Track } from "./data";
import { type Lane, type Layout, boxes } from "./lanes";
import { type By, SORTS, painter } from "./paint";
import { colours } from "./theme";
import { span } from "./words";

export const WHY: Record<string, string> = {
  host: "the host runs Python or queues work",
  loader: "the host loads the next batch, or waits for it",
  waiting: "the host waits too",
};

export interface Hit {
  lane: Lane;
  index: number;
}

export interface Shown {
  model: Model;
  timeline: Timeline;
  rows: Layout;
  ranks: Map<string, number>;
  by: By;
  hit: Hit | null; // its line stands out
  found: Uint8Array[] | null; // by track, which items were searched for
  width: number;
  scale: ScaleLinear<number, number>; // ns to pixels
}

/** Boxes narrower than this have no text, and no gap after them. */
const NARROW = 24;
const FAINT = 0.25;

export function draw(context: CanvasRenderingContext2D, shown: Shown): void {
  const { timeline, rows, scale, width, hit } = shown;
  const ink = colours().ink;
  const from = scale.invert(0);
  const to = scale.invert(width);
  const perPixel = (to - from) / width;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  ruler(context, shown);
  const lit = hit === null ? -1 : (timeline.tracks[hit.lane.track]?.line[hit.lane.item[hit.index] ?? 0] ?? -1);
  for (const lane of rows.lanes) {
    const track = timeline.tracks[lane.track];
    if (track === undefined) continue;
    const paint = painter(timeline, track, shown.ranks, shown.by);
    const found = shown.found?.[lane.track];
    boxes(lane, from, to, perPixel, (x, wide, index) => {
      const item = lane.item[index] ?? 0;
      const faint = found !== undefined ? found[item] !== 1 : lit >= 0 && track.line[item] !== lit;
      context.globalAlpha = faint ? FAINT : 1;
      context.fillStyle = paint(item);
      context.fillRect(x, lane.y, wide > 3 ? wide - 0.5 : wide, lane.height);
      if (wide < NARROW) return;
      const text = fitting(words(shown, track, item), wide);
      context.fillStyle = ink;
      if (text) context.fillText(text, x + 3, lane.y + lane.height / 2 + 0.5);
    });
  }
  context.globalAlpha = 1;
  for (const { y, text } of rows.titles) {
    context.fillStyle = colours().paper;
    context.fillRect(2, y + 1, context.measureText(text).width + 5, 13);
    context.fillStyle = colours().soft;
    context.fillText(text, 4, y + 8);
  }
  if (hit !== null) outline(context, hit, from, perPixel);
}

function words(shown: Shown, track: Track, item: number): string {
  const [file, line] = shown.timeline.lines[track.line[item] ?? -1] ?? ["", 0];
  if (track.kind === "lines") return `${line}  ${shown.model.source({ file, line })}`;
  if (track.kind === "idle") {
    const why = SORTS.idle[track.sort[item] ?? 0] ?? "";
    return line > 0 ? `${why}: ${shown.model.place({ file, line })}` : why;
  }
  return shown.timeline.labels[track.label[item] ?? 0] ?? "";
}

function outline(context: CanvasRenderingContext2D, hit: Hit, from: number, perPixel: number): void {
  const x = ((hit.lane.start[hit.index] ?? 0) - from) / perPixel;
  const wide = Math.max(2, ((hit.lane.end[hit.index] ?? 0) - from) / perPixel - x);
  context.strokeStyle = colours().ink;
  context.lineWidth = 1.5;
  context.strokeRect(x, hit.lane.y, wide, hit.lane.height);
}

function ruler(context: CanvasRenderingContext2D, { timeline, rows, scale, width }: Shown): void {
  const known = colours();
  const vertical = (at: number): void => {
    context.beginPath();
    context.moveTo(at, 14);
    context.lineTo(at, rows.height);
    context.stroke();
  };
  context.lineWidth = 1;
  context.strokeStyle = known.edge;
  context.fillStyle = known.soft;
  for (const tick of scale.ticks(Math.max(2, Math.round(width / 120)))) {
    const at = Math.round(scale(tick)) + 0.5;
    vertical(at);
    context.fillText(span(tick), at + 3, 8);
  }
  context.strokeStyle = known.accent;
  context.setLineDash([4, 3]);
  for (const [start] of timeline.steps) vertical(scale(start));
  context.setLineDash([]);
}
