// Steps of a session about runs: two are compared, an older one is shown, one is made of a launch configuration.
import fs from "node:fs";
import path from "node:path";

const FACTOR = 10;

/** An older run of the same script in which all took ten times as long: no machine is so busy that it would hide that. */
function olderRun(runs, name) {
  const copy = path.join(runs, "..", "copy"); // moved to its place when it is complete
  fs.cpSync(path.join(runs, name), copy, { recursive: true });
  const change = (part, edit) => {
    const read = JSON.parse(fs.readFileSync(path.join(copy, part), "utf8"));
    edit(read);
    fs.writeFileSync(path.join(copy, part), JSON.stringify(read));
  };
  change("report.json", (report) => {
    report.steps.step_ms *= FACTOR;
    for (const line of report.lines) line.step_ms *= FACTOR;
  });
  change("manifest.json", (manifest) => {
    manifest.created_ns -= 1e9;
    manifest.timed_ns = manifest.timed_ns.map((ns) => ns * FACTOR);
  });
  const now = new Date();
  fs.utimesSync(path.join(runs, name, "report.json"), now, now); // so that the run before it is looked for again
  fs.renameSync(copy, path.join(runs, name.slice(0, -1))); // which comes before it by name
}

/** The best set of fixes is looked for, with a forecast, until that is cancelled. To its end takes minutes. */
export async function searching(session) {
  const { window, page } = session;
  const text = fs.readFileSync(session.script, "utf8");
  await page.locator(".pane-header", { hasText: "Results" }).first().hover();
  await page.locator(".pane-header a[aria-label^='Find and Apply the Best Set']").first().click();
  const bar = session.toast("Searching for the best set of fixes");
  await window.until("the search says how far it is", async () => /: \d+ % · \w/.test((await bar.innerText().catch(() => "")).replace(/\s+/g, " ")));
  await window.until("the script runs", () => session.targets().length > 0);
  await window.look("searching");
  await window.until("the search is cancelled", async () => {
    await bar.hover({ timeout: 10_000 }).catch(() => {});
    await bar.getByRole("button", { name: "Cancel" }).click({ timeout: 10_000 }).catch(() => {});
    return (await bar.count()) === 0;
  });
  await window.until("the script is ended", () => session.targets().length === 0);
  window.expect("nothing was changed", fs.readFileSync(session.script, "utf8") === text);
}

