// The newest run in the side bar (hot lines, findings, notes) and its step time in the status bar.
import * as path from "node:path";
import * as vscode from "vscode";
import type { Server } from "./server";
import * as protocol from "./protocol";
import { ms, times } from "./words";

/** A finding as a tree item; commands of its context menu get this. */
export class FindingItem extends vscode.TreeItem {
  constructor(readonly finding: protocol.Finding) {
    super(finding.rule);
    this.description = gain(finding) ?? "";
    this.tooltip = `${finding.message}\n${place(finding)}`;
    this.iconPath = new vscode.ThemeIcon(finding.severity === "hint" ? "lightbulb" : finding.severity === "information" ? "info" : finding.severity);
    this.command = open(finding);
    this.contextValue = "finding";
  }
}

interface Section {
  name: string;
  items: vscode.TreeItem[];
}

export class Results implements vscode.TreeDataProvider<Section | vscode.TreeItem>, vscode.Disposable {
  private newest: protocol.Overview | null = null;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view = vscode.window.createTreeView<Section | vscode.TreeItem>("warpline.results", { treeDataProvider: this });
  private readonly status = vscode.window.createStatusBarItem("warpline.step", vscode.StatusBarAlignment.Left);

  constructor(private readonly server: Server) {
    this.status.name = "Warpline: time of a step";
    this.status.command = "warpline.results.focus";
  }

  async refresh(): Promise<void> {
    const client = this.server.running;
    if (client === undefined) return;
    const uri = vscode.window.activeTextEditor?.document.uri;
    const params = uri?.scheme === "file" && vscode.workspace.getWorkspaceFolder(uri) ? { uri: uri.toString() } : {};
    const answer = await client.sendRequest(protocol.overview, params).catch(() => undefined);
    if (answer === undefined) return;
    this.newest = answer;
    this.changed.fire();
    this.view.description = answer === null ? "" : `${path.basename(answer.script)} · ${ms(answer.stepMs)} a step`;
    this.status.hide();
    if (answer === null) return;
    const before = answer.previousStepMs === null ? "" : `, ${ms(answer.previousStepMs)} in the run before`;
    this.status.text = `$(flame) ${ms(answer.stepMs)}`;
    this.status.tooltip = `A step of ${path.basename(answer.script)} on ${answer.device}: ${ms(answer.stepMs)}${before}`;
    this.status.show();
  }

  getChildren(parent?: Section | vscode.TreeItem): (Section | vscode.TreeItem)[] {
    if (parent !== undefined) return "items" in parent ? parent.items : [];
    if (this.newest === null) return [];
    const { findings, lines, notes } = this.newest;
    const sections = [
      { name: "Findings", items: findings.map((finding) => new FindingItem(finding)) },
      { name: "Hot lines", items: lines.map(hotLine) },
      { name: "Notes", items: notes.map((note) => Object.assign(new vscode.TreeItem(note), { tooltip: note })) },
    ];
    return sections.filter((section) => section.items.length > 0);
  }

  getTreeItem(element: Section | vscode.TreeItem): vscode.TreeItem {
    if (!("items" in element)) return element;
    const folded = element.name === "Notes";
    const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(element.name, folded ? Collapsed : Expanded);
    item.id = element.name;
    return item;
  }

  dispose(): void {
    for (const item of [this.view, this.status, this.changed]) item.dispose();
  }
}

function hotLine(line: protocol.HotLine): vscode.TreeItem {
  const item = new vscode.TreeItem(line.text.trim() || place(line));
  item.description = line.stale ? `${line.label} (line changed since)` : line.label;
  item.tooltip = `${place(line)} in ${line.function}`;
  item.iconPath = new vscode.ThemeIcon("flame", line.stale ? new vscode.ThemeColor("disabledForeground") : undefined);
  item.command = open(line);
  return item;
}

function gain({ measured, predicted }: protocol.Finding): string | undefined {
  if (measured !== null) return `${times(measured)} faster, measured`;
  return predicted === null ? undefined : `${times(predicted)} faster, predicted`;
}

export function place({ uri, line }: { uri: string; line: number }): string {
  return `${path.basename(vscode.Uri.parse(uri).fsPath)}:${line + 1}`;
}

/** Show a line with the cursor on its code, where the light bulb of its fixes is. */
export async function goTo({ uri, line }: { uri: string; line: number }): Promise<void> {
  const editor = await vscode.window.showTextDocument(vscode.Uri.parse(uri));
  const at = Math.min(line, editor.document.lineCount - 1);
  const start = new vscode.Position(at, editor.document.lineAt(at).firstNonWhitespaceCharacterIndex);
  editor.selection = new vscode.Selection(start, start);
  editor.revealRange(new vscode.Range(start, start), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

function open({ uri, line }: { uri: string; line: number }): vscode.Command {
  return { title: "Open", command: "warpline.goTo", arguments: [{ uri, line }] };
}
