// The server's environment. LibCST is compiled, so no .vsix can carry the server for every platform: on first
// start it gets a virtual environment in the extension's storage, unless the user names an interpreter that has it.
import { existsSync } from "node:fs";
import * as fs from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import * as interpreter from "./interpreter";

/** The Python that has the server, made if `install` says so; undefined where it is not there. Rejects with a message
 *  that a user can act on. */
export async function python(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, install: boolean): Promise<string | undefined> {
  const named = vscode.workspace.getConfiguration("warpline").get<string>("server.python", "");
  if (named === "") return own(context, log, install);
  await interpreter.run(named, ["-c", "import warpline"]).catch((error: unknown) => {
    throw new Error(`${named} (setting warpline.server.python) has no Warpline: ${message(error)}`);
  });
  return named;
}

/** `warpline` in the terminals of this window: a command of two lines that starts the server's Python. */
export async function onTerminalPath(context: vscode.ExtensionContext, executable: string): Promise<void> {
  const folder = path.join(context.globalStorageUri.fsPath, "bin");
  // Not -m: that would look for modules in the current folder first.
  const start = "import sys; sys.path[:] = [p for p in sys.path if p]; from warpline.__main__ import main; sys.exit(main())";
  await fs.mkdir(folder, { recursive: true });
  if (process.platform === "win32") await fs.writeFile(path.join(folder, "warpline.cmd"), `@"${executable}" -c "${start}" %*\r\n`);
  else await fs.writeFile(path.join(folder, "warpline"), `#!/bin/sh\nexec '${executable}' -c '${start}' "$@"\n`, { mode: 0o755 });
  context.environmentVariableCollection.description = "Adds the `warpline` command.";
  context.environmentVariableCollection.append("PATH", path.delimiter + folder);
}

async function own(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, install: boolean): Promise<string | undefined> {
  const wanted = await fs.readFile(context.asAbsolutePath("dist/requirements.txt"), "utf8");
  const folder = path.join(context.globalStorageUri.fsPath, "server");
  const executable = inside(folder);
  const present = await fs.readFile(path.join(folder, "requirements.txt"), "utf8").catch(() => undefined);
  if (present !== wanted || !existsSync(executable)) {
    if (!install) return undefined;
    await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: "Warpline: installing its server (once)", cancellable: true },
      (progress, token) => make(folder, wanted, log, progress, token),
    );
  }
  // The sources stay in the extension; the environment only knows where they are. PYTHONPATH would reach the
  // user's scripts too.
  const packages = await sitePackages(folder);
  await fs.writeFile(path.join(packages, "warpline.pth"), context.asAbsolutePath("server") + "\n");
  return executable;
}

/** Make the environment beside its place and move it there when it is complete. */
async function make(
  folder: string,
  requirements: string,
  log: vscode.LogOutputChannel,
  progress: vscode.Progress<{ message?: string }>,
  token: vscode.CancellationToken,
): Promise<void> {
  const base = await interpreter.forServer();
  if (base === undefined) throw new Error("its server needs Python 3.10 or newer with venv, and none was found on PATH");
  const building = `${folder}-${process.pid}`;
  const say = (line: string): void => {
    log.info(line);
    progress.report({ message: line.slice(0, 80) });
  };
  try {
    await fs.mkdir(building, { recursive: true });
    const list = path.join(building, "requirements.txt");
    await fs.writeFile(list, requirements);
    say(`making an environment with ${base}`);
    await interpreter.run(base, ["-m", "venv", building], say, token);
    const install = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r", list];
    await interpreter.run(inside(building), install, say, token);
    await fs.rm(folder, { recursive: true, force: true });
    await fs.rename(building, folder);
  } finally {
    await fs.rm(building, { recursive: true, force: true });
  }
}

function inside(folder: string): string {
  return process.platform === "win32" ? path.join(folder, "Scripts", "python.exe") : path.join(folder, "bin", "python");
}

async function sitePackages(folder: string): Promise<string> {
  if (process.platform === "win32") return path.join(folder, "Lib", "site-packages");
  const [version] = (await fs.readdir(path.join(folder, "lib"))).filter((name) => name.startsWith("python"));
  return path.join(folder, "lib", version ?? "python3", "site-packages");
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
