// A line that calls a library, opened in the tree down to a library's line, and the library's file that this leads to.
// Called by test_vscode.py with one JSON object of options (with `script`, `line`, `part`, the entry whose lines are
// looked at: absent, the first; and `picture`, the name of one for the documentation); ends with status 0 or with what was not so.
import { Window } from "./window.mjs";

const options = JSON.parse(process.argv[2]);
const { script, line: called, part: wanted } = options;
const window = await Window.open(options);
const { page } = window;
const words = async (row) => (await row.innerText().catch(() => "")).replace(/\s+/g, " ");
const tabs = () => page.locator(".tab.active").evaluateAll((all) => all.map((tab) => tab.dataset.resourceName ?? ""));

/** The rows of the tree that are on screen, from the one of the line on: [{ level, label, ms }]. */
async function rows() {
  const shown = await page.locator(".pane-body .monaco-list-row").evaluateAll((all) =>
    all.map((row) => ({ top: row.getBoundingClientRect().top, level: Number(row.ariaLevel), label: row.innerText.replace(/\s+/g, " ") })));
  const sorted = shown.sort((a, b) => a.top - b.top).map(({ level, label }) => {
    const [, time, unit] = label.match(/% ([\d.]+) (m?s)\b/) ?? [];
    return { level, label, ms: Number(time) * (unit === "s" ? 1_000 : 1) };
  });
  return sorted.slice(sorted.findIndex(({ label }) => label.includes(`s ${script}:${called}`)));
}

/** The entries in the one with this place in `rows`, one level below it. */
function within(all, at) {
  const end = all.findIndex(({ level }, place) => place > at && level <= all[at].level);
  return all.slice(at + 1, end < 0 ? all.length : end).filter(({ level }) => level === all[at].level + 1);
}

/** Whether the entries add up to the one that they are in, but for the places that their times are rounded to. */
function addsUp(whole, entries) {
  const sum = entries.reduce((so_far, { ms }) => so_far + ms, 0);
  return entries.length > 0 && Math.abs(sum - whole) <= 0.006 * whole + 0.006 * entries.length;
}

try {
  await window.openFile(script);
  await window.until("the run's lines have hints", async () => (await window.lines()).some(({ text }) => / ms · .*%/.test(text)));
  await page.locator(".part.activitybar a[aria-label^='Warpline']").first().click();
  const costly = page.locator(".pane-body .monaco-list-row", { hasText: new RegExp(`s\\s+${script}:${called}`) }).first(); // not a finding there
  await costly.locator(".monaco-tl-twistie").click();
  const entry = page.locator(".pane-body .monaco-list-row", { hasText: wanted === undefined ? /\.py:\d+/ : new RegExp(`s\\s+${wanted}`) });
  const part = (wanted === undefined ? entry.and(page.locator("[aria-level='3']")) : entry).filter({ hasNotText: script }).first();
  await window.until("below the line are the library's parts", async () => /[\d.]+ % [\d.]+ m?s/.test(await words(part)));
  const opened = await rows();
  window.log("tree", JSON.stringify(opened));
  // What is further down than the window is not drawn.
  if (wanted === undefined) window.expect("which add up to the line", addsUp(opened[0].ms, within(opened, 0)));
  await window.look("library");

  // The part opens to the library's lines, and one of these leads into its file.
  const name = await words(part);
  if ((await part.getAttribute("aria-expanded")) !== "true") await part.locator(".monaco-tl-twistie").click();
  const lines = await window.until("the part has the library's lines below it", async () => {
    const all = await rows();
    const found = within(all, all.findIndex(({ label }) => label === name));
    return found.some(({ label }) => /\.py:\d+/.test(label)) ? found : undefined;
  });
  window.log("part", name, JSON.stringify(lines));
  const whole = (await rows()).find(({ label }) => label === name).ms;
  window.expect("which add up to the part", addsUp(whole, lines));
  const { label, level } = lines.find((each) => /s \w+\.py:\d+/.test(each.label));
  const [, file, number] = label.match(/(\w+\.py):(\d+)/);
  await page.locator(`.pane-body .monaco-list-row[aria-level='${level}']`, { hasText: `${file}:${number}` }).first().click();
  await window.until("a click opens the library's file", async () => (await tabs()).includes(file));
  await page.waitForTimeout(1_500); // the view is asked for anew when another file is shown
  window.expect("the view still has the run that the line is of", await costly.isVisible() && await part.isVisible());
  const line = Number(number);
  const shown = async () => (await window.lines()).find((each) => each.number === line);
  await window.until("the library's line has its hint", async () => / ms · .*%/.test((await shown())?.text ?? ""));
  await window.until("and its bar", async () => {
    const [at, marks] = [await shown(), await window.marks()];
    return marks.some((mark) => Math.abs(mark.top - at.top) < at.height / 2);
  });
  window.log("line", (await shown()).text);
  const card = await window.hover(line);
  window.log("hover", card);
  window.expect("the hover names the script's line that the time belongs to", card.includes(`${script}:${called}`));
  window.expect("nothing in the file is underlined", (await page.locator(".editor-group-container.active [class*=squiggly]").count()) === 0);
  await (options.picture === undefined ? window.look("library-file") : window.picture(options.picture));
  await window.close();
} catch (error) {
  await window.close(error);
  throw error;
}
