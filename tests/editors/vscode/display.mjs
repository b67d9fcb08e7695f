// Steps of a session about what is shown: where inlay hints are off, in the dark, after edits, and when a script fails.
import fs from "node:fs";
import path from "node:path";

/** The times that stand behind lines as decorations: a pseudo-element's words are in no text. */
function decorated(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll(".editor-group-container.active .view-lines span")]
      .map((span) => getComputedStyle(span, "::after").content.replaceAll("\u00a0", " "))
      .filter((words) => / ms · .*%/.test(words)));
}

/** Users who turned inlay hints off see the times all the same; and the same in the dark. */
export async function otherSettings(session) {
  const { window, page } = session;
  const plain = await session.settledHints();
  session.settings({ "editor.inlayHints.enabled": "off" });
  await window.until("without inlay hints the times are there", async () => (await decorated(page)).length >= Object.keys(plain).length);
  window.expect("and only once", Object.keys(await session.hints()).length === 0);
  await window.look("no-inlay-hints");
  const dark = async () => (await page.locator(".monaco-workbench.vs-dark").count()) > 0;
  const before = await dark();
  session.settings({ "workbench.colorTheme": before ? "Default Light Modern" : "Default Dark Modern" });
  await session.hintsAre("inlay hints are back", plain);
  await window.until("the times are there only once", async () => (await decorated(page)).length === 0);
  await window.until("the other theme", async () => (await dark()) !== before);
  await window.picture(before ? "vscode-light" : "vscode-dark");
  session.settings({});
  await window.until("the theme of before", async () => (await dark()) === before);
}

/** A line that was changed since, and a whole text that was replaced and comes back. */
export async function changedAndBack(session, line) {
  const { window, page } = session;
  const plain = await session.settledHints();
  await window.goto(line);
  await page.keyboard.type("0");
  await window.until("the tree says that the line was changed since", async () => (await session.rows()).some((row) => row.includes("line changed since")));
  await window.until("and so does the hint", async () => (await window.lines()).some(({ number, text }) => number === line && / ?was [\d.]+ ms/.test(text)));
  await window.look("changed-line");
  await page.keyboard.press("Control+Z");
  await window.until("undone, the tree is as before", async () => !(await session.rows()).some((row) => row.includes("line changed since")));

  await page.keyboard.press("Control+A");
  await page.keyboard.type("x");
  await window.until("the whole text is another", async () => (await window.lines()).length === 1);
  await page.keyboard.press("Control+Z");
  await window.goto(1);
  await session.hintsAre("after undoing it no hint is lost", plain);
}

export async function groups(session) {
  const { window, page } = session;
  const button = (name) => page.locator(`.pane-header a[aria-label^='Group by ${name}']`).first();
  await page.locator(".pane-header", { hasText: "Results" }).first().hover();
  await button("Function").click();
  await window.until("lines are grouped by function, with self and total", async () =>
    (await session.rows()).some((row) => /^main ?self [\d.]+ % [\d.]+ m?s, total [\d.]+ %/.test(row)));
  await window.picture("vscode-functions");
  await page.locator(".pane-header", { hasText: "Results" }).first().hover();
  await button("File").click();
  await window.until("lines are grouped by file", async () => (await session.rows()).some((row) => /^train\.py ?[\d.]+ %/.test(row)));
  await page.mouse.move(700, 790);
}

/** A file that has nothing to do with torch gets no lens, until it has. */
export async function withoutTorch(session) {
  const { window, page, workspace } = session;
  const plain = path.join(workspace, "plain.py");
  fs.writeFileSync(plain, "\ndef size(rows):\n    return len(rows)\n");
  await window.openFile("plain.py");
  window.expect("no lens without torch", (await session.lenses()).length === 0);
  await window.goto(1);
  await page.keyboard.type("import torch");
  await page.keyboard.press("Escape"); // a suggestion
  await window.until("a lens with torch", async () => (await session.lenses()).some((title) => title === "Profile this file"));
  await page.keyboard.press("Control+S");
  await window.until("it is saved", () => fs.readFileSync(plain, "utf8").startsWith("import torch"));
}

/** A script that fails says so with its remedies, and the results stay. */
export async function failing(session) {
  const { window, page, workspace } = session;
  fs.writeFileSync(path.join(workspace, "broken.py"), 'import torch\n\n\ndef load():\n    return torch.load("missing.pt")\n\n\nload()\n');
  await window.openFile("broken.py");
  const before = session.finishedRuns().length;
  await session.titleButton.click();
  const failed = session.toast("missing.pt");
  await failed.waitFor();
  window.log("failed:", (await failed.innerText()).replace(/\s+/g, " "));
  await window.look("failed");
  window.expect("the log is offered", (await failed.getByRole("button", { name: "Show Log" }).count()) === 1);
  await failed.getByRole("button", { name: "Go to broken.py:5" }).click();
  await window.until("the button leads to the line", async () => (await page.locator(".part.statusbar").innerText()).includes("Ln 5,"));

  // Without torch it says what to do: the command is typed into a terminal, and not run.
  const bare = path.join(workspace, "bare");
  fs.writeFileSync(bare, `#!/bin/sh\nexec ${session.python} -I -S "$@"\n`, { mode: 0o755 });
  session.settings({ "warpline.python": bare });
  await window.until("the interpreter is refused with its remedies", async () => {
    await session.titleButton.click();
    const refused = session.toast("has no torch");
    return refused.waitFor({ timeout: 20_000 }).then(() => true, () => false); // the setting may not have come through yet
  });
  const refused = session.toast("has no torch");
  await window.look("no-torch");
  window.expect("another interpreter can be chosen", (await refused.getByRole("button", { name: "Choose Interpreter" }).count()) === 1);
  await refused.getByRole("button", { name: /pip install torch/ }).click();
  const terminal = page.locator(".terminal-wrapper.active");
  await terminal.locator(".xterm-screen").waitFor();
  await window.look("typed");
  const said = path.join(workspace, "said.txt");
  await window.until("the command stands there and waits for Enter", async () => {
    await terminal.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type(" 2> said.txt\n");
    await page.waitForTimeout(2_000);
    return fs.existsSync(said) && fs.readFileSync(said, "utf8").includes("No module named pip");
  });
  await window.command("View: Toggle Panel Visibility");
  await window.command("Notifications: Clear All Notifications");
  session.settings({});
  window.expect("it leaves no run", session.finishedRuns().length === before);
  await window.openFile("train.py");
  await window.until("the results stay", async () => Object.keys(await session.hints()).length > 0);
}
