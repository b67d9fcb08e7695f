// The page of a run beside its script: it has the editor's theme, its script runs, and a click on a line leads there.
// Called by test_vscode.py with one JSON object of options; ends with status 0 or with what was not so.
import { Window } from "./window.mjs";

const options = JSON.parse(process.argv[2]);
const window = await Window.open(options);
const { page } = window;
const report = page.frameLocator("iframe.webview").frameLocator("#active-frame");
const background = () => report.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
const bright = (colour) => Math.max(...colour.match(/\d+/g).map(Number)) > 128;

try {
  await window.openFile("train.py");
  await window.until("the run's lines have hints", async () => (await window.lines()).some(({ text }) => / ms · .*%/.test(text)));
  await window.command("Warpline: Open Report");
  await window.until("the page's script has run", async () => (await report.locator("body").getAttribute("data-ready", { timeout: 5_000 }).catch(() => null)) === "true");
  window.expect("nothing of the page was refused", (await report.locator(".failed").count()) === 0);
  window.expect("it has a timeline", await report.locator("#timeline canvas").first().isVisible());
  const first = bright(await background());
  await window.picture("vscode-report");
  await window.enough();

  // A click on a line of the source opens the file there, in the column that the page does not hide.
  const row = report.locator("#source tr.costs").first();
  const number = await row.locator("td").first().innerText();
  await row.locator("td.source").click();
  await window.until("the line is in the editor", async () => (await page.locator(".part.statusbar").innerText()).includes(`Ln ${number},`));
  window.expect("the page is still there", await report.locator("#source").isVisible());
  window.expect("beside the script", (await page.locator(".editor-group-container").count()) === 2);

  // An inserted line: the page leads to where the line is now.
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("# A comment above.\n");
  await row.locator("td.source").click();
  await window.until("the line is found further down", async () => (await page.locator(".part.statusbar").innerText()).includes(`Ln ${Number(number) + 1},`));

  // The other theme.
  await window.command("Preferences: Toggle between Light/Dark Themes");
  await window.until("the page has the editor's theme", async () => bright(await background()) !== first);
  await window.look("report-other-theme");

  // Another script of the project keeps its results; its costly line opens to what takes the time in the library.
  await window.openFile("settings.py");
  await page.locator(".part.activitybar a[aria-label^='Warpline']").first().click();
  const costly = page.locator(".pane-body .monaco-list-row", { hasText: /settings\.py:8/ }).first();
  await costly.locator(".monaco-tl-twistie").click();
  const part = page.locator(".pane-body .monaco-list-row[aria-level='3']", { hasText: /\.py:\d+/, hasNotText: /settings\.py/ }).first();
  await window.until("below the line are the library's parts", async () => /[\d.]+ % +[\d.]+ m?s/.test(await part.innerText().catch(() => "")));
  window.log("tree", JSON.stringify(await page.locator(".pane-body .monaco-list-row").allInnerTexts()));
  await window.look("library");
  const label = (await part.innerText()).replace(/\s+/g, " ");
  window.log("part", label);
  await part.click();
  const tabs = () => page.locator(".tab.active").evaluateAll((all) => all.map((tab) => tab.dataset.resourceName ?? ""));
  await window.until("a click opens the library's file", async () =>
    (await tabs()).some((name) => name.endsWith(".py") && name !== "settings.py" && label.includes(`${name}:`)));
  await page.waitForTimeout(1_500); // the view is asked for anew when another file is shown
  window.expect("the view still has the run that the line is of", await costly.isVisible() && await part.isVisible());
  const line = Number(label.match(/\.py:(\d+)/)[1]);
  const shown = async () => (await window.lines()).find(({ number }) => number === line);
  await window.until("the library's line has its hint", async () => / ms · .*%/.test((await shown())?.text ?? ""));
  await window.until("and its bar", async () => {
    const [at, marks] = [await shown(), await window.marks()];
    return marks.some((mark) => Math.abs(mark.top - at.top) < at.height / 2);
  });
  const card = await window.hover(line);
  window.log("library hover", card);
  window.expect("the hover names the script's line that the time belongs to", card.includes("settings.py:8"));
  await window.look("library-file");
  await window.close();
} catch (error) {
  await window.close(error);
  throw error;
}
