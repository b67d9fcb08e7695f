// What a session looks at: the workspace's runs, the processes, and what Warpline shows in the window.
import fs from "node:fs";
import path from "node:path";

/** The processes that `is` says yes to, asked with the path of each in /proc. */
function processes(is) {
  return fs.readdirSync("/proc").filter((id) => {
    try {
      return /^\d+$/.test(id) && is(`/proc/${id}`);
    } catch {
      return false; // it ended meanwhile, or is not ours to look at
    }
  });
}

export class Session {
  constructor(window, { workspace, out, settings }) {
    this.window = window;
    this.page = window.page;
    this.workspace = workspace;
    this.out = out;
    this.python = settings["warpline.python"];
    this.script = path.join(workspace, "train.py");
    this.runs = path.join(workspace, ".warpline", "runs");
    this.titleButton = this.page.locator(".editor-group-container.active .editor-actions a[aria-label^='Profile This File']");
    this.quick = this.page.locator(".quick-input-widget:visible");
    /** Of the view of results, where that is shown. */
    this.tree = this.page.locator(".pane-body .monaco-list-row");
    /** Of the view of runs. */
    this.listed = this.page.locator(".pane", { has: this.page.locator("h3.title", { hasText: /^Runs$/i }) }).locator(".monaco-list-row");
  }

  /** The server of this session: it has this session's home in its environment. */
  servers() {
    return processes((at) => /\0(-m\0warpline|[^\0]*\/start\.py)\0server\0/.test(fs.readFileSync(`${at}/cmdline`, "utf8")) &&
      fs.readFileSync(`${at}/environ`, "utf8").includes(`HOME=${this.out}/`));
  }

  /** The processes that run the script. */
  targets() {
    return processes((at) => fs.readlinkSync(`${at}/cwd`) === this.workspace && fs.readFileSync(`${at}/cmdline`, "utf8").includes("/capture/runner/"));
  }

  finishedRuns() {
    if (!fs.existsSync(this.runs)) return [];
    return fs.readdirSync(this.runs).filter((name) => fs.existsSync(path.join(this.runs, name, "report.json"))).sort();
  }

  /** A part of the newest run. */
  newest(part) {
    return JSON.parse(fs.readFileSync(path.join(this.runs, this.finishedRuns().at(-1), part), "utf8"));
  }

  /** `text`: a string, or a regular expression. */
  toast(text) {
    return this.page.locator(".notifications-toasts .notification-list-item", { hasText: text });
  }

  /** Put a notification away. */
  async dismiss(toast) {
    await toast.hover();
    await toast.locator(".codicon-notifications-clear").first().click();
    await toast.waitFor({ state: "hidden" });
  }

  lenses() {
    return this.page.locator(".editor-group-container.active .codelens-decoration a").allInnerTexts();
  }

  async rows() {
    return (await this.tree.allInnerTexts()).map((text) => text.replace(/\s+/g, " "));
  }

  /** What stands behind the source text on each line that has a hint: { 24: "12.4 ms · 38 %" } */
  async hints(script = this.script) {
    const source = fs.readFileSync(script, "utf8").split("\n");
    const found = {};
    for (const { number, text } of await this.window.lines()) {
      const written = source[number - 1];
      if (written !== undefined && text.startsWith(written) && / m?s · .*%/.test(text)) found[number] = text.slice(written.length).trim();
    }
    return found;
  }

  /** The hints once they have stood still for a second: a file that was just opened may have none yet, or only some. */
  async settledHints() {
    let [last, since] = ["", Date.now()];
    return this.window.until("the hints stand still", async () => {
      const found = await this.hints();
      const words = JSON.stringify(found);
      if (words !== last) [last, since] = [words, Date.now()];
      return words !== "{}" && Date.now() - since > 1_000 ? found : undefined;
    });
  }

  /** Wait until the hints are `wanted`; the error says what they were instead. */
  async hintsAre(what, wanted) {
    let found;
    const same = async () => JSON.stringify((found = await this.hints())) === JSON.stringify(wanted);
    await this.window.until(what, same).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
    });
  }

  /** The numbers of the lines that have a bar in the margin. */
  async heat() {
    const marks = await this.window.marks();
    const lines = await this.window.lines();
    return lines.filter(({ top, height }) => marks.some((mark) => Math.abs(mark.top - top) < height / 2)).map(({ number }) => number);
  }

  /** Whether the palette has a command of ours. Only the rows in view are drawn: so it is asked for by its title. */
  async offers(title) {
    const rows = await this.window.quickInput("F1", `>Warpline: ${title}`);
    const found = await rows.filter({ hasText: title }).first().waitFor({ timeout: 2_000 }).then(() => true, () => false);
    await this.page.keyboard.press("Escape");
    await this.quick.waitFor({ state: "hidden" });
    return found;
  }

  /** The settings of the workspace, which VS Code reads again when they are written. */
  settings(values) {
    const folder = path.join(this.workspace, ".vscode");
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(folder, "settings.json"), JSON.stringify(values));
  }
}
