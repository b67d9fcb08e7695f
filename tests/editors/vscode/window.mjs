// Real VS Code: code-server with a fresh profile, shown in Chromium and driven as a person would.
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { spawn, spawnSync } from "node:child_process";
import { chromium } from "playwright-core";

/** Every wait is for a state, and this long at most: a build machine may be very slow. */
export const LIMIT_MS = 1_000 * Number(process.env.WARPLINE_LIMIT_S ?? 120);

const QUIET = {
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.enableExperiments": false,
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "chat.disableAIFeatures": true,
  "chat.commandCenter.enabled": false,
  "git.enabled": false,
  "editor.minimap.enabled": false,
  "editor.hover.delay": 150,
  "security.workspace.trust.startupPrompt": "always",
  "window.confirmBeforeClose": "never",
  "files.hotExit": "off",
};

function freePort() {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

export class Window {
  /** codeServer, vsix, out (an empty folder), workspace (used as it is), settings, env (on top of ours, or with `bare` all of it), pictures and looks (folders), onlyPictures */
  static async open(options) {
    const window = new Window(options);
    try {
      await window.#start();
    } catch (error) {
      await window.close(error);
      throw error;
    }
    return window;
  }

  constructor(options) {
    this.options = options;
    this.began = Date.now();
    this.console = [];
  }

  log(...words) {
    console.log(`[${((Date.now() - this.began) / 1000).toFixed(1).padStart(6)}]`, ...words);
  }

  async #start() {
    const { codeServer, vsix, out, workspace, settings, env } = this.options;
    const folder = (name) => {
      const made = path.join(out, name);
      fs.mkdirSync(made, { recursive: true });
      return made;
    };
    const data = path.join(out, "data");
    // Settings of scope machine are read from Machine/ only, the others from User/ only.
    for (const scope of ["User", "Machine"]) {
      fs.writeFileSync(path.join(folder(`data/${scope}`), "settings.json"), JSON.stringify({ ...QUIET, ...settings }));
    }
    const home = folder("home");
    const environment = { ...(this.options.bare ? {} : process.env), HOME: home, ...env };
    for (const name of ["CONFIG", "DATA", "CACHE"]) environment[`XDG_${name}_HOME`] = folder(`home/${name}`);
    for (const name of Object.keys(environment)) if (/^(VSCODE_|npm_|ELECTRON_)/.test(name)) delete environment[name];
    const common = ["--config", path.join(out, "config.yaml"), "--user-data-dir", data, "--extensions-dir", folder("extensions")];

    const install = spawnSync(codeServer, [...common, "--install-extension", vsix], { env: environment, encoding: "utf8" });
    if (install.status !== 0) throw new Error(`installing the .vsix failed: ${install.stdout}${install.stderr}`);
    this.log("the .vsix is installed");

    const port = await freePort();
    const output = fs.openSync(path.join(out, "code-server.log"), "w");
    this.process = spawn(
      codeServer,
      [...common, "--bind-addr", `127.0.0.1:${port}`, "--auth", "none", "--disable-telemetry", "--disable-update-check",
        "--disable-getting-started-override", "--ignore-last-opened"],
      { env: environment, stdio: ["ignore", output, output], detached: true },
    );
    await this.until("code-server answers", async () => {
      if (this.process.exitCode !== null) throw new Error("code-server ended; see code-server.log");
      const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null);
      return answer?.ok;
    });

    this.context = await chromium.launchPersistentContext(folder("chromium"), {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      viewport: { width: 1400, height: 860 },
      locale: "en-US",
      timeout: LIMIT_MS,
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
    });
    this.page = this.context.pages()[0] ?? (await this.context.newPage());
    this.page.setDefaultTimeout(LIMIT_MS);
    this.page.on("console", (message) => this.console.push(`${message.type()}: ${message.text()}`));
    this.page.on("pageerror", (error) => this.console.push(`pageerror: ${error}`));
    await this.page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(workspace)}`, { timeout: LIMIT_MS });
    await this.#workbench();
  }

  async #workbench() {
    await this.page.locator(".monaco-workbench .part.editor").waitFor();
    await this.page.locator(".part.statusbar .statusbar-item").first().waitFor();
    this.log("the workbench is there");
  }

  /** End everything that was started; with an error, leave the screen and the console behind. */
  async close(error) {
    const { out } = this.options;
    if (error !== undefined) {
      await this.page?.screenshot({ path: path.join(out, "failure.png") }).catch(() => {});
      fs.writeFileSync(path.join(out, "console.log"), this.console.join("\n"));
    }
    await this.context?.close().catch(() => {});
    if (this.process !== undefined && this.process.exitCode === null) {
      const ended = new Promise((resolve) => this.process.once("exit", resolve));
      process.kill(-this.process.pid, "SIGTERM");
      const kill = setTimeout(() => process.kill(-this.process.pid, "SIGKILL"), 20_000);
      await ended;
      clearTimeout(kill);
    }
  }

  /** Wait until `state()` is something, and return it. */
  async until(what, state, limit = LIMIT_MS) {
    const end = Date.now() + limit;
    for (;;) {
      const value = await state();
      if (value) {
        this.log("ok  ", what);
        return value;
      }
      if (Date.now() > end) throw new Error(`never came: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  expect(what, truth) {
    if (!truth) throw new Error(`not so: ${what}`);
    this.log("ok  ", what);
  }

  /** What the extension host has written to its log. */
  extensionLog() {
    const logs = path.join(this.options.out, "data", "logs");
    const files = fs.existsSync(logs) ? fs.readdirSync(logs, { recursive: true }) : [];
    const wanted = files.filter((file) => path.basename(file) === "remoteexthost.log");
    return wanted.map((file) => fs.readFileSync(path.join(logs, file), "utf8")).join("\n");
  }

  async reload() {
    await this.page.reload({ timeout: LIMIT_MS });
    await this.#workbench();
  }

  /** The end of a session that was only to make the documentation's pictures, and has made all of them. */
  async enough() {
    if (!this.options.onlyPictures) return;
    await this.close();
    process.exit(0);
  }

  /** A picture that no page of the documentation has. */
  async look(name) {
    if (this.options.looks !== undefined) await this.picture(name);
  }

  async picture(name) {
    if (this.options.pictures === undefined) return;
    const fading = this.page.locator(".notification-toast:not(.notification-fade-in-done)");
    await this.until("notifications have faded in", async () => (await fading.count()) === 0);
    await this.page.waitForTimeout(1_000); // so does a hover
    await this.page.screenshot({ path: path.join(this.options.pictures, `${name}.png`) });
  }

  async quickInput(key, text) {
    const input = this.page.locator(".quick-input-widget:visible input.input");
    await this.until(`${key} opened its box`, async () => {
      if (!(await input.isVisible())) {
        await this.page.keyboard.press(key);
        await input.waitFor({ timeout: 5_000 }).catch(() => {});
      }
      return input.fill(text, { timeout: 3_000 }).then(() => true, () => false); // false: an earlier one was closing
    });
    return this.page.locator(".quick-input-list .monaco-list-row");
  }

  /** Open a file of the workspace by its name. */
  async openFile(name) {
    await this.until(`${name} is found`, async () => {
      const rows = await this.quickInput("Control+P", name);
      // Not Enter: the first row may still be one of the list before the name was typed. A file that was made a moment
      // ago is only found by a search that begins anew.
      const opened = await rows.filter({ hasText: name }).first().click({ timeout: 5_000 }).then(() => true, () => false);
      if (!opened) await this.page.keyboard.press("Escape");
      await this.page.locator(".quick-input-widget:visible input.input").waitFor({ state: "hidden" });
      return opened;
    });
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
    await this.page.locator(".editor-group-container.active .monaco-editor .view-line").first().waitFor();
  }

  /** Run a command of the palette by its exact title. */
  async command(title) {
    await this.until(`${title} is run`, async () => {
      const rows = await this.quickInput("F1", `>${title}`);
      const row = rows.filter({ has: this.page.locator(".label-name", { hasText: title }) }).first();
      // The list is made when the box opens: a command that is there only with results may have come since.
      const ran = await row.click({ timeout: 10_000 }).then(() => true, () => false);
      if (!ran) await this.page.keyboard.press("Escape");
      await this.page.locator(".quick-input-widget:visible input.input").waitFor({ state: "hidden" });
      return ran;
    });
  }

  /** Put the cursor at the end of a line (1-based) and bring it into view. */
  async goto(line) {
    await this.quickInput("Control+G", `:${line}:1`);
    await this.page.keyboard.press("Enter");
    await this.page.locator(".quick-input-widget:visible input.input").waitFor({ state: "hidden" });
    await this.page.keyboard.press("End");
  }

  /** The lines on screen as they are drawn: [{ number, text, top, height }], hints included in the text. */
  async lines() {
    return this.page.evaluate(() => {
      const editor = [...document.querySelectorAll(".editor-group-container.active .monaco-editor")].find((e) => e.offsetParent);
      if (editor === undefined) return [];
      const numbers = new Map();
      for (const number of editor.querySelectorAll(".margin-view-overlays .line-numbers")) {
        numbers.set(Math.round(number.getBoundingClientRect().top), Number(number.textContent));
      }
      return [...editor.querySelectorAll(".view-lines > .view-line")]
        .map((line) => {
          const { top, height } = line.getBoundingClientRect();
          const text = line.textContent.replace(/\u00a0/g, " ").replace(/[\u200b\u200c]/g, "");
          return { number: numbers.get(Math.round(top)), text, top: Math.round(top), height };
        })
        .sort((a, b) => a.top - b.top);
    });
  }

  /** The marks in the glyph margin: [{ top, image }], top in the same measure as lines() has it. */
  async marks() {
    return this.page.evaluate(() => {
      const editor = [...document.querySelectorAll(".editor-group-container.active .monaco-editor")].find((e) => e.offsetParent);
      return [...(editor?.querySelectorAll(".cgmr") ?? [])]
        .map((mark) => ({
          top: Math.round(mark.getBoundingClientRect().top),
          image: getComputedStyle(mark).backgroundImage + getComputedStyle(mark, "::before").content,
        }))
        .filter(({ image }) => image.includes("data:image/svg"));
    });
  }

  /** The text of the hover over the first word of a line (1-based) that is on screen. */
  async hover(number) {
    const widget = this.page.locator(".monaco-editor .monaco-hover:visible, .monaco-editor-hover:visible").first();
    return this.until(`the hover over line ${number}`, async () => {
      await this.page.mouse.move(700, 5);
      const line = (await this.lines()).find((shown) => shown.number === number);
      if (line === undefined) return undefined;
      const end = await this.page.evaluate((top) => {
        const lines = [...document.querySelectorAll(".editor-group-container.active .view-lines > .view-line")];
        const here = lines.find((shown) => Math.round(shown.getBoundingClientRect().top) === top);
        const word = [...(here?.querySelectorAll("span > span") ?? [])].find((span) => /\w/.test(span.textContent));
        return word?.getBoundingClientRect().right;
      }, line.top);
      if (end === undefined) return undefined;
      await this.page.mouse.move(end - 4, line.top + line.height / 2, { steps: 4 });
      await widget.waitFor({ timeout: 10_000 }).catch(() => {});
      const shown = (await widget.isVisible()) ? (await widget.innerText()).trim() : "";
      return shown !== "" && !/^Loading/.test(shown) ? shown : undefined;
    });
  }

  /** Open the menu of the light bulb on the line of the cursor; resolves to the titles in it. */
  async lightbulb() {
    const rows = this.page.locator(".action-widget:not(.action-list-submenu-panel) .monaco-list-row.action");
    const bulb = this.page.locator(".editor-group-container.active .lightBulbWidget, .editor-group-container.active [class*=codicon-gutter-lightbulb]").first();
    await this.until("the light bulb's menu", async () => {
      await bulb.waitFor({ timeout: 10_000 }).catch(() => {});
      if (await bulb.isVisible()) await bulb.click({ timeout: 5_000 }).catch(() => {});
      await rows.first().waitFor({ timeout: 5_000 }).catch(() => {});
      return (await rows.count()) > 0;
    });
    return (await rows.allInnerTexts()).map((title) => title.trim());
  }

  /** Choose in the open menu by keyboard: in VS Code 1.100 a pointer block lies over it. */
  async choose(start) {
    const focused = this.page.locator(".action-widget:not(.action-list-submenu-panel) .monaco-list-row.action.focused");
    for (let tries = 0; tries < 60; tries++) {
      const title = (await focused.count()) > 0 ? (await focused.first().innerText()).trim() : "";
      if (title.startsWith(start)) {
        await this.page.keyboard.press("Enter");
        return title;
      }
      await this.page.keyboard.press("ArrowDown");
      await this.page.waitForTimeout(50);
    }
    throw new Error(`not in the menu: ${start}`);
  }
}
