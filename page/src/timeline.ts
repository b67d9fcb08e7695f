// The captured steps moment by moment: marks, host lines and calls, idle time of the device, its streams.
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { type D3ZoomEvent, type ZoomTransform, zoom, zoomIdentity } from "d3-zoom";
import { Canvas } from "./canvas";
import type { Model, Place, Timeline } from "./data";
import { button, choice, make, search, section } from "./elements";
import { jump } from "./jump";
import { type Lane, type Layout, firstAfter, layout } from "./lanes";
import { legend } from "./legend";
import { type By, SORTS, ranks } from "./paint";
import { onTheme } from "./theme";
import { type Hit, WHY, draw } from "./timeline_draw";
import { matches, nextMatch } from "./timeline_search";
import { hideTip, showTip } from "./tip";
import { ms, span } from "./words";

const RULER = 18;
const NEAREST = 3;
const CLOSEST_NS = 500;

export class TimelineView {
  readonly canvas: Canvas;
  private rows: Layout;
  private transform: ZoomTransform = zoomIdentity;
  private by: By;
  private hit: Hit | null = null;
  private found: Uint8Array[] | null = null;
  private readonly ranks: Map<string, number>;
  private readonly zoomer = zoom<HTMLCanvasElement, unknown>();
  private readonly details = make("div", { class: "details", "aria-live": "polite" });
  private readonly legend = make("ul", { class: "legend" });
  private readonly finder: HTMLInputElement = search("Find in the timeline", (words) => this.find(words));
  private readonly status = make("span", { class: "soft", role: "status" });
  private deep = false;

  constructor(
    private readonly model: Model,
    readonly timeline: Timeline,
  ) {
    this.ranks = ranks(model);
    this.by = this.ranks.size > 0 ? "line" : "kind";
    this.rows = layout(timeline, RULER, false);
    const home = section("timeline");
    home.append(this.note(), this.tools(), this.legend);
    this.explain();
    const frame = make("div", { class: "chart" });
    home.append(frame, this.details);
    this.canvas = new Canvas(frame, "Timeline of the captured steps; the tables below have the same times", (c) =>
      this.draw(c),
    );
    this.canvas.resize(this.rows.height);
    this.listen();
    onTheme(() => this.canvas.redraw());
  }

  get lanes(): Lane[] { return this.rows.lanes; }

  /** Nanoseconds at both ends of what is shown. */
  get domain(): [number, number] {
    const scale = this.transform.rescaleX(this.scale());
    const [from, to] = scale.domain();
    return [from ?? 0, to ?? this.timeline.length_ns];
  }

  show(from: number, to: number): void {
    const width = Math.max(1, this.canvas.width);
    const whole = this.timeline.length_ns;
    const length = Math.min(whole, Math.max(CLOSEST_NS, to - from));
    const left = Math.min(Math.max(0, from), whole - length);
    const transform = zoomIdentity.scale(whole / length).translate((-left / whole) * width, 0);
    select(this.canvas.element).call((at) => this.zoomer.transform(at, transform));
  }

  showStep(number: number): void {
    const step = this.timeline.steps[number];
    if (step !== undefined) this.show(step[0] - step[1] * 0.01, step[0] + step[1] * 1.01);
  }

  private scale() {
    return scaleLinear([0, this.timeline.length_ns], [0, Math.max(1, this.canvas.width)]);
  }

  private note(): HTMLElement {
    const { report } = this.model.data;
    const { step_ms: plain, profiled_step_ms: profiled } = report.steps;
    const slower = ms(plain) === ms(profiled) ? "" : ` (${ms(profiled)} a step instead of ${ms(plain)})`;
    const out = this.timeline.left_out > 0 ? ` The shortest ${this.timeline.left_out} calls are left out.` : "";
    return make(
      "p",
      { class: "soft" },
      `As recorded with the profiler${slower}.${out} Drag to move, ctrl and wheel to zoom (after a click the wheel alone), ` +
        "double-click an item to fill the width; keys W A S D, [ and ] for steps, N and P for items.",
    );
  }