export async function comparing(session) {
  const { window, page, quick, listed } = session;
  const known = session.finishedRuns();
  olderRun(session.runs, known.at(-1));
  await window.until("the older run is listed", async () => (await listed.count()) === known.length + 1);
  await window.until("the lens says what changed", async () => (await session.lenses()).some((title) => /\(10\.00?x, was/.test(title)));
  const plain = await session.settledHints();

  // With the run before, in a list and in the hints.
  const rows = await window.quickInput("F1", ">Warpline: Compare with Previous Run");
  await rows.filter({ hasText: "Compare with Previous Run" }).first().click();
  await window.until("the comparison names both steps and the gain", async () =>
    / → [\d.]+ m?s a step: 10\.00?x/.test(await quick.innerText().catch(() => "")));
  await page.keyboard.press("Escape");
  await quick.waitFor({ state: "hidden" });
  await window.until("every hint says the difference", async () => {
    const found = Object.values(await session.hints());
    return found.length > 0 && found.every((text) => / · -[\d.]+ m?s$/.test(text));
  });
  await window.command("Warpline: Hide the Difference in the Hints");
  await session.hintsAre("the hints say only the times again", plain);

  // The older run is shown, and then the newest one again.
  await listed.nth(1).click();
  const [line, text] = Object.entries(plain)[0];
  const share = (hint) => hint?.split(" · ")[1];
  await window.until("the hints are those of the older run", async () => {
    const found = (await session.hints())[line];
    return found !== undefined && found !== text && share(found) === share(text);
  });
  await listed.nth(0).click();
  await window.until("the hints are those of the newest run", async () => (await session.hints())[line] === text);
}

/** Two runs that are selected in their view, the newer one first: the older one counts as before. */
export async function comparingSelected(session) {
  const { window, page, quick, listed } = session;
  const plain = await session.settledHints();
  await listed.nth(0).click();
  await listed.nth(1).click({ modifiers: ["Control"] });
  await listed.nth(1).click({ button: "right" });
  // A menu that has just opened drops clicks, so the keyboard chooses.
  await page.locator(".monaco-menu .action-label", { hasText: "Compare the Two Selected Runs" }).hover();
  await page.keyboard.press("Enter");
  await window.until("the comparison has the older run first", async () =>
    / → [\d.]+ m?s a step: 10\.00?x/.test(await quick.innerText().catch(() => "")));
  await window.look("selected");
  await page.keyboard.press("Escape");
  await quick.waitFor({ state: "hidden" });
  await window.until("the hints say the difference", async () => Object.values(await session.hints()).some((text) => / · -[\d.]+ m?s$/.test(text)));
  await window.command("Warpline: Hide the Difference in the Hints");
  await session.hintsAre("and only the times again", plain);
}

/** The arguments can be seen and changed; a run with others is not compared with those before. */
export async function otherArguments(session) {
  const { window, page, quick } = session;
  const lens = page.locator(".editor-group-container.active .codelens-decoration a", { hasText: "Arguments…" });
  await lens.first().click();
  await window.until("the arguments are asked for", async () => (await quick.innerText().catch(() => "")).includes("Arguments of train.py"));
  await quick.locator("input.input").fill("--name 'a b'");
  const before = session.finishedRuns().length;
  await page.keyboard.press("Enter");
  await session.toast("Profiling train.py").waitFor();
  await window.until("the profile with arguments is finished", async () => session.finishedRuns().length === before + 1 && (await session.toast("Profiling").count()) === 0);
  window.expect("it ran with what was typed", JSON.stringify(session.newest("report.json").argv) === '["--name","a b"]');
  await session.dismiss(session.toast("a step,"));
  await window.until("the lens says the arguments", async () => (await session.lenses()).some((title) => title === "Profile this file (--name a b)"));
  window.expect("no run before is compared with it", !(await session.lenses()).some((title) => /, was/.test(title)));
  await window.until("nor is one offered", async () => !(await session.offers("Compare with Previous Run")));

  // Over the results, whatever file is open, the last arguments are there to be changed.
  await window.openFile("data.py");
  await page.locator(".pane-header", { hasText: "Results" }).first().hover();
  await page.locator(".pane-header a[aria-label^='Profile Again with Other Arguments']").first().click();
  await window.until("they are in the box", async () => (await quick.locator("input.input").inputValue().catch(() => "")) === "--name 'a b'");
  await window.picture("vscode-arguments");
  await page.keyboard.press("Escape");
  await quick.waitFor({ state: "hidden" });
  await window.openFile("train.py");
}

/** With an interpreter that was chosen, what only VS Code knows, and as a module of a package. */
export async function launching(session) {
  const { window, page, workspace, quick, python } = session;
  fs.symlinkSync(path.dirname(path.dirname(python)), path.join(workspace, "env"));
  fs.mkdirSync(path.join(workspace, "package"));
  fs.writeFileSync(path.join(workspace, "package", "__init__.py"), "");
  fs.copyFileSync(session.script, path.join(workspace, "package", "fit.py"));
  fs.mkdirSync(path.join(workspace, ".vscode"), { recursive: true });
  fs.writeFileSync(path.join(workspace, ".vscode", "launch.json"), JSON.stringify({
    version: "0.2.0",
    configurations: [
      { name: "Fit", type: "debugpy", request: "launch", module: "package.fit", args: ["--epochs", "${input:epochs}", "${input:installed}"] },
      { name: "Unknown", type: "debugpy", request: "launch", program: "train.py", args: ["${command:no.such.command}"] },
      { name: "Ranks", type: "debugpy", request: "launch", module: "torch.distributed.run", args: ["--standalone", "--nproc-per-node", "1", "train.py", "--ranks", "1"] },
      { name: "Attach", type: "debugpy", request: "attach" },
    ],
    inputs: [
      { id: "epochs", type: "promptString", description: "How many epochs", default: "2" },
      { id: "installed", type: "command", command: "_remoteCLI.manageExtensions", args: { list: { showVersions: false } } },
    ],
  }));

  // The interpreter, typed with a variable, is a setting of the workspace.
  const choice = await window.quickInput("F1", ">Warpline: Choose Interpreter");
  await choice.filter({ hasText: "Choose Interpreter" }).first().click();
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Type a path" }).click();
  await window.until("a path is asked for", async () => (await quick.innerText().catch(() => "")).includes("relative to the folder"));
  await quick.locator("input.input").fill("${workspaceFolder}/env/bin/python");
  await page.keyboard.press("Enter");
  const settings = path.join(workspace, ".vscode", "settings.json");
  await window.until("the setting is written", () => fs.existsSync(settings) && fs.readFileSync(settings, "utf8").includes("${workspaceFolder}/env/bin/python"));

  const pick = async (name) => {
    await window.until("launch configurations can be profiled", () => session.offers("Profile a Launch Configuration"));
    const rows = await window.quickInput("F1", ">Warpline: Profile a Launch Configuration");
    await rows.filter({ hasText: "Profile a Launch Configuration" }).first().click();
    const row = page.locator(".quick-input-list .monaco-list-row", { hasText: name });
    await row.waitFor();
    window.expect("one that attaches is not offered", (await page.locator(".quick-input-list .monaco-list-row").count()) === 3);
    await row.click();
  };
  await pick("Unknown");
  const refused = session.toast("no.such.command");
  await refused.waitFor();
  await window.look("refused");
  await session.dismiss(refused);

  const before = session.finishedRuns().length;
  await pick("Fit");
  await window.until("VS Code asks for the input", async () => (await quick.innerText().catch(() => "")).includes("How many epochs"));
  await quick.locator("input.input").fill("7");
  await page.keyboard.press("Enter");
  await session.toast("Profiling Fit").waitFor();
  await window.until("the launched profile is finished", async () => session.finishedRuns().length === before + 1 && (await session.toast("Profiling").count()) === 0);
  const { request } = session.newest("manifest.json");
  const { argv } = session.newest("report.json");
  window.log("launched", JSON.stringify({ ...request, argv }));
  window.expect("it ran with what was typed and what the command gave", argv[1] === "7" && /warpline/.test(argv[2]));
  window.expect("with the interpreter that was chosen", request.python === path.join(workspace, "env", "bin", "python"));
  window.expect("as a module", request.module && request.target === "package.fit");
  await session.dismiss(session.toast("a step,"));

  // What starts torchrun is profiled through it: its options are the launcher's, the rest the script's.
  const earlier = session.finishedRuns().length;
  await pick("Ranks");
  await session.toast("Profiling Ranks").waitFor();
  await window.until("the profile under torchrun is finished", async () => session.finishedRuns().length === earlier + 1 && (await session.toast("Profiling").count()) === 0);
  const ranks = session.newest("manifest.json");
  window.log("under torchrun", JSON.stringify(ranks.request));
  window.expect("torchrun is the launcher, by the interpreter that was chosen", ranks.request.launcher.join(" ") ===
    `${path.join(workspace, "env", "bin", "python")} -m torch.distributed.run --standalone --nproc-per-node 1`);
  window.expect("of the script with its own arguments", ranks.script === session.script && ranks.argv.join(" ") === "--ranks 1");
  await session.dismiss(session.toast("a step,"));

  // Once more, from over the results: as it was made, by the same launcher.
  await page.locator(".pane-header", { hasText: "Results" }).first().hover();
  await page.locator(".pane-header a[aria-label^='Profile Again']:not([aria-label*='Other'])").first().click();
  await window.until("the repeated profile is finished", async () => session.finishedRuns().length === earlier + 2 && (await session.toast("Profiling").count()) === 0);
  const repeated = session.newest("manifest.json");
  window.expect("by the same launcher, with the same arguments", JSON.stringify(repeated.request) === JSON.stringify(ranks.request));
  await session.dismiss(session.toast("a step,"));
  await window.openFile("train.py");
  await window.until("the lens names the launcher", async () => {
    const titles = await session.lenses();
    return titles.some((title) => /^Profile this file with torchrun --standalone .*\(--ranks 1\)$/.test(title)) && titles.includes("Without torchrun");
  });
  await window.until("it can be compared with the one before", () => session.offers("Compare with Previous Run"));
  await page.mouse.move(700, 790);
  await window.look("torchrun");

  // The button runs it as a module with these arguments from now on, and train.py keeps its own results.
  await window.openFile("fit.py");
  await window.until("the lens says what a click runs", async () => (await session.lenses()).some((title) => title.startsWith("Profile module package.fit (--epochs 7 ")));
  await window.until("a run that is the only one of its kind is not compared", async () => !(await session.offers("Compare with Previous Run")));
  await window.openFile("train.py");
  await window.until("train.py keeps its results", async () => Object.keys(await session.hints()).length > 0);
  // Of its runs without arguments, below those with them, the newest has one before it; a click on the lens runs it so.
  await session.listed.nth(4).click();
  await window.until("an older run is shown, and the lens says what a click runs now", async () => (await session.lenses()).includes("Profile this file"));
  await window.until("it is compared with its own runs", () => session.offers("Compare with Previous Run"));
}
