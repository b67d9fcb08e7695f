// launch.json: which configurations can be profiled, and what only VS Code knows of them (commands, inputs, settings).
import * as vscode from "vscode";

interface Input {
  id: string;
  type: string;
  description?: string;
  default?: string;
  password?: boolean;
  options?: (string | { label: string; value: string })[];
  command?: string;
  args?: unknown;
}

/** The Python configurations that launch something, as they are on this system; one that attaches has nothing to run. */
export function configurations(resource: vscode.Uri | undefined): vscode.DebugConfiguration[] {
  const known = vscode.workspace.getConfiguration("launch", resource).get<vscode.DebugConfiguration[]>("configurations", []);
  const system = process.platform === "win32" ? "windows" : process.platform === "darwin" ? "osx" : "linux";
  return known
    .map((launch) => ({ ...launch, ...(launch[system] as object | undefined) }))
    .filter((launch) => (launch.type === "debugpy" || launch.type === "python") && launch.request !== "attach" && ("program" in launch || "module" in launch));
}

/** The configuration with `${command:…}`, `${input:…}`, `${config:…}` and `${workspaceFolder:…}` replaced; undefined when the user gave up.
 *  Rejects with the variable's name when there is no such thing. */
export async function resolved(launch: vscode.DebugConfiguration, resource: vscode.Uri | undefined): Promise<vscode.DebugConfiguration | undefined> {
  const text = JSON.stringify(launch);
  const values = new Map<string, string>();
  for (const [variable, kind, name] of text.matchAll(/\$\{(command|input|config|workspaceFolder):([^}"]+)\}/g)) {
    if (values.has(variable) || kind === undefined || name === undefined) continue;
    const value = await valueOf(kind, name, resource);
    if (value === undefined) return undefined;
    values.set(variable, JSON.stringify(value).slice(1, -1));
  }
  const whole = [...values].reduce((known, [variable, value]) => known.replaceAll(variable, value), text);
  return JSON.parse(whole) as vscode.DebugConfiguration;
}

async function valueOf(kind: string, name: string, resource: vscode.Uri | undefined): Promise<string | undefined> {
  if (kind === "command") return commanded(name);
  if (kind === "workspaceFolder") {
    const folder = vscode.workspace.workspaceFolders?.find((known) => known.name === name);
    if (folder === undefined) throw new Error(`there is no folder "${name}" in this workspace`);
    return folder.uri.fsPath;
  }
  if (kind === "config") return String(vscode.workspace.getConfiguration(undefined, resource).get(name) ?? "");
  const inputs = vscode.workspace.getConfiguration("launch", resource).get<Input[]>("inputs", []);
  const input = inputs.find(({ id }) => id === name);
  if (input === undefined) throw new Error(`launch.json has no input "${name}"`);
  const title = input.description ?? input.id;
  if (input.type === "command") return commanded(input.command ?? "", input.args);
  if (input.type === "pickString") {
    const choices = (input.options ?? []).map((option) => (typeof option === "string" ? { label: option, value: option } : option));
    return (await vscode.window.showQuickPick(choices, { title }))?.value;
  }
  return vscode.window.showInputBox({ title, ...(input.default === undefined ? {} : { value: input.default }), password: input.password === true });
}

async function commanded(name: string, args?: unknown): Promise<string | undefined> {
  const value = await vscode.commands.executeCommand(name, ...(args === undefined ? [] : [args]));
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new Error(`\${command:${name}} gave no text`);
  return value;
}
