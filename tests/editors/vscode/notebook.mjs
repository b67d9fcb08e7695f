// A notebook without the Jupyter extension: the flame in its toolbar profiles its cells, whose lines then have hints,
// bars and hovers, and fixes that go into the cells. Called by test_vscode.py with one JSON object of options; ends with status 0 or with what was not so.
import fs from "node:fs";
import path from "node:path";
import { Window } from "./window.mjs";

const options = JSON.parse(process.argv[2]);
const window = await Window.open(options);
const { page } = window;
const cells = page.locator(".notebookOverlay .cell-list-container .code-cell-row, .notebookOverlay .monaco-list-row.code-cell-row");
const text = async (cell) => (await cell.locator(".view-lines").innerText()).replace(/\u00a0/g, " ");

try {
  const rows = await window.quickInput("Control+P", "train.ipynb");
  await rows.filter({ hasText: "train.ipynb" }).first().click();
  await window.until("the cells are there", async () => (await cells.count()) === 3);
  await page.locator(".notebookOverlay .notebook-toolbar-container, .editor-actions").locator("[aria-label^='Profile This Notebook']").first().click();
  await page.locator(".notifications-toasts .notification-list-item", { hasText: "Cell 1:1" }).waitFor(); // the magic there
  const ended = page.locator(".notifications-toasts .notification-list-item", { hasText: "a step," });
  await ended.waitFor();
  window.log("the end of a profile:", (await ended.innerText()).replace(/\s+/g, " "));
  const loop = cells.nth(2);
  await window.until("the loop's lines have hints", async () => / ms · .*%/.test(await text(loop)));
  await window.until("the loop's lines have bars", async () =>
    loop.locator(".view-overlays .cdr").evaluateAll((marks) => marks.some((mark) => parseFloat(getComputedStyle(mark).borderLeftWidth) > 0)));
  window.expect("no hint in the cell of imports", !/ ms · /.test(await text(cells.nth(0))));

  await ended.getByRole("button", { name: /^Go to Cell/ }).click();
  await window.until("the button leads to the cell", async () => (await page.locator(".notebookOverlay .code-cell-row.focused, .notebookOverlay .monaco-list-row.focused .monaco-editor.focused").count()) > 0);
  const word = loop.locator(".view-line span span", { hasText: "backward" }).first();
  await page.mouse.move(700, 5);
  await word.hover();
  const card = page.locator(".monaco-hover:visible", { hasText: "of the step" }).first();
  await card.waitFor();
  await window.picture("vscode-notebook");
  await window.enough();
  await page.mouse.move(700, 5);
  await window.command("Preferences: Toggle between Light/Dark Themes");
  await window.look("notebook-dark");

  // The fix of a finding is put into its cell, and with it into the notebook.
  await cells.nth(1).locator(".view-line", { hasText: "DataLoader(" }).first().click();
  const actions = page.locator(".action-widget:not(.action-list-submenu-panel) .monaco-list-row.action");
  await window.until("the fixes of the line are offered", async () => {
    await page.keyboard.press("Control+.");
    await actions.first().waitFor({ timeout: 5_000 }).catch(() => {});
    return (await actions.count()) > 0;
  });
  const titles = (await actions.allInnerTexts()).map((title) => title.trim());
  window.log("actions", JSON.stringify(titles));
  await window.choose(titles.find((title) => /worker/.test(title)));
  await window.until("the fix is in the cell", async () => /DataLoader\(Rows\(\), batch_size=32, num_workers=/.test(await text(cells.nth(1))));
  await page.keyboard.press("Control+S");
  const file = path.join(options.workspace, "train.ipynb");
  await window.until("and in the notebook", () => /num_workers=/.test(fs.readFileSync(file, "utf8")));
  await window.close();
} catch (error) {
  await window.close(error);
  throw error;
}
