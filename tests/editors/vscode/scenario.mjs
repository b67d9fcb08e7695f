// One working session in VS Code, from a workspace not yet trusted to results that are there again after a reload.
// Called by test_vscode.py with one JSON object of options; ends with status 0 or with what was not so.
import fs from "node:fs";
import path from "node:path";
import { changedAndBack, failing, groups, otherSettings, withoutTorch } from "./display.mjs";
import { comparing, comparingSelected, launching, otherArguments, searching } from "./runs.mjs";
import { Session } from "./session.mjs";
import { Window } from "./window.mjs";

const options = JSON.parse(process.argv[2]);
const { workspace } = options;

const window = await Window.open(options);
const { page } = window;
const session = new Session(window, options);
const { script, titleButton, tree, listed } = session;
const hold = path.join(workspace, "downloading");

try {
  // The extension is active at once, since there is a .warpline folder, and nothing runs before the folder is trusted.
  const trust = page.getByRole("button", { name: "Yes, I trust the authors" });
  await trust.waitFor();
  await window.until("the extension is active", () => window.extensionLog().includes("_doActivateExtension warpline.warpline"));
  window.expect("no server before the workspace is trusted", session.servers().length === 0);
  await trust.click();
  await trust.waitFor({ state: "hidden" });
  await window.openFile("train.py");
  window.expect("a command that can run is offered", await session.offers("Profile This File"));
  for (const title of ["Compare with Previous Run", "Find and Apply the Best Set"]) {
    window.expect(`one that cannot is hidden: ${title}`, !(await session.offers(title)));
  }

  await page.locator(".part.activitybar a[aria-label^='Warpline']").first().click();
  await window.until("without a run the view says how to begin", async () => (await page.locator(".pane-body .welcome-view").innerText().catch(() => "")).includes("Profile This File"));
  await window.look("welcome");
  await page.locator(".part.activitybar a[aria-label^='Explorer']").first().click();

  // Cancelled once: the script waits for its data, so it is surely still running.
  fs.writeFileSync(hold, "");
  // Where no server is named its environment is made by the first profile, and nothing before that.
  const bare = options.settings["warpline.server.python"] === undefined;
  if (bare) {
    await titleButton.waitFor();
    window.expect("nothing is installed or started by opening a file", session.servers().length === 0 && (await session.toast("installing").count()) === 0);
    await titleButton.click();
    const installing = session.toast("installing its server");
    await installing.waitFor();
    await window.until("the server is installed", async () => (await installing.count()) === 0, 400_000);
  } else {
    // VS Code 1.139 drops its question for lenses when the text loses the focus, as it did to the boxes above.
    await page.locator(".editor-group-container.active .monaco-editor .view-line").last().click();
    const offered = async () => (await session.lenses()).some((title) => /Profile this file/i.test(title));
    await window.until("a lens offers to profile the file", offered);
    await titleButton.click();
  }
  const profiling = session.toast("Profiling train.py");
  await profiling.waitFor();
  await window.until("the script runs", () => session.targets().length > 0);
  await window.until("the notification is cancelled", async () => {
    await profiling.hover({ timeout: 10_000 }).catch(() => {});
    await profiling.getByRole("button", { name: "Cancel" }).click({ timeout: 10_000 }).catch(() => {});
    return (await profiling.count()) === 0;
  });
  await window.until("the script is ended", () => session.targets().length === 0);
  window.expect("a cancelled profile leaves no run", session.finishedRuns().length === 0);
  window.expect("a cancelled profile says nothing more", (await page.locator(".notifications-toasts .notification-list-item").count()) === 0);

  // And finished.
  await titleButton.click();
  await profiling.waitFor();
  await window.until("progress is told", async () => {
    const message = (await profiling.innerText().catch(() => "")).replace(/\s+/g, " ");
    return /: \d+ % · (?!waiting for)/.test(message) ? message : undefined;
  });
  await window.picture("vscode-progress");
  fs.rmSync(hold);
  await window.until("the profile is finished", async () => session.finishedRuns().length === 1 && (await profiling.count()) === 0);

  // What came of it is said, with the way there: the line may be in a file that is not open.
  const ended = session.toast("a step,");
  await ended.waitFor();
  const said = (await ended.innerText()).replace(/\s+/g, " ");
  window.log("the end of a profile:", said);
  await window.look("ended");
  window.expect("the end says step and findings", /train\.py: [\d.]+ ms a step, (\d+|no) findings?/.test(said));
  await ended.getByRole("button", { name: /^Go to \w+\.py:\d+/ }).click();
  const [, there] = /Go to \w+\.py:(\d+)/.exec(said) ?? [];
  await window.until("the button leads to the line", async () =>
    (await page.locator(".part.statusbar").innerText()).includes(`Ln ${there},`));

  // Findings of files that are not open are in Problems.
  await window.command("View: Close All Editors");
  await window.command("Problems: Focus on Problems View");
  const problems = page.locator(".markers-panel .monaco-list-row");
  await window.until("Problems has the findings of closed files", async () => (await problems.allInnerTexts()).some((text) => /warpline/.test(text)));
  await window.look("problems");
  await window.command("View: Hide Panel");
  await window.openFile("train.py");

  // Hints and heat stand on the lines that the report names, and on no others.
  await window.goto(1);
  const result = session.newest("report.json");
  const costly = result.lines.filter(({ file, step_ms }) => file === script && step_ms >= 0.02 * result.steps.step_ms).map(({ line }) => line);
  const known = result.lines.filter(({ file }) => file === script).map(({ line }) => line);
  const [hottest] = costly; // the report has the costliest first
  const code = fs.readFileSync(script, "utf8").split("\n")[hottest - 1].trim();
  const first = await window.until("a hint on every costly line", async () => {
    const found = await session.hints();
    return costly.every((line) => line in found) ? found : undefined;
  });
  window.log("hints", JSON.stringify(first));
  window.expect("no hint elsewhere", Object.keys(first).every((line) => known.includes(Number(line))));
  const hot = await window.until("a bar beside every costly line", async () => {
    const found = await session.heat();
    return costly.every((line) => found.includes(line)) ? found : undefined;
  });
  window.expect("no bar elsewhere", hot.every((line) => known.includes(line)));
  await window.until("the status bar has the step's time", async () => {
    const items = await page.locator(".part.statusbar .statusbar-item").allInnerTexts();
    return items.some((text) => /^\s*[\d.]+ ms\s*$/.test(text));
  });
  await window.until("a lens has a total", async () => (await session.lenses()).some((title) => / ms/.test(title)));
  await window.until("over a function stand its total and its own time", async () =>
    (await session.lenses()).some((title) => /^total [\d.]+ m?s · [\d.]+ %, self [\d.]+ m?s · [\d.]+ %$/.test(title)));
  const hover = await window.hover(hottest);
  const [ms, percent] = first[hottest].split(" · ");
  window.expect("the hover begins with the line's share", hover.includes(`${percent} of the step · ${ms}`));
  await window.picture("vscode-hover");
  await page.mouse.move(700, 5);

  // The side bar leads to the finding; its line's light bulb has the fix.
  await page.locator(".part.activitybar a[aria-label^='Warpline']").first().click();
  await window.until("the tree has hot lines", async () => (await tree.allInnerTexts()).some((text) => text.includes(code)));
  const item = tree.filter({ hasText: "loader-without-workers" }).first();
  await item.waitFor();
  const rows = await session.rows();
  window.log("tree", JSON.stringify(rows));
  window.expect("the tree has the time before the place", rows.some((text) => new RegExp(`[\\d.]+ % [\\d.]+ ms \\w+\\.py:\\d+`).test(text)));
  await page.mouse.move(900, 780); // else a tooltip hides a part of the tree
  await window.picture("vscode-results");
  await groups(session);
  await otherSettings(session);
  await searching(session);
  await item.click();
  const { line: site } = result.findings.find(({ rule }) => rule === "loader-without-workers");
  await window.until("the finding's line is selected", async () =>
    (await page.locator(".part.statusbar").innerText()).includes(`Ln ${site},`));
  await window.goto(site);
  const titles = await window.lightbulb();
  window.log("actions", JSON.stringify(titles));
  const title = titles.find((text) => /num_workers|worker/i.test(text));
  window.expect("the light bulb offers workers", title !== undefined);
  await window.picture("vscode-fix");
  await window.choose(title);
  await window.until("the fix is in the editor", async () => (await window.lines()).some(({ text }) => text.includes("num_workers")));
  await page.keyboard.press("Control+S");
  await window.until("the fix is in the file", () => /DataLoader\(Numbers\(\), .*num_workers/.test(fs.readFileSync(script, "utf8")));

  // Lines inserted above: the costliest line's hint goes down with it.
  const inserted = ["# Trains a small net", "# on rows of numbers.", ""];
  await window.goto(1);
  await page.keyboard.press("Home");
  await page.keyboard.type(inserted.join("\n"));
  await page.keyboard.press("Control+S");
  await window.until("the lines are in the file", () => fs.readFileSync(script, "utf8").startsWith(inserted.join("\n")));
  const moved = await window.until("the hint moved with its line", async () => {
    const found = await session.hints();
    return found[hottest + inserted.length - 1] === first[hottest] ? found : undefined;
  });
  await window.until("the bar moved with its line", async () => (await session.heat()).includes(hottest + inserted.length - 1));
  await window.until("the tree moved with its line", async () => (await session.rows()).some((row) => new RegExp(`train\\.py:${hottest + inserted.length - 1}(?!\\d)`).test(row)));

  // A file saved while it is profiled, with lines added at the top: results stand on the text as it is now.
  fs.writeFileSync(hold, "");
  await titleButton.click();
  await profiling.waitFor();
  await window.until("the script runs again", () => session.targets().length > 0);
  const late = ["# saved while", "# the profile runs", "", ""];
  await window.until("it was read and waits for its data", () => fs.readFileSync(hold, "utf8") !== "");
  await window.goto(1);
  await page.keyboard.press("Home");
  await page.keyboard.type(late.join("\n"));
  await page.keyboard.press("Control+S");
  await window.until("the late lines are in the file", () => fs.readFileSync(script, "utf8").startsWith(late.join("\n")));
  fs.rmSync(hold);
  await window.until("the second profile is finished", async () => session.finishedRuns().length === 2 && (await profiling.count()) === 0);
  const second = session.newest("report.json");
  const shift = late.length - 1;
  const expected = second.lines.filter(({ file, step_ms }) => file === script && step_ms >= 0.02 * second.steps.step_ms).map(({ line }) => line + shift);
  await window.goto(1);
  const after = await window.until("every costly line has its hint, further down", async () => {
    const found = await session.hints();
    return expected.every((line) => line in found) ? found : undefined;
  });
  window.log("hints after a save during the profile", JSON.stringify(after));
  window.expect("and no other line has one", Object.keys(after).every((line) => second.lines.some((one) => one.file === script && one.line + shift === Number(line))));
  const again = session.toast("a step,");
  await again.waitFor();
  await session.dismiss(again);

  // The two runs are in their view.
  await window.command("Warpline: Focus on Runs View");
  await window.until("both runs are listed", async () => (await listed.count()) === 2);

  if (options.pictures !== undefined) {
    // Compared, the line that the fix was for comes first.
    const commands = await window.quickInput("F1", ">Warpline: Compare with Previous Run");
    await commands.filter({ hasText: "Compare with Previous Run" }).first().click();
    const difference = page.locator(".quick-input-widget:visible .quick-input-title");
    await window.until("the two runs are compared", async () => (await difference.innerText().catch(() => "")).includes("→"));
    await window.picture("vscode-compare");
    await page.keyboard.press("Escape");
    await page.locator(".quick-input-widget:visible input.input").waitFor({ state: "hidden" });
    await window.command("Warpline: Hide the Difference in the Hints");
  }
  await window.openFile("train.py");
  await window.goto(1);
  await comparing(session);
  await comparingSelected(session);
  await otherArguments(session);
  await window.enough();
  await changedAndBack(session, expected[0]);
  await failing(session);
  await withoutTorch(session);
  await launching(session);

  // A server that dies is started again, and nobody is bothered with it.
  const [server] = session.servers();
  process.kill(Number(server), "SIGKILL");
  await window.until("there is another server", () => session.servers().length === 1 && session.servers()[0] !== server);
  await window.until("a lens has a total again", async () => (await session.lenses()).some((title) => / ms/.test(title)));
  window.expect("no popup", (await page.locator(".notifications-toasts .notification-list-item").count()) === 0);

  await window.reload();
  await window.until("after a reload the hints are back", async () => expected[0] in (await session.hints()));
  await window.close();
} catch (error) {
  await window.close(error);
  throw error;
}
