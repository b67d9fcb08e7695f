// Frames a second while the timeline of a page is zoomed: node benchmarks/page.mjs PAGE [FRAMES]. Called by
// benchmarks/page.py and tests/html/test_frames.py.
import { chromium } from "playwright-core";

const FRAMES = Number(process.argv[3] ?? 240);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
const since = Date.now();
await page.goto(`file://${process.argv[2]}`);
await page.waitForSelector("body[data-ready]");
const ready = Date.now() - since;
// What the page's main thread works, whatever else the machine does: its processor time, not the clock's.
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable", { timeDomain: "threadTicks" });
const worked = async () => {
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name) => 1000 * metrics.find((metric) => metric.name === name).value;
  return { script: of("ScriptDuration"), task: of("TaskDuration") };
};
const before = await worked();
const found = await page.evaluate(async (count) => {
  const view = window.warpline.timeline;
  const length = view.timeline.length_ns;
  document.getElementById("timeline").scrollIntoView();
  const draws = [];
  const frames = [];
  let last = performance.now();
  for (let frame = 0; frame < count; frame += 1) {
    const shown = length * Math.exp(-8 * Math.abs(Math.sin(frame / 40))); // from all of it to a 3000th
    view.show(0.4 * length - shown / 2, 0.4 * length + shown / 2);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    draws.push(view.canvas.lastMs);
    last = now;
  }
  const at = (values, share) => [...values].sort((a, b) => a - b)[Math.floor(values.length * share)];
  return {
    draw_ms: at(draws, 0.5),
    draw_ms_95: at(draws, 0.95),
    frame_ms: at(frames, 0.5),
    frame_ms_95: at(frames, 0.95),
    frames_per_s: (1000 * frames.length) / frames.reduce((sum, each) => sum + each),
  };
}, FRAMES);
const after = await worked();
await browser.close();
const cpu = { script_cpu_ms: (after.script - before.script) / FRAMES, cpu_ms: (after.task - before.task) / FRAMES };
console.log(JSON.stringify({ ready_ms: ready, ...cpu, ...found }));
