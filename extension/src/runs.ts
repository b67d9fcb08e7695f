// The runs of the workspace in the side bar: open one, compare two.
import * as path from "node:path";
import * as vscode from "vscode";
import type { Server } from "./server";
import * as protocol from "./protocol";
import { goTo, place } from "./results";

export class RunItem extends vscode.TreeItem {
  constructor(readonly run: protocol.Run) {
    super(`${run.module ?? path.basename(run.script)} ${run.argv.join(" ")}`.trim());
    this.id = run.run; // so that what is selected stays selected when the rows are read again
    const when = new Date(run.createdMs).toLocaleString(undefined, { dateStyle: "short", timeStyle: "short" });
    this.description = `${run.label} · ${when}`;
    this.tooltip = `${run.script} ${run.argv.join(" ")}\n${run.label} a step on ${run.device}\n${when}\n${run.run}`;
    this.iconPath = new vscode.ThemeIcon(run.shown ? "eye" : "history");
    this.contextValue = run.shown ? "run shown" : "run";
    this.command = { title: "Show", command: "warpline.openRun", arguments: [this] };
  }
}

export class Runs implements vscode.TreeDataProvider<RunItem>, vscode.Disposable {
  private items: RunItem[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view = vscode.window.createTreeView<RunItem>("warpline.runs", { treeDataProvider: this, canSelectMany: true });

  constructor(private readonly server: Server) {}

  async refresh(): Promise<void> {
    const rows = await this.server.running?.sendRequest(protocol.runs, {}).catch(() => undefined);
    if (rows === undefined) return;
    this.items = rows.map((run) => new RunItem(run));
    this.changed.fire();
  }

  getChildren(parent?: RunItem): RunItem[] {
    return parent === undefined ? this.items : [];
  }

  getTreeItem(item: RunItem): vscode.TreeItem {
    return item;
  }

  async open(item: unknown): Promise<void> {
    if (item instanceof RunItem) await this.server.running?.sendRequest(protocol.openRun, { run: item.run.run });
  }

  async compareSelected(selected: unknown): Promise<void> {
    const chosen = Array.isArray(selected) ? selected : this.view.selection;
    const both = chosen.filter((one): one is RunItem => one instanceof RunItem);
    if (both.length === 2) await this.compare(both);
    else void vscode.window.showInformationMessage("Select two runs to compare: click one, then the other with Ctrl (Cmd on a Mac).");
  }

  /** The one that was clicked with the one of the same script that is shown. */
  async compareWithShown(item: unknown): Promise<void> {
    if (!(item instanceof RunItem)) return;
    const shown = this.items.find(({ run }) => run.shown && run.script === item.run.script) ?? this.items.find(({ run }) => run.shown);
    if (shown !== undefined && shown !== item) await this.compare([item, shown]);
  }

  /** The newer one is shown then: the hints that say the difference are those of the run that is shown. */
  private async compare(both: RunItem[]): Promise<void> {
    const [newer, older] = both.map(({ run }) => run).sort((one, other) => other.createdMs - one.createdMs);
    if (newer === undefined || older === undefined) return;
    if (!newer.shown) await this.server.running?.sendRequest(protocol.openRun, { run: newer.run });
    await compare(this.server, { uri: vscode.Uri.file(newer.script).toString(), run: older.run, with: newer.run });
  }

  dispose(): void {
    for (const item of [this.view, this.changed]) item.dispose();
  }
}

/** The hints say only the times again. */
export async function hideDifference(server: Server, at: { uri?: string }): Promise<void> {
  await server.running?.sendRequest(protocol.compare, { ...at, hints: false });
  void vscode.commands.executeCommand("setContext", "warpline.comparing", false);
}

/** Show the difference of two runs in a list, and in the hints. */
export async function compare(server: Server, params: protocol.CompareParams): Promise<void> {
  const client = await server.ready();
  if (client === undefined) return;
  const comparison = await client.sendRequest(protocol.compare, { ...params, hints: true }).catch(() => null);
  if (comparison === null) {
    const none = "There is no earlier run with the same script, arguments and device. Two runs can be chosen in the Runs view.";
    void vscode.window.showInformationMessage(none);
    return;
  }
  void vscode.commands.executeCommand("setContext", "warpline.comparing", true);
  const choices = comparison.lines.map((line) => ({
    label: line.label,
    description: line.afterMs === null ? "" : place(line),
    detail: line.text.trim(),
    line,
  }));
  const choice = await vscode.window.showQuickPick(choices, { title: comparison.title, matchOnDetail: true });
  if (choice !== undefined && choice.line.afterMs !== null) await goTo(choice.line);
}
