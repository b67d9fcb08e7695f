// The commands of package.json. The server's own have other names: the language client registers those itself.
import * as path from "node:path";
import * as vscode from "vscode";
import * as environment from "./environment";
import * as interpreter from "./interpreter";
import * as launch from "./launch";
import { applyFix, measure, profile, tune } from "./profile";
import * as protocol from "./protocol";
import { FindingItem, goTo } from "./results";
import type { ReportPage } from "./report";
import type { Results } from "./results";
import { compare, hideDifference } from "./runs";
import type { Runs } from "./runs";
import type { Server } from "./server";

export function register(server: Server, log: vscode.LogOutputChannel, results: Results, runs: Runs, report: ReportPage): vscode.Disposable[] {
  const commands: Record<string, (argument?: unknown, more?: unknown) => unknown> = {
    "warpline.profileFile": (resource) => onFile(resource, (uri) => profile(server, { uri })),
    "warpline.profileNotebook": () => onFile(undefined, (uri) => profile(server, { uri })),
    "warpline.profileFileWithArguments": (resource) => onFile(resource, (uri) => withArguments(server, uri, results)),
    "warpline.profileAgain": () => onShown(results, (uri, { run }) => profile(server, { uri, again: run })),
    "warpline.changeArguments": () => onShown(results, (uri, { run }) => withArguments(server, uri, results, run)),
    "warpline.profileModule": (resource) => onFile(resource, (uri) => asModule(server, uri)),
    "warpline.profileLaunch": () => launchConfiguration(server),
    "warpline.applyBestSet": () => onShown(results, (uri) => tune(server, uri)),
    "warpline.compareRuns": () => compareWithBefore(server),
    "warpline.compareWithShown": (item) => runs.compareWithShown(item),
    "warpline.compareSelected": (_, selected) => runs.compareSelected(selected),
    "warpline.hideDifference": () => hideDifference(server, active()),
    "warpline.openReport": () => report.show(results.shown === null ? {} : { run: results.shown.run }),
    "warpline.openRun": (item) => runs.open(item),
    "warpline.groupByFunction": () => results.groupBy(true),
    "warpline.groupByFile": () => results.groupBy(false),
    "warpline.measureFinding": (item) => item instanceof FindingItem && measure(server, of(item)),
    "warpline.applyFinding": (item) => item instanceof FindingItem && applyFix(server, of(item)),
    "warpline.explainFinding": (item) =>
      item instanceof FindingItem && vscode.commands.executeCommand("warpline.explain", item.finding.rule),
    "warpline.goTo": (where) => goTo(where as protocol.Place), // of the tree's items
    "warpline.goToCause": (item) => item instanceof FindingItem && goTo(item.finding.cause),
    "warpline.typeInTerminal": (command) => typeInTerminal(String(command)), // of an error's buttons
    "warpline.chooseInterpreter": () => interpreter.choose(vscode.window.activeTextEditor?.document.uri),
    "warpline.restartServer": () => server.restart(),
    "warpline.showLog": () => log.show(),
  };
  return Object.entries(commands).map(([name, action]) => vscode.commands.registerCommand(name, action));
}

function of({ finding }: FindingItem): protocol.MeasureParams {
  return { uri: finding.uri, findingId: finding.id };
}

/** From a menu the file is given; from the palette it is the one in the editor. */
async function onFile(resource: unknown, action: (uri: string) => unknown): Promise<unknown> {
  const notebook = vscode.window.activeNotebookEditor?.notebook.uri;
  const uri = resource instanceof vscode.Uri ? resource : (notebook ?? vscode.window.activeTextEditor?.document.uri);
  if (uri !== undefined) return action(uri.toString());
  return vscode.window.showInformationMessage("Open the training script that should be profiled first.");
}

/** The script, or notebook, of the run that is shown, whatever file is in the editor. */
function onShown(results: Results, action: (uri: string, shown: protocol.Overview) => unknown): unknown {
  const shown = results.shown;
  if (shown !== null) return action(shown.again, shown);
  return vscode.window.showInformationMessage("Profile a script first.");
}

function active(): { uri?: string } {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri?.scheme === "file" ? { uri: uri.toString() } : {};
}

/** The arguments of the run that is shown, or of the last one of the script, are there to be changed. `again`: the run
 *  that is repeated with them. */
async function withArguments(server: Server, uri: string, { shown }: Results, again?: string): Promise<unknown> {
  const client = await server.ready();
  const { fsPath } = vscode.Uri.parse(uri);
  const known = (await client?.sendRequest(protocol.runs, { uri }).catch(() => [])) ?? [];
  const last = shown?.again === uri ? shown.argv : (known.find(({ script }) => script === fsPath)?.argv ?? []);
  const value = typed(last);
  const title = `Arguments of ${path.basename(fsPath)}`;
  const line = await vscode.window.showInputBox({ title, placeHolder: "--epochs 1 --data 'my data'", prompt: "Enter profiles the script with them", value });
  return line === undefined ? undefined : profile(server, { uri, args: words(line), ...(again === undefined ? {} : { again }) });
}

/** Arguments as one would type them in a shell. */
function typed(words: string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`)).join(" ");
}

/** The words of a command line: quotes of both kinds hold together, also in the middle of a word. */
function words(line: string): string[] {
  const found = line.match(/(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+/g) ?? [];
  return found.map((word) =>
    word.replace(/"((?:\\.|[^"\\])*)"|'([^']*)'|\\(.)/g, (_, double?: string, single?: string, plain?: string) =>
      double !== undefined ? double.replace(/\\(["\\$`])/g, "$1") : (single ?? plain ?? ""),
    ),
  );
}

async function asModule(server: Server, uri: string): Promise<unknown> {
  const relative = vscode.workspace.asRelativePath(vscode.Uri.parse(uri), false);
  const value = relative.replace(/(\/__main__)?\.py$/, "").replaceAll("/", ".");
  const module = await vscode.window.showInputBox({ title: "Module to run, as after python -m", value });
  return module === undefined || module === "" ? undefined : profile(server, { uri, module });
}

async function launchConfiguration(server: Server): Promise<unknown> {
  const resource = vscode.window.activeTextEditor?.document.uri ?? vscode.workspace.workspaceFolders?.[0]?.uri;
  const choices = launch.configurations(resource).map((found) => ({ label: found.name, found }));
  if (choices.length === 0) return vscode.window.showInformationMessage("launch.json has no Python configuration that launches a program.");
  const choice = await vscode.window.showQuickPick(choices, { title: "Profile a launch configuration" });
  if (choice === undefined) return undefined;
  try {
    const found = await launch.resolved(choice.found, resource);
    return found === undefined ? undefined : await profile(server, { launch: found, ...active() });
  } catch (error) {
    const open = "Open launch.json";
    const next = await vscode.window.showErrorMessage(`Launch configuration "${choice.label}": ${environment.message(error)}`, open);
    return next === open ? vscode.commands.executeCommand("workbench.action.debug.configure") : undefined;
  }
}

async function compareWithBefore(server: Server): Promise<void> {
  await compare(server, active());
}

/** Typed and not run: the user reads it and presses Enter. */
function typeInTerminal(command: string): void {
  const terminal = vscode.window.activeTerminal ?? vscode.window.createTerminal();
  terminal.show();
  terminal.sendText(command, false);
}
