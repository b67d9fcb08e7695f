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
  await window.close();
} catch (error) {
  await window.close(error);
  throw error;
}
