// The tree as an icicle: each box as wide as its part of the step. A click makes a box the whole width.
import { type HierarchyRectangularNode, hierarchy, partition } from "d3-hierarchy";
import { Canvas, fitting } from "./canvas";
import { type Model, key } from "./data";
import { button, choice, make, search, section } from "./elements";
import { jump } from "./jump";
import { lineColour, ranks } from "./paint";
import { colours, onTheme } from "./theme";
import { hideTip, showTip } from "./tip";
import { type Node, byCall, byModule, hasModules } from "./tree";
import { ms, percent } from "./words";

type Box = HierarchyRectangularNode<Node>;
type Value = "step" | "device";
const ROW = 21;

export class FlameView {
  private readonly canvas: Canvas;
  private readonly details = make("div", { class: "details", "aria-live": "polite" });
  private readonly ranks: Map<string, number>;
  private root: Box;
  private focus: Box;
  private chosen: Box | null = null;
  private words = "";
  private value: Value = "step";
  private make: (model: Model) => Node;

  constructor(private readonly model: Model) {
    this.ranks = ranks(model);
    const modules = hasModules(model);
    this.make = modules ? byModule : byCall;
    const home = section("flame");
    const views: [string, string][] = [["call", "function and line"]];
    if (modules) views.unshift(["module", "module"]);
    const tools = make(
      "div",
      { class: "tools" },
      choice("by", views, (name) => {
        this.make = name === "module" ? byModule : byCall;
        this.rebuild();
      }),
      choice("width", [["step", "part of the step"], ["device", "device time"]], (name) => {
        this.value = name === "device" ? "device" : "step";
        this.rebuild();
      }),
      button("all", "Back to the whole step", () => this.zoom(this.root)),
      search("Find in the flame graph", (words) => {
        this.words = words;
        this.canvas.redraw();
      }),
    );
    const frame = make("div", { class: "chart" });
    home.append(tools, frame, this.details);
    this.root = this.layout();
    this.focus = this.root;
    this.canvas = new Canvas(frame, "Flame graph of the step", (context) => this.draw(context));
    this.canvas.resize((this.root.height + 1) * ROW);
    this.listen();
    onTheme(() => this.canvas.redraw());
  }

  private layout(): Box {
    const tree = hierarchy(this.make(this.model), (node) => [...node.children.values()]);
    const own = (node: Node): number => (this.value === "step" ? node.step : node.device);
    tree.sum((node) => Math.max(0, own(node))).sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
    return partition<Node>()(tree);
  }

  private rebuild(): void {
    this.root = this.layout();
    this.focus = this.root;
    this.chosen = null;
    this.canvas.resize((this.root.height + 1) * ROW);
  }

  private zoom(to: Box): void {
    this.focus = to;
    this.canvas.redraw();
  }

  /** Left edge and width in pixels while `focus` has the whole width. */
  private span(box: Box): [number, number] {
    const scale = this.canvas.width / Math.max(1e-12, this.focus.x1 - this.focus.x0);
    return [(box.x0 - this.focus.x0) * scale, (box.x1 - box.x0) * scale];
  }

  private draw(context: CanvasRenderingContext2D): void {
    const known = colours();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const around = new Set(this.focus.ancestors());
    const visit = (box: Box): void => {
      const [x, wide] = around.has(box) ? [0, this.canvas.width] : this.span(box);
      if (wide < 0.5 || x + wide <= 0 || x >= this.canvas.width) return;
      const left = Math.max(0, x);
      const width = Math.min(this.canvas.width, x + wide) - left;
      const y = box.depth * ROW;
      const matches = this.words === "" || `${box.data.name} ${box.data.title}`.toLowerCase().includes(this.words);
      context.globalAlpha = matches ? 1 : 0.25;
      context.fillStyle = this.colour(box);
      context.fillRect(left, y, Math.max(0.5, width - 1), ROW - 1);
      const text = fitting(box.data.name, width);
      context.fillStyle = known.ink;
      if (text) context.fillText(text, left + 4, y + ROW / 2);
      if (box === this.chosen) {
        context.strokeStyle = known.ink;
        context.lineWidth = 1.5;
        context.strokeRect(left + 0.5, y + 0.5, width - 2, ROW - 2);
      }
      for (const child of box.children ?? []) visit(child);
    };
    visit(this.root);
    context.globalAlpha = 1;
  }

  /** That of the user's line that a box is of or below; of others by their name. */
  private colour(box: Box): string {
    const known = colours();
    const line = box.ancestors().find((each) => each.data.place !== null)?.data.place ?? null;
    if (line !== null) return lineColour(this.ranks.get(key(line)));
    if (box.depth === 0) return known.other;
    let sum = 0;
    for (const letter of box.data.title) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
    return known.lines[sum % known.lines.length] ?? known.other;
  }

  private at(event: MouseEvent): Box | null {
    const frame = this.canvas.element.getBoundingClientRect();
    const depth = Math.floor((event.clientY - frame.top) / ROW);
    const x = event.clientX - frame.left;
    const outer = this.focus.ancestors().find((box) => box.depth === depth);
    if (outer !== undefined) return outer;
    const under = this.focus.descendants().find((box) => {
      const [left, width] = this.span(box);
      return box.depth === depth && x >= left && x < left + width;
    });
    return under ?? null;
  }

  private say(box: Box): string[] {
    const value = box.value ?? 0;
    const total = this.root.value ?? 0;
    const { title, name, place } = box.data;
    const share = total > 0 ? `${ms(value)}, ${percent(value / total)} of ${this.value === "step" ? "the step" : "device time"}` : "";
    return [title === name ? name : name.includes(title) ? name : title, share, place === null ? "" : this.model.place(place)];
  }

  private choose(box: Box): void {
    this.chosen = box;
    const { place } = box.data;
    this.details.replaceChildren(...this.say(box).map((line, at) => make(at === 0 ? "b" : "span", {}, line)));
    if (place !== null) this.details.append(button("Show the source", this.model.place(place), () => jump(place)));
    this.canvas.redraw();
  }

  private listen(): void {
    const { element } = this.canvas;
    element.addEventListener("pointermove", (event) => {
      const box = this.at(event);
      if (box === null) hideTip();
      else showTip(event, this.say(box));
    });
    element.addEventListener("pointerleave", hideTip);
    element.addEventListener("click", (event) => {
      const box = this.at(event);
      if (box === null) return;
      this.zoom(box);
      this.choose(box);
    });
    element.addEventListener("keydown", (event) => {
      const box = this.chosen ?? this.root;
      const beside = (by: number): Box | undefined => {
        const all = box.parent?.children ?? [];
        return all[all.indexOf(box) + by];
      };
      const targets: Record<string, Box | null | undefined> = {
        ArrowUp: box.parent,
        ArrowDown: box.children?.[0],
        ArrowLeft: beside(-1),
        ArrowRight: beside(1),
      };
      if (event.key === "Enter") this.zoom(box);
      else if (event.key === "Escape") this.zoom(this.root);
      else if (targets[event.key]) this.choose(targets[event.key] ?? box);
      else return;
      event.preventDefault();
    });
  }
}
