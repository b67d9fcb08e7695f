// Lines by arithmetic intensity and rate, where operations and bytes are known.
import { type ScaleLogarithmic, scaleLog } from "d3-scale";
import { Canvas } from "./canvas";
import { type Line, type Model, key } from "./data";
import { make, section } from "./elements";
import { jump } from "./jump";
import { lineColour, ranks } from "./paint";
import { colours, onTheme } from "./theme";
import { hideTip, showTip } from "./tip";
import { ms, percentage, rate } from "./words";

const HEIGHT = 320;
const LEFT = 78;
const BOTTOM = 34;
const MOST = 60;
/** Times the highest roof: its name stands above it. */
const ROOM = 3;

interface Point {
  line: Line;
  intensity: number;
  rate: number;
  bound: string;
  percent: number;
}

export function start(model: Model): void {
  const points: Point[] = [];
  for (const line of model.data.report.lines)
    if (line.roofline !== null && line.roofline.flops > 0 && line.roofline.bytes > 0 && line.device_ms > 0)
      points.push({
        line,
        intensity: line.roofline.flops / line.roofline.bytes,
        rate: (line.roofline.flops / line.device_ms) * 1000,
        bound: line.roofline.bound,
        percent: line.roofline.percent_of_peak,
      });
  points.splice(MOST);
  if (points.length === 0) return;
  const home = section("roofline");
  const note =
    "A dot for each line whose operations and bytes are known: the higher the faster, the further right the more " +
    "it computes for each byte it moves. Its size is its device time; the dot's tooltip has its share of the peak.";
  const frame = make("div", { class: "chart" });
  home.append(make("p", { class: "soft" }, note), frame);
  draw(model, points, frame);
}

function draw(model: Model, points: Point[], frame: HTMLElement): void {
  const of = ranks(model);
  const span = (value: (point: Point) => number): [number, number] => [
    Math.min(...points.map(value)) / 2,
    Math.max(...points.map(value)) * 2,
  ];
  const most = Math.max(...points.map((point) => point.line.device_ms));
  // Up to the highest roof that there may be reason to look at: that of the tensor cores.
  const [slowest, fastest] = span((point) => point.rate);
  const highest = Math.max(fastest, ROOM * Math.max(0, ...Object.keys(NAMES).map((name) => model.data.roofs[name] ?? 0)));
  const x = () => scaleLog(span((point) => point.intensity), [LEFT, canvas.width - 12]);
  const y = () => scaleLog([slowest, highest], [HEIGHT - BOTTOM, 10]);
  const radius = (point: Point): number => 4 + 14 * Math.sqrt(point.line.device_ms / most);
  const canvas: Canvas = new Canvas(frame, "Roofline plot of lines; the table of lines has the same numbers", (context) => {
    const known = colours();
    const [across, up] = [x(), y()];
    context.font = "11px system-ui, sans-serif";
    context.strokeStyle = known.edge;
    context.fillStyle = known.soft;
    context.textBaseline = "middle";
    for (const tick of up.ticks()) {
      const at = Math.round(up(tick)) + 0.5;
      if (!/^[125](e|$)/.test(tick.toExponential())) continue;
      context.strokeRect(LEFT, at, canvas.width - LEFT - 12, 0);
      context.fillText(rate(tick, "FLOP/s"), 2, at);
    }
    context.textAlign = "center";
    for (const tick of across.ticks()) {
      const at = Math.round(across(tick)) + 0.5;
      if (!/^[125](e|$)/.test(tick.toExponential())) continue;
      context.strokeRect(at, 10, 0, HEIGHT - BOTTOM - 10);
      context.fillText(String(Number(tick.toPrecision(2))), at, HEIGHT - BOTTOM + 12);
    }
    context.fillText("operations for each byte moved", (LEFT + canvas.width) / 2, HEIGHT - 8);
    context.textAlign = "left";
    for (const point of points) {
      context.globalAlpha = 0.85;
      context.fillStyle = lineColour(of.get(key(point.line)));
      context.beginPath();
      context.arc(across(point.intensity), up(point.rate), radius(point), 0, 2 * Math.PI);
      context.fill();
      context.globalAlpha = 1;
      context.strokeStyle = known.paper;
      context.stroke();
      context.strokeStyle = known.edge;
    }
    roofs(context, model.data.roofs, across, up, canvas.width - 12); // its words lie over the dots
  });
  canvas.resize(HEIGHT);
  onTheme(() => canvas.redraw());
  const at = (event: MouseEvent): Point | undefined => {
    const box = canvas.element.getBoundingClientRect();
    const [across, up] = [x(), y()];
    const away = (point: Point): number =>
      Math.hypot(across(point.intensity) - (event.clientX - box.left), up(point.rate) - (event.clientY - box.top)) - radius(point);
    return [...points].sort((a, b) => away(a) - away(b)).find((point) => away(point) < 3);
  };
  canvas.element.addEventListener("pointermove", (event) => {
    const point = at(event);
    if (point === undefined) return hideTip();
    showTip(event, [
      `${model.place(point.line)}  ${model.source(point.line)}`,
      `${percentage(point.percent)} of peak, ${point.bound}-bound`,
      `${rate(point.rate, "FLOP/s")}, ${point.intensity.toPrecision(3)} operations a byte, device ${ms(point.line.device_ms)}`,
    ]);
  });
  canvas.element.addEventListener("pointerleave", hideTip);
  canvas.element.addEventListener("click", (event) => {
    const point = at(event);
    if (point !== undefined) jump(point.line);
  });
}

const NAMES: Record<string, string> = { fp32: "float32", tf32: "TF32", half: "float16 and bfloat16" };

/** The device's bandwidth as a slope, and a horizontal for each kind of arithmetic that begins where they meet. */
function roofs(
  context: CanvasRenderingContext2D,
  known: Record<string, number>,
  across: ScaleLogarithmic<number, number>,
  up: ScaleLogarithmic<number, number>,
  right: number,
): void {
  const bytes = known.bytes_per_s ?? 0;
  if (bytes <= 0) return;
  const [least = 1, most = 1] = across.domain();
  const line = (from: [number, number], to: [number, number]): void => {
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
  };
  const { soft } = colours();
  context.save();
  context.beginPath();
  context.rect(LEFT, 10, right - LEFT, HEIGHT - BOTTOM - 10);
  context.clip();
  context.strokeStyle = soft;
  context.fillStyle = soft;
  context.setLineDash([5, 4]);
  const top = Math.max(...Object.keys(NAMES).map((name) => known[name] ?? 0));
  const until = Math.min(most, top / bytes);
  line([across(least), up(least * bytes)], [across(until), up(until * bytes)]);
  const middle = Math.sqrt(least * Math.max(least, until));
  context.textAlign = "right";
  context.fillText(`memory ${rate(bytes, "B/s")}`, across(middle) - 8, up(middle * bytes) - 8);
  context.textAlign = "left";
  for (const [name, words] of Object.entries(NAMES)) {
    const value = known[name] ?? 0;
    if (value <= 0) continue;
    const from = Math.max(across(Math.max(least, value / bytes)), LEFT);
    line([from, up(value)], [right, up(value)]);
    context.textAlign = "right";
    context.fillText(`${words} ${rate(value, "FLOP/s")}`, right - 4, up(value) - 8);
    context.textAlign = "left";
  }
  context.restore();
}
