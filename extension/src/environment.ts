// The server's Python. A .vsix of a platform carries the server's packages, and any Python they fit runs it. Else it gets
// a virtual environment in the extension's storage, from the package index; or the user names an interpreter that has it.
import { existsSync } from "node:fs";
import * as fs from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import * as interpreter from "./interpreter";

/** How `warpline` is started: its arguments follow `args`. */
export interface Program {
  python: string;
  args: string[];
}

/** What starts the server, made if `install` says so; undefined where it is not there. Rejects with a message that a
 *  user can act on. */
export async function program(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, install: boolean): Promise<Program | undefined> {
  const named = vscode.workspace.getConfiguration("warpline").get<string>("server.python", "");
  if (named === "") {
    const python = (await fitting(context)) ?? (await own(context, log, install));
    // -I: what the user's PYTHONPATH and site-packages have is not for the server.
    return python === undefined ? undefined : { python, args: ["-I", context.asAbsolutePath("extension/start.py")] };
  }
  await interpreter.run(named, ["-c", "import warpline"]).catch((error: unknown) => {
    throw new Error(`${named} (setting warpline.server.python) has no Warpline: ${message(error)}`);
  });
  return { python: named, args: ["-m", "warpline"] };
}

/** `warpline` in the terminals of this window: a command of one line that starts the server's Python. */
export async function onTerminalPath(context: vscode.ExtensionContext, { python, args }: Program): Promise<void> {
  const folder = path.join(context.globalStorageUri.fsPath, "bin");
  await fs.mkdir(folder, { recursive: true });
  if (process.platform === "win32") {
    const words = [python, ...args].map((word) => `"${word}"`).join(" ");
    await fs.writeFile(path.join(folder, "warpline.cmd"), `@${words} %*\r\n`);
  } else {
    const words = [python, ...args].map((word) => `'${word.replaceAll("'", `'"'"'`)}'`).join(" ");
    await fs.writeFile(path.join(folder, "warpline"), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
  }
  context.environmentVariableCollection.description = "Adds the `warpline` command.";
  context.environmentVariableCollection.append("PATH", path.delimiter + folder);
}

/** A Python that the packages in the .vsix fit: their compiled modules have its version and platform in their names. */
async function fitting(context: vscode.ExtensionContext): Promise<string | undefined> {
  const libs = context.asAbsolutePath("bundled/libs");
  if (!existsSync(libs)) return undefined;
  const fits = "import os, sys, sysconfig as s; sys.exit(not os.path.exists(sys.argv[1] + s.get_config_var('EXT_SUFFIX')))";
  return interpreter.first(["-I", "-c", fits, path.join(libs, "msgspec", "_core")]);
}

async function own(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, install: boolean): Promise<string | undefined> {
  const wanted = await fs.readFile(context.asAbsolutePath("dist/requirements.txt"), "utf8");
  const folder = path.join(context.globalStorageUri.fsPath, "server");
  const executable = inside(folder);
  const present = await fs.readFile(path.join(folder, "requirements.txt"), "utf8").catch(() => undefined);
  if (present === wanted && existsSync(executable)) return executable;
  if (!install) return undefined;
  await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: "Warpline: installing its server (once)", cancellable: true },
    (progress, token) => make(folder, wanted, log, progress, token),
  );
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
  const base = await interpreter.first(["-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"]);
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

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
