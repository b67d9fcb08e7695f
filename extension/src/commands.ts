// The commands of package.json. The server's own have other names: the language client registers those itself.
import * as path from "node:path";
import * as vscode from "vscode";
import { measure, profile } from "./profile";
import * as protocol from "./protocol";
import { FindingItem, goTo, place } from "./results";
import type { Server } from "./server";
import { ms, times } from "./words";

export function register(server: Server, log: vscode.LogOutputChannel): vscode.Disposable[] {
  const commands: Record<string, (argument?: unknown) => unknown> = {
    "warpline.profileFile": (resource) => onFile(resource, (uri) => profile(server, { uri })),
    "warpline.profileFileWithArguments": (resource) => onFile(resource, (uri) => withArguments(server, uri)),
    "warpline.profileModule": (resource) => onFile(resource, (uri) => asModule(server, uri)),
    "warpline.profileLaunch": () => launchConfiguration(server),
    "warpline.compareRuns": () => compareRuns(server),
    "warpline.measureFinding": (item) =>
      item instanceof FindingItem && measure(server, { uri: item.finding.uri, findingId: item.finding.id }),
    "warpline.explainFinding": (item) =>
      item instanceof FindingItem && vscode.commands.executeCommand("warpline.explain", item.finding.rule),
    "warpline.goTo": (where) => goTo(where as { uri: string; line: number }), // of the tree's items
    "warpline.goToCause": (item) => item instanceof FindingItem && goTo(item.finding.cause),
    "warpline.restartServer": () => server.restart(),
    "warpline.showLog": () => log.show(),
  };
  return Object.entries(commands).map(([name, action]) => vscode.commands.registerCommand(name, action));
}

/** From a menu the file is given; from the palette it is the one in the editor. */
async function onFile(resource: unknown, action: (uri: string) => unknown): Promise<unknown> {
  const uri = resource instanceof vscode.Uri ? resource : vscode.window.activeTextEditor?.document.uri;
  if (uri !== undefined) return action(uri.toString());
  return vscode.window.showInformationMessage("Open the training script to be profiled first.");
}

async function withArguments(server: Server, uri: string): Promise<unknown> {
  const line = await vscode.window.showInputBox({ title: "Arguments of the script", placeHolder: "--epochs 1 --data 'my data'" });
  if (line === undefined) return undefined;
  const words = line.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? [];
  return profile(server, { uri, args: words.map((word) => word.replace(/^(["'])(.*)\1$/, "$2")) });
}

async function asModule(server: Server, uri: string): Promise<unknown> {
  const relative = vscode.workspace.asRelativePath(vscode.Uri.parse(uri), false);
  const value = relative.replace(/(\/__main__)?\.py$/, "").replaceAll("/", ".");
  const module = await vscode.window.showInputBox({ title: "Module to run, as after python -m", value });
  return module === undefined || module === "" ? undefined : profile(server, { uri, module });
}

async function launchConfiguration(server: Server): Promise<unknown> {
  const active = vscode.window.activeTextEditor?.document.uri;
  const known = vscode.workspace.getConfiguration("launch", active).get<vscode.DebugConfiguration[]>("configurations", []);
  const choices = known
    .filter(({ type }) => type === "debugpy" || type === "python")
    .map((launch) => ({ label: launch.name, launch }));
  if (choices.length === 0) return vscode.window.showInformationMessage("launch.json has no Python configuration.");
  const choice = await vscode.window.showQuickPick(choices, { title: "Profile a launch configuration" });
  if (choice === undefined) return undefined;
  return profile(server, { launch: choice.launch, ...(active === undefined ? {} : { uri: active.toString() }) });
}

async function compareRuns(server: Server): Promise<void> {
  const client = await server.ready();
  if (client === undefined) return;
  const uri = vscode.window.activeTextEditor?.document.uri;
  const params = uri?.scheme === "file" ? { uri: uri.toString() } : {};
  const comparison = await client.sendRequest(protocol.compare, params).catch(() => null);
  if (comparison === null) {
    void vscode.window.showInformationMessage("There is no earlier run of the same script to compare with.");
    return;
  }
  const { before, after, speedup, lines } = comparison;
  const time = (value: number | null, missing: string): string => (value === null ? missing : ms(value));
  const choices = lines.map((line) => ({
    label: `${line.deltaMs > 0 ? "+" : ""}${ms(line.deltaMs)}`,
    description: `${time(line.beforeMs, "new")} → ${time(line.afterMs, "gone")}  ${line.afterMs === null ? path.basename(line.uri) : place(line)}`,
    detail: line.text.trim(),
    line,
  }));
  const title = `A step: ${ms(before.stepMs)} → ${ms(after.stepMs)}, ${times(speedup)} as fast as before`;
  const choice = await vscode.window.showQuickPick(choices, { title, matchOnDetail: true });
  if (choice !== undefined && choice.line.afterMs !== null) await goTo(choice.line);
}
