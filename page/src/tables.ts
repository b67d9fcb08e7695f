// Lines, operators and kernels of the whole step.
import { type Line, type Model, type Op, type Use } from "./data";
import { make, section } from "./elements";
import { jump } from "./jump";
import { type Column, Table } from "./table";
import { count, milliseconds, percent, percentage, size } from "./words";

interface Total extends Use {
  line: Line | null; // the one that it costs most at
  most: number;
  lines: Set<Line>;
  shapes: string;
}

/** Uses of all lines, and those of none, added up by name and phase. */
function totals(lines: Line[], of: (line: Line) => Use[], rest: Use[]): Total[] {
  const found = new Map<string, Total>();
  const all: [Line | null, Use[]][] = [...lines.map((line): [Line, Use[]] => [line, of(line)]), [null, rest]];
  for (const [line, uses] of all)
    for (const use of uses) {
      const id = `${use.phase} ${use.name}`;
      const known = found.get(id) ?? { ...use, count: 0, device_ms: 0, line, most: -1, lines: new Set(), shapes: "" };
      known.count += use.count;
      known.device_ms += use.device_ms;
      if (line !== null) known.lines.add(line);
      if (use.device_ms > known.most) {
        known.most = use.device_ms;
        known.line = line;
        known.shapes = "shapes" in use ? written(use as Op) : "";
      }
      found.set(id, known);
    }
  return [...found.values()];
}

const written = (op: Op): string =>
  op.shapes
    .filter((shape) => shape.length > 0)
    .map((shape) => shape.join("×"))
    .join(" ");

function lineColumns(model: Model): Column<Line>[] {
  const step = model.stepMs;
  const time = (name: string, title: string, of: (line: Line) => number): Column<Line> => ({
    name,
    title,
    value: of,
    text: (line) => (of(line) >= 0.0005 ? milliseconds(of(line)) : ""),
  });
  const all: Column<Line>[] = [
    { name: "line", title: "Where", value: (line) => model.place(line), text: (line) => model.place(line) },
    { name: "source", title: "What it says", value: (line) => model.source(line), text: (line) => model.source(line), full: (line) => line.function },
    { ...time("step ms", "Its part of the step", (line) => line.step_ms), text: (line) => milliseconds(line.step_ms), heat: (line) => line.step_ms / step },
    { name: "share", title: "Of the step", value: (line) => line.step_ms, text: (line) => percent(line.step_ms / step) },
    time("device ms", "Kernels and copies it caused", (line) => line.device_ms),
    time("forward", "Device time in forward, ms", (line) => line.forward_ms),
    time("backward", "Device time in backward, ms", (line) => line.backward_ms),
    time("recompute", "Device time in recomputation, ms", (line) => line.recompute_ms),
    time("idle ms", "The device is idle because the host is at this line", (line) => line.idle_ms),
    time("host ms", "Host time", (line) => line.cpu_ms),
    time("sync ms", "Host time spent waiting for the device", (line) => line.sync_ms),
    { name: "calls", title: "Per step", value: (line) => line.calls, text: (line) => count(line.calls) },
    { name: "launches", title: "Per step", value: (line) => line.launches, text: (line) => (line.launches > 0 ? count(line.launches) : "") },
    { name: "memory", title: "Held at the step's memory peak", value: (line) => line.memory_bytes, text: (line) => (line.memory_bytes > 0 ? size(line.memory_bytes) : "") },
    { name: "of peak", title: "Of what the device can do at best", value: (line) => line.roofline?.percent_of_peak ?? -1, text: (line) => (line.roofline === null ? "" : percentage(line.roofline.percent_of_peak)) },
  ];
  return all.filter((column) => column.name === "line" || model.data.report.lines.some((line) => column.text(line) !== ""));
}

function useColumns(model: Model, what: string, name: (use: Total) => string): Column<Total>[] {
  const all: Column<Total>[] = [
    { name: what, title: "Name", value: name, text: name, full: (use) => use.name },
    { name: "phase", title: "Phase", value: (use) => use.phase, text: (use) => use.phase },
    { name: "device ms", title: "Per step", value: (use) => use.device_ms, text: (use) => milliseconds(use.device_ms), heat: (use) => use.device_ms / model.stepMs },
    { name: "count", title: "Per step", value: (use) => use.count, text: (use) => count(use.count) },
    { name: "each ms", title: "Mean of one", value: (use) => use.device_ms / Math.max(use.count, 1e-9), text: (use) => milliseconds(use.device_ms / Math.max(use.count, 1e-9)) },
    { name: "lines", title: "How many lines cause it", value: (use) => use.lines.size, text: (use) => count(use.lines.size) },
    { name: "costliest line", title: "Where it costs most", value: (use) => (use.line === null ? "" : model.place(use.line)), text: (use) => (use.line === null ? "no line of yours" : `${model.place(use.line)}  ${model.source(use.line)}`) },
  ];
  if (what === "operator")
    all.push({ name: "shapes", title: "Inputs where it costs most", value: (use) => use.shapes, text: (use) => use.shapes });
  return all;
}

export function start(model: Model): void {
  const { report, rest } = model.data;
  const { lines } = report;
  const go = (use: Total): void => {
    if (use.line !== null) jump(use.line);
  };
  const ops = totals(lines, (line) => line.ops, rest.ops);
  const kernels = totals(lines, (line) => line.kernels, rest.kernels);
  const views: [string, HTMLElement][] = [];
  if (lines.length > 0)
    views.push(["Lines", new Table("lines", lines, lineColumns(model), "step ms", jump).element]);
  if (ops.length > 0)
    views.push(["Operators", new Table("operators", ops, useColumns(model, "operator", (use) => use.name), "device ms", go).element]);
  if (kernels.length > 0)
    views.push(["Kernels", new Table("kernels", kernels, useColumns(model, "kernel", (use) => model.kernel(use.name)), "device ms", go).element]);
  if (views.length > 0) section("tables").append(tabs(views));
}

function tabs(views: [string, HTMLElement][]): HTMLElement {
  const bar = make("div", { class: "tabs", role: "tablist" });
  const show = (chosen: number): void =>
    views.forEach(([, view], at) => {
      view.hidden = at !== chosen;
      const tab = bar.children[at];
      tab?.setAttribute("aria-selected", String(at === chosen));
      tab?.setAttribute("tabindex", at === chosen ? "0" : "-1");
    });
  views.forEach(([name], at) => {
    const tab = make("button", { type: "button", role: "tab" }, name);
    tab.addEventListener("click", () => show(at));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      const to = (at + by + views.length) % views.length;
      show(to);
      (bar.children[to] as HTMLElement | undefined)?.focus();
    });
    bar.append(tab);
  });
  show(0);
  return make("div", {}, bar, ...views.map(([, view]) => view));
}
