// The best set of fixes is looked for to the end and put into the script: from the rocket over the results to one undo.
// Called by test_vscode.py with one JSON object of options; ends with status 0 or with what was not so.
import { Session } from "./session.mjs";
import { Window } from "./window.mjs";

/** The search has its own budget, a setting; and the time until the script runs for the first time. */
const SEARCH_MS = 500_000;

const options = JSON.parse(process.argv[2]);
const window = await Window.open(options);
const { page } = window;
const session = new Session(window, options);
const written = async () => (await window.lines()).some(({ text }) => /DataLoader\(.*num_workers=/.test(text));

try {
  await window.openFile("rows.py");
  await window.until("a lens offers to profile", async () => (await session.lenses()).some((title) => /Profile this file/.test(title)));
  await session.titleButton.click();
  const ended = session.toast("a step,");
  await ended.waitFor();
  await ended.getByRole("button", { name: "Show Findings" }).click();
  const rocket = page.locator(".pane-header a[aria-label^='Find and Apply the Best Set']").first();
  await page.locator(".pane-header", { hasText: "Results" }).first().hover();
  await rocket.click();
  const bar = session.toast("Searching for the best set of fixes");
  await window.until("the search says how far it is, and how long it may take", async () =>
    /: \d+ % · at most .+ left; \w/.test((await bar.innerText().catch(() => "")).replace(/\s+/g, " ")));
  const best = session.toast(/Best set|No set of fixes/);
  await best.waitFor({ timeout: SEARCH_MS });
  const said = (await best.innerText()).replace(/\s+/g, " ");
  window.log("said:", said);
  window.expect("the gain has its interval, and is applied", /Best set, 1 fix: [\d.]+x, [\d.]+ to [\d.]+\. Applied/.test(said));
  await window.until("the fix is in the editor", written);
  const gain = Number(/1 fix: ([\d.]+)x/.exec(said)?.[1]);
  window.expect("workers that wait side by side gain what arithmetic says", gain > 1.3);
  await page.locator(".editor-group-container.active .monaco-editor .view-line").first().click();
  await page.keyboard.press("Control+Z");
  await window.until("one undo takes it back", async () => !(await written()));
  await window.close();
} catch (error) {
  await window.close(error);
  throw error;
}
