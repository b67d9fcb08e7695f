// What the timeline's colours mean.
import type { Model, Timeline } from "./data";
import { button, make } from "./elements";
import { type By, SORTS, variable } from "./paint";
import { percent } from "./words";

const SHOWN = 8;

/** Swatches for the costliest lines or for the phases, and for the causes of idle time. */
export function legend(
  model: Model,
  timeline: Timeline,
  ranks: Map<string, number>,
  by: By,
  find: (place: string) => void,
): HTMLElement[] {
  const items: HTMLElement[] = [];
  if (by === "line")
    for (const [id, rank] of [...ranks].slice(0, SHOWN)) {
      const line = model.lines.get(id);
      if (line === undefined) continue;
      const place = model.place(line);
      const share = percent(line.step_ms / model.stepMs);
      const words = button(place, model.source(line), () => find(place));
      words.className = "place";
      items.push(entry(`--line${rank}`, words, ` ${share}`));
    }
  else {
    const seen = new Set(timeline.tracks.filter((track) => track.kind === "stream").flatMap((track) => track.sort));
    items.push(...SORTS.stream.filter((_, at) => seen.has(at)).map((name) => entry(variable(name), name)));
  }
  const causes = new Set(timeline.tracks.filter((track) => track.kind === "idle").flatMap((track) => track.sort));
  items.push(...SORTS.idle.filter((_, at) => causes.has(at)).map((name) => entry(variable(name), `idle: ${name}`)));
  return items;
}

function entry(colour: string, ...words: (Node | string)[]): HTMLElement {
  const swatch = make("span", { class: "chip" });
  swatch.style.setProperty("background", `var(${colour})`);
  return make("li", {}, swatch, ...words);
}