  private tools(): HTMLElement {
    const steps = this.timeline.steps.map((_, at) => button(`step ${at + 1}`, "Show this step", () => this.showStep(at)));
    this.finder.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
    });
    return make(
      "div",
      { class: "tools" },
      button("+", "Zoom in", () => this.zoomBy(2)),
      button("−", "Zoom out", () => this.zoomBy(0.5)),
      button("all", "Show all captured steps", () => this.show(0, this.timeline.length_ns)), ...steps,
      choice("colour by", this.by === "line" ? [["line", "line"], ["kind", "phase"]] : [["kind", "phase"]], (value) => {
        this.by = value === "kind" ? "kind" : "line";
        this.explain();
        this.canvas.redraw();
      }),
      button("depth", "Show all levels of calls, or the first few", () => {
        this.deep = !this.deep;
        this.rows = layout(this.timeline, RULER, this.deep);
        this.find("");
        this.canvas.resize(this.rows.height);
      }),
      this.finder, this.status,
    );
  }

  /** What the colours mean; a click on a line finds it. */
  private explain(): void {
    const find = (place: string): void => {
      this.finder.value = this.finder.value === place ? "" : place;
      this.find(this.finder.value.toLowerCase());
    };
    this.legend.replaceChildren(...legend(this.model, this.timeline, this.ranks, this.by, find));
  }

  private zoomBy(factor: number): void {
    select(this.canvas.element).call((at) => this.zoomer.scaleBy(at, factor));
  }

  private listen(): void {
    const { element } = this.canvas;
    this.zoomer
      .scaleExtent([1, Math.max(2, this.timeline.length_ns / CLOSEST_NS)])
      .filter((event: WheelEvent | MouseEvent | TouchEvent) => {
        if (event instanceof WheelEvent) return event.ctrlKey || event.metaKey || document.activeElement === element;
        if (event instanceof MouseEvent) return event.button === 0;
        return event.touches.length > 1;
      })
      .on("zoom", (event: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
        this.transform = event.transform;
        hideTip();
        this.canvas.redraw();
      });
    // What is shown stays the same when the width changes.
    let width = 0;
    new ResizeObserver(() => {
      if (width === this.canvas.width) return;
      const before = scaleLinear([0, this.timeline.length_ns], [0, Math.max(1, width)]);
      const [from, to] = this.transform.rescaleX(before).domain();
      const fresh = width === 0;
      width = this.canvas.width;
      const size: [[number, number], [number, number]] = [[0, 0], [width, this.rows.height]];
      this.zoomer.extent(size).translateExtent([[0, -Infinity], [width, Infinity]]);
      if (fresh) this.showStep(this.timeline.median);
      else this.show(from ?? 0, to ?? this.timeline.length_ns);
    }).observe(element);
    select(element).call(this.zoomer).on("dblclick.zoom", null);
    element.addEventListener("pointermove", (event) => this.hover(event));
    element.addEventListener("pointerleave", () => {
      hideTip();
      this.highlight(null);
    });
    element.addEventListener("click", (event) => this.pin(this.at(event)));
    element.addEventListener("dblclick", (event) => this.fill(this.at(event)));
    element.addEventListener("keydown", (event) => this.press(event));
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [from, to] = this.domain;
    const tenth = (to - from) / 10;
    const actions: Record<string, () => void> = {
      w: () => this.zoomBy(1.5),
      s: () => this.zoomBy(1 / 1.5),
      a: () => this.show(from - tenth, to - tenth),
      d: () => this.show(from + tenth, to + tenth),
      "0": () => this.show(0, this.timeline.length_ns),
      "[": () => this.stepBeside(-1),
      "]": () => this.stepBeside(1),
      n: () => this.beside(1),
      p: () => this.beside(-1),
      Enter: () => this.fill(this.hit),
      Escape: () => this.pin(null),
    };
    const same: Record<string, string> = { "+": "w", "-": "s", ArrowLeft: "a", ArrowRight: "d", Home: "0" };
    const action = actions[same[event.key] ?? event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  }

  private stepBeside(by: number): void {
    const [from, to] = this.domain;
    const at = this.timeline.steps.findIndex(([start, length]) => start + length > (from + to) / 2);
    this.showStep(Math.min(this.timeline.steps.length - 1, Math.max(0, (at < 0 ? 0 : at) + by)));
  }

  private beside(by: number): void {
    const lane = this.hit?.lane ?? this.rows.lanes[0];
    if (lane === undefined) return;
    const index = this.hit === null ? firstAfter(lane, this.domain[0]) : this.hit.index + by;
    if (index >= 0 && index < lane.item.length) this.pin({ lane, index });
  }

  private at(event: MouseEvent): Hit | null {
    const box = this.canvas.element.getBoundingClientRect();
    const y = event.clientY - box.top;
    const lane = this.rows.lanes.find((each) => y >= each.y && y < each.y + each.height);
    if (lane === undefined) return null;
    const [from, to] = this.domain;
    const perPixel = (to - from) / Math.max(1, this.canvas.width);
    const time = from + (event.clientX - box.left) * perPixel;
    const index = firstAfter(lane, time);
    const away = (at: number): number => Math.max(0, (lane.start[at] ?? Infinity) - time, time - (lane.end[at] ?? -Infinity));
    const best = away(index) <= (index > 0 ? away(index - 1) : Infinity) ? index : index - 1;
    return best >= 0 && away(best) <= NEAREST * perPixel ? { lane, index: best } : null;
  }

  private hover(event: PointerEvent): void {
    const hit = event.buttons === 0 ? this.at(event) : null;
    this.highlight(hit);
    if (hit !== null) showTip(event, this.words(hit));
    else hideTip();
  }

  private highlight(hit: Hit | null): void {
    if (hit?.lane === this.hit?.lane && hit?.index === this.hit?.index) return;
    this.hit = hit;
    this.canvas.redraw();
  }

  private item(hit: Hit): { label: string; place: Place | null; sort: string; start: number; length: number } {
    const track = this.timeline.tracks[hit.lane.track];
    const item = hit.lane.item[hit.index] ?? 0;
    const [file, line] = this.timeline.lines[track?.line[item] ?? -1] ?? ["", 0];
    const place = line > 0 ? { file, line } : null;
    const sort = track !== undefined && track.kind in SORTS ? SORTS[track.kind as "ops"][track.sort[item] ?? 0] : "";
    const named = this.timeline.labels[track?.label[item] ?? 0] ?? "";
    const label = track?.kind === "idle" ? `Device idle: ${WHY[sort ?? ""] ?? ""}` : named;
    return {
      label: label || (place === null ? "" : this.model.place(place)),
      place,
      sort: track?.kind === "idle" ? "" : (sort ?? ""),
      start: track?.start_ns[item] ?? 0,
      length: track?.length_ns[item] ?? 0,
    };
  }

  private words(hit: Hit): string[] {
    const { label, place, sort, start, length } = this.item(hit);
    const where = place === null ? "no line of yours" : `${this.model.place(place)}  ${this.model.source(place)}`;
    return [label, `${span(length)}, from ${span(start)} on${sort ? `, ${sort}` : ""}`, where];
  }

  private pin(hit: Hit | null): void {
    this.highlight(hit);
    if (hit === null) return this.details.replaceChildren();
    const { place } = this.item(hit);
    const words = this.words(hit).map((line, at) => make(at === 0 ? "b" : "span", {}, line));
    this.details.replaceChildren(...words);
    if (place !== null) this.details.append(button("Show the source", this.model.place(place), () => jump(place)));
  }

  private fill(hit: Hit | null): void {
    if (hit === null) return;
    const { start, length } = this.item(hit);
    this.show(start - length * 0.1, start + length * 1.1);
  }

  private find(words: string): void {
    this.found = words === "" ? null : matches(this.model, this.timeline, words);
    const total = this.found?.reduce((sum, track) => sum + track.reduce((a, b) => a + b, 0), 0);
    this.status.textContent = total === undefined ? "" : `${total} found; Enter goes to the next`;
    this.canvas.redraw();
  }

  /** Go to the next item found, in order of time. */
  private next(by: number): void {
    const [from, to] = this.domain;
    const now = this.hit === null ? (from + to) / 2 : this.item(this.hit).start;
    const best = this.found === null ? null : nextMatch(this.rows, this.found, now, by);
    if (best === null) return;
    const { start, length } = this.item(best);
    if (start < from || start + length > to) this.show(start - (to - from) / 2, start + (to - from) / 2);
    this.pin(best);
  }

  private draw(context: CanvasRenderingContext2D): void {
    const { model, timeline, rows, ranks, by, hit, found, transform } = this;
    const width = Math.max(1, this.canvas.width);
    draw(context, { model, timeline, rows, ranks, by, hit, found, width, scale: transform.rescaleX(this.scale()) });
  }
}
