// Which Python: the one that runs the user's scripts, and candidates for the server's own environment.
import { spawn } from "node:child_process";
import * as path from "node:path";
import * as vscode from "vscode";

interface PythonExtension {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
  };
}

/** The interpreter chosen in the Python extension for this file; undefined when there is no such choice. */
async function chosenInPythonExtension(resource?: vscode.Uri): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  if (extension === undefined) return undefined;
  const { environments } = await extension.activate();
  const environment = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(resource));
  return environment?.executable.uri?.fsPath;
}

/** What runs the user's script. Undefined leaves the choice to the server, which looks for the folder's environment. */
export async function forScripts(resource?: vscode.Uri): Promise<string | undefined> {
  const named = vscode.workspace.getConfiguration("warpline", resource).get<string>("python", "");
  return named !== "" ? undefined : chosenInPythonExtension(resource).catch(() => undefined);
}

/** Choose the interpreter that runs scripts: in the Python extension where it is there, else as a path, also on a
 *  remote machine, where the dialog shows that machine's files. */
export async function choose(resource?: vscode.Uri): Promise<void> {
  const configuration = vscode.workspace.getConfiguration("warpline", resource);
  const python = vscode.extensions.getExtension("ms-python.python");
  const [extension, browse, type] = ["Choose in the Python extension", "Browse…", "Type a path…"];
  const choices = python === undefined ? [browse, type] : [extension, browse, type];
  const choice = await vscode.window.showQuickPick(choices, { title: "Interpreter that runs your scripts (it needs torch)" });
  if (choice === extension) {
    await python?.activate();
    await configuration.update("python", undefined, target());
    await vscode.commands.executeCommand("python.setInterpreter");
    return;
  }
  let executable: string | undefined;
  if (choice === browse) executable = (await vscode.window.showOpenDialog({ title: "Python interpreter", canSelectMany: false }))?.[0]?.fsPath;
  if (choice === type) {
    const prompt = "Absolute, relative to the folder, or with ${workspaceFolder}";
    executable = await vscode.window.showInputBox({ title: "Python interpreter", prompt, value: configuration.get<string>("python", "") });
  }
  if (executable !== undefined && executable !== "") await configuration.update("python", executable, target());
}

function target(): vscode.ConfigurationTarget {
  return vscode.workspace.workspaceFolders === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
}

/** The first interpreter in which `test`, its command line, ends with status 0: of those that the user is likely to have. */
export async function first(test: string[]): Promise<string | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const environments = folders.flatMap(({ uri }) => [".venv", "venv"].map((name) => path.join(uri.fsPath, name, "bin", "python")));
  const named = vscode.workspace.getConfiguration("warpline").get<string>("python", "");
  const chosen = await chosenInPythonExtension().catch(() => undefined);
  const names = ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];
  for (const candidate of [chosen, ...names, ...(path.isAbsolute(named) ? [named] : []), ...environments]) {
    if (candidate === undefined) continue;
    const failure: unknown = await run(candidate, test).catch((error: unknown) => error);
    if (failure === undefined) return candidate;
  }
  return undefined;
}

/** Run a program to its end; rejects with the last line it wrote when it fails or cannot be started. */
export function run(
  program: string,
  args: string[],
  onLine: (line: string) => void = () => undefined,
  token?: vscode.CancellationToken,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    const cancelled = token?.onCancellationRequested(() => child.kill());
    let last = "";
    const read = (text: string): void => {
      for (const line of text.split(/\r?\n/).filter((part) => part.trim() !== "")) {
        last = line.trim();
        onLine(last);
      }
    };
    child.stdout.setEncoding("utf8").on("data", read);
    child.stderr.setEncoding("utf8").on("data", read);
    child.on("error", reject);
    child.on("close", (status) => {
      cancelled?.dispose();
      if (token?.isCancellationRequested) reject(new vscode.CancellationError());
      else if (status === 0) resolve();
      else reject(new Error(last !== "" ? last : `${program} ended with status ${status}`));
    });
  });
}
