// A person's session with a page in a headless Chromium: node session.mjs PAGE [PICTURES]. What was seen is printed
// as JSON; tests/html/test_browser.py judges it. PICTURES: a folder for the pictures of docs/page.md and README.md.
import { chromium } from "playwright-core";

const [file, pictures] = process.argv.slice(2);
const seen = { errors: [], requests: [] };
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: "light" });
  page.on("pageerror", (error) => seen.errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  page.on("request", (request) => seen.requests.push(request.url().replace(/^file:.*\//, "file:")));
  await page.goto(`file://${file}`);
  await page.waitForSelector("body[data-ready]", { timeout: 60_000 });
  const picture = async (name, section) => {
    if (!pictures) return;
    await page.evaluate((id) => {
      document.documentElement.style.scrollBehavior = "auto";
      if (id) document.getElementById(id).scrollIntoView();
      else scrollTo(0, 0);
    }, section);
    await page.waitForTimeout(200);
    await page.screenshot({ path: `${pictures}/page-${name}.png` });
  };
  const rows = (table) =>
    page.locator(`table[aria-label="${table}"] tbody tr`).evaluateAll((all) =>
      all.map((row) => [...row.children].map((cell) => cell.textContent)),
    );
  const heads = (table) => page.locator(`table[aria-label="${table}"] thead th`).allTextContents();
  const domain = () => page.evaluate(() => window.warpline.timeline.domain);

  // Numbers as words.
  const values = process.env.VALUES ? JSON.parse(process.env.VALUES) : [];
  seen.words = await page.evaluate(
    (all) =>
      all.map((value) => {
        const { ms, percentage, size, count, rate } = window.warpline.words;
        return [ms(value), percentage(value), size(value), count(value), rate(value, "FLOP")];
      }),
    values,
  );

  // Tables: all rows, sorted by another column, searched.
  seen.heads = await heads("lines");
  seen.lines = await rows("lines");
  await page.getByRole("button", { name: "device ms" }).first().click();
  seen.byDevice = await rows("lines");
  await page.getByRole("searchbox", { name: "Find lines", exact: true }).fill("loss");
  seen.found = await rows("lines");
  await page.getByRole("searchbox", { name: "Find lines", exact: true }).fill("");
  await page.getByRole("tab", { name: "Operators" }).click();
  seen.operators = await rows("operators");
  await page.getByRole("tab", { name: "Kernels" }).click();
  seen.kernels = await rows("kernels");

  // Jump: the row of a line leads to the line in its source.
  await page.getByRole("tab", { name: "Lines" }).click();
  seen.jumpFrom = (await rows("lines"))[1][0];
  await page.locator('table[aria-label="lines"] tbody tr').nth(1).click();
  seen.jumpTo = await page.locator(".listing tr.here").getAttribute("data-line");
  seen.unfolded = await page.locator(".listing tr.here").press("Enter").then(() => page.locator(".listing tr.detail").textContent());
  await page.locator(".finding button.place").first().click();
  seen.findingLine = await page.locator(".listing tr.here").getAttribute("data-line");

  // Two runs: the line that changed most leads to its source.
  seen.compared = await page.locator("table.compare tr").evaluateAll((all) =>
    all.slice(1).map((row) => [...row.children].map((cell) => cell.textContent)),
  );
  await page.locator("table.compare button.place").first().click();
  seen.comparedLine = await page.locator(".listing tr.here").getAttribute("data-line");

  // The timeline: hover, zoom with the wheel, drag, keys, search.
  const canvas = page.locator("#timeline canvas");
  await canvas.scrollIntoViewIfNeeded();
  const item = await page.evaluate(() => {
    const { timeline } = window.warpline;
    const [from, to] = timeline.domain;
    const box = timeline.canvas.element.getBoundingClientRect();
    const stream = timeline.timeline.tracks.findIndex((track) => track.kind === "stream");
    const lane = timeline.lanes.find((each) => each.track === stream);
    let best = -1;
    lane.start.forEach((start, at) => {
      if (start > from && lane.end[at] < to && (best < 0 || lane.end[at] - start > lane.end[best] - lane.start[best])) best = at;
    });
    const middle = (lane.start[best] + lane.end[best]) / 2;
    const track = timeline.timeline.tracks[stream];
    return {
      x: box.left + ((middle - from) / (to - from)) * box.width,
      y: box.top + lane.y + lane.height / 2,
      label: timeline.timeline.labels[track.label[lane.item[best]]],
      length: track.length_ns[lane.item[best]],
    };
  });
  await page.mouse.move(item.x, item.y);
  seen.hovered = { item, tip: await page.locator(".tip").innerText() };
  seen.before = await domain();
  await page.mouse.click(item.x, item.y);
  seen.pinned = await page.locator("#timeline .details").innerText();
  for (let turn = 0; turn < 5; turn += 1) await page.mouse.wheel(0, -300);
  await page.waitForTimeout(100);
  seen.zoomed = await domain();
  await page.mouse.move(item.x, item.y);
  await page.mouse.down();
  await page.mouse.move(item.x + 200, item.y, { steps: 5 });
  await page.mouse.up();
  seen.dragged = await domain();
  // With everything in view no more boxes are drawn than there are pixels, however many items there are.
  await page.evaluate(() => {
    const prototype = CanvasRenderingContext2D.prototype;
    const plain = prototype.fillRect;
    window.boxes = 0;
    prototype.fillRect = function (...box) {
      window.boxes += 1;
      return plain.apply(this, box);
    };
    window.stopCounting = () => (prototype.fillRect = plain);
  });
  await page.mouse.move(5, 5);
  await canvas.focus();
  await page.waitForTimeout(50);
  await page.evaluate(() => (window.boxes = 0));
  await page.keyboard.press("0");
  await page.waitForTimeout(100);
  seen.boxes = await page.evaluate(() => {
    window.stopCounting();
    const { timeline } = window.warpline;
    const items = timeline.lanes.map((lane) => lane.item.length);
    return { drawn: window.boxes, items, titles: timeline.timeline.tracks.length, width: timeline.canvas.width };
  });
  seen.whole = await domain();
  await page.keyboard.press("]");
  seen.step = await domain();
  await page.getByRole("searchbox", { name: "Find in the timeline" }).fill(item.label.slice(0, 20));
  seen.matches = await page.locator("#timeline .tools [role=status]").textContent();
  await page.keyboard.press("Enter");
  seen.next = await page.locator("#timeline .details").innerText();
  await page.getByRole("searchbox", { name: "Find in the timeline" }).fill("");

  // The flame graph: a click on a box makes it the whole width.
  const flame = page.locator("#flame canvas");
  await flame.scrollIntoViewIfNeeded();
  await flame.click({ position: { x: 60, y: 30 } });
  seen.flame = await page.locator("#flame .details").innerText();

  // `/` goes to a search; a finding's rule is unfolded by its link.
  await page.locator("h1").click();
  await page.keyboard.press("/");
  seen.focus = await page.evaluate(() => document.activeElement.getAttribute("type"));
  await page.locator('.finding a[href^="#rule-"]').first().click();
  seen.ruleOpen = await page.locator("details.rule[open]").count();

  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  seen.light = await paper();
  await page.getByRole("button", { name: "◐" }).click();
  seen.dark = await paper();
  await page.waitForTimeout(200);
  await page.evaluate(() => window.warpline.timeline.showStep(0));
  await picture("dark", "timeline");

  // A run of several ranks: bars, lines side by side, and the other ranks in the timeline.
  if (process.env.RANKS) {
    await page.goto(`file://${process.env.RANKS}`);
    await page.waitForSelector("body[data-ready]", { timeout: 60_000 });
    seen.bars = await page.locator("table.ranks tr[data-rank] svg.bar").count();
    seen.rankHeads = await heads("lines by rank");
    seen.ranks = await rows("lines by rank");
    seen.tracks = await page.evaluate(() => window.warpline.timeline.timeline.tracks.map((track) => track.name));
    await picture("ranks", "ranks");
    if (pictures) {
      // A page from its top on, as far as the timeline.
      await page.goto(`file://${process.env.PLAIN}`);
      await page.waitForSelector("body[data-ready]", { timeout: 60_000 });
      await page.setViewportSize({ width: 1400, height: 1320 });
      await page.waitForTimeout(200);
      await picture("top");
      await page.setViewportSize({ width: 1400, height: 900 });
    }
    await page.goto(`file://${file}`);
    await page.waitForSelector("body[data-ready]", { timeout: 60_000 });
  }

  await page.setViewportSize({ width: 390, height: 800 });
  await page.waitForTimeout(200);
  seen.phone = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  // Paper is light although the page is dark now, and the screen is dark again afterwards.
  await page.evaluate(() => {
    window.printed = [];
    document.documentElement.dataset.theme = "dark";
    addEventListener("beforeprint", () => window.printed.push(getComputedStyle(document.body).backgroundColor));
  });
  await page.pdf();
  seen.printed = await page.evaluate(() => window.printed);
  seen.afterwards = await paper();
  await page.emulateMedia({ media: "print" });
  seen.printedHeader = await page.locator("header").isVisible();
  seen.drawn = await page.evaluate(() => window.warpline.timeline.canvas.lastMs);
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
