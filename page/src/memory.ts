// Memory over the captured steps, and the lines that hold it at the peak.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Model, Timeline } from "./data";
import { make, section } from "./elements";
import { jump } from "./jump";
import { type Column, Table } from "./table";
import { colours, onTheme } from "./theme";
import { size, span } from "./words";

const HEIGHT = 220;
/** Steps of the axis of bytes, which are written in KiB, MiB and so on. */
const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);

export function start(model: Model): void {
  const { timeline, report } = model.data;
  const holders = report.lines.filter((line) => line.memory_bytes > 0);
  const curve = timeline !== null && timeline.memory_ns.length > 2;
  if (!curve && holders.length === 0) return;
  const home = section("memory");
  if (timeline !== null && curve) home.append(chart(timeline));
  if (holders.length === 0) return;
  const most = Math.max(...holders.map((line) => line.memory_bytes));
  const columns: Column<(typeof holders)[number]>[] = [
    { name: "line", title: "Where", value: (line) => model.place(line), text: (line) => model.place(line) },
    { name: "source", title: "What it says", value: (line) => model.source(line), text: (line) => model.source(line) },
    { name: "held at the peak", title: "Allocated here and not yet freed at the step's memory peak", value: (line) => line.memory_bytes, text: (line) => size(line.memory_bytes), heat: (line) => (0.5 * line.memory_bytes) / most },
  ];
  const note = "Who holds the peak. What was allocated before the capture, such as parameters, belongs to no line.";
  home.append(make("p", { class: "soft" }, note), new Table("lines that hold memory", holders, columns, "held at the peak", jump).element);
}

function chart(timeline: Timeline): HTMLElement {
  const frame = make("div", { class: "chart" });
  const x = timeline.memory_ns;
  const y = timeline.memory_bytes;
  const peak = y.reduce((best, each, at) => (each > (y[best] ?? 0) ? at : best), 0);
  const note = make("p", { class: "soft" }, `Peak ${size(y[peak] ?? 0)} at ${span(x[peak] ?? 0)}. Drag to zoom, double-click to see all again.`);
  let plot: uPlot | null = null;
  const draw = (): void => {
    plot?.destroy();
    const known = colours();
    const axis = { stroke: known.soft, grid: { stroke: known.edge, width: 1 }, ticks: { stroke: known.edge, width: 1 } };
    const shown = (_: uPlot, value: number | null): string => (value === null ? "" : span(value));
    plot = new uPlot(
      {
        width: Math.max(280, frame.clientWidth),
        height: HEIGHT,
        scales: { x: { time: false } },
        axes: [
          { ...axis, values: (_, ticks) => ticks.map(span) },
          { ...axis, size: 76, incrs: POWERS, values: (_, ticks) => ticks.map(size) },
        ],
        series: [
          { label: "time", value: shown },
          { label: "allocated", stroke: known.accent, fill: `${known.accent}33`, width: 1.5, points: { show: false }, paths: uPlot.paths.stepped?.({ align: 1 }) ?? (() => null), value: (_, value: number | null) => (value === null ? "" : size(value)) },
        ],
      },
      [x, y],
      frame,
    );
  };
  onTheme(draw);
  new ResizeObserver(() => {
    if (plot === null) draw();
    else plot.setSize({ width: Math.max(280, frame.clientWidth), height: HEIGHT });
  }).observe(frame);
  return make("div", {}, note, frame);
}
