// The run that is shown, in the side bar: notes, findings, lines by file or by function. Its step in the status bar.
import * as path from "node:path";
import * as vscode from "vscode";
import type { Server } from "./server";
import * as protocol from "./protocol";

/** Lines below this share of the step are folded away. */
const SMALL = 0.01;
/** After the last key stroke, the time until the places are asked for again. */
const SETTLE_MS = 300;

/** A finding as a tree item; commands of its context menu get this. */
export class FindingItem extends vscode.TreeItem {
  constructor(readonly finding: protocol.Finding) {
    super(finding.rule);
    this.description = [finding.gain, place(finding), finding.stale ? "line changed since" : ""].filter((part) => part !== "").join(" · ");
    this.tooltip = [finding.message, finding.detail, place(finding)].filter((part) => part !== "").join("\n\n");
    const name = finding.severity === "hint" ? "lightbulb" : finding.severity === "information" ? "info" : finding.severity;
    this.iconPath = new vscode.ThemeIcon(name, finding.stale ? new vscode.ThemeColor("disabledForeground") : undefined);
    this.command = open(finding);
    this.contextValue = finding.fixes.length === 0 ? "finding" : "finding fixable";
  }
}

/** Items under a name. */
class Section extends vscode.TreeItem {
  constructor(
    name: string,
    readonly items: vscode.TreeItem[],
    folded = false,
  ) {
    super(name, folded ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.Expanded);
  }
}

export class Results implements vscode.TreeDataProvider<vscode.TreeItem>, vscode.Disposable {
  private newest: protocol.Overview | null = null;
  private byFunction = false;
  private timer: NodeJS.Timeout | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view = vscode.window.createTreeView<vscode.TreeItem>("warpline.results", { treeDataProvider: this });
  private readonly status = vscode.window.createStatusBarItem("warpline.step", vscode.StatusBarAlignment.Left);
  private readonly edits: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.status.name = "Warpline: time of a step";
    this.status.command = "warpline.results.focus";
    this.edits = vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (document.languageId !== "python" || contentChanges.length === 0) return;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.refresh(true), SETTLE_MS);
    });
  }

  /** The script, and the file to name it by, of the run that is shown. */
  get shown(): protocol.Overview | null {
    return this.newest;
  }

  groupBy(byFunction: boolean): void {
    this.byFunction = byFunction;
    void vscode.commands.executeCommand("setContext", "warpline.byFunction", byFunction);
    this.changed.fire();
  }

  /** Show the run of the file in the editor. Where that is none of the workspace's, as a library's, the newest run;
   *  with `keep` the one that is shown: who looks at a part of a line in its library comes back to the others. */
  async refresh(keep = false): Promise<void> {
    const client = this.server.running;
    if (client === undefined) return;
    const uri = vscode.window.activeTextEditor?.document.uri;
    const own = uri !== undefined && (cellOf(uri.toString()) !== undefined || (uri.scheme === "file" && vscode.workspace.getWorkspaceFolder(uri) !== undefined));
    const about = own ? uri.toString() : keep ? this.newest?.again : undefined;
    const params = about === undefined ? {} : { uri: about };
    const answer = await client.sendRequest(protocol.overview, params).catch(() => undefined);
    if (answer === undefined) return;
    this.newest = answer;
    const can = {
      hasResults: answer !== null,
      hasBefore: (answer?.previousStepMs ?? null) !== null,
      hasFixes: answer?.findings.some(({ fixes }) => fixes.length > 0) === true,
    };
    for (const [name, value] of Object.entries(can)) void vscode.commands.executeCommand("setContext", `warpline.${name}`, value);
    this.changed.fire();
    this.view.description = answer === null ? "" : `${path.basename(answer.script)} ${answer.argv.join(" ")}`.trim();
    this.view.message = answer?.summary ?? "";
    this.status.hide();
    if (answer === null) return;
    this.status.text = `$(flame) ${answer.label.replace(" a step", "")}`;
    const before = answer.change === null ? "" : ` (${answer.change} since the run before)`;
    this.status.tooltip = `${path.basename(answer.script)} on ${answer.device}: ${answer.label}${before}`;
    this.status.show();
  }

  getChildren(parent?: vscode.TreeItem): vscode.TreeItem[] {
    if (parent instanceof Section) return parent.items;
    if (parent !== undefined || this.newest === null) return [];
    const { findings, notes } = this.newest;
    const sections = [
      // What questions the numbers stands above them.
      new Section("Notes", notes.map((note) => Object.assign(new vscode.TreeItem(note), { tooltip: note, iconPath: new vscode.ThemeIcon("info") }))),
      new Section("Findings", findings.map((finding) => new FindingItem(finding))),
      ...this.grouped(this.newest),
    ];
    return sections.filter(({ items }) => items.length > 0);
  }

  getTreeItem(element: vscode.TreeItem): vscode.TreeItem {
    return element;
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const item of [this.view, this.status, this.changed, this.edits]) item.dispose();
  }

  /** A section for each file, or function, with its total, in the order of its costliest line. */
  private grouped({ lines, totals }: protocol.Overview): Section[] {
    const groups = new Map<string, protocol.HotLine[]>();
    for (const line of lines) {
      const key = `${line.uri} ${this.byFunction ? line.function : ""}`;
      groups.set(key, [...(groups.get(key) ?? []), line]);
    }
    const labels = new Map(
      totals.map(({ uri, function: name, label, total }) => [`${uri} ${name}`, total === null ? label : `self ${label}, total ${total.split("  ")[0]}`]),
    );
    return [...groups].map(([key, members]) => {
      const [first] = members;
      const file = path.basename(vscode.Uri.parse(first?.uri ?? "").fsPath);
      const large = members.filter(({ share }) => share >= SMALL).map(hotLine);
      const small = members.filter(({ share }) => share < SMALL).map(hotLine);
      const rest = small.length === 0 ? [] : [new Section(`${small.length} ${small.length === 1 ? "line" : "lines"} below 1 %`, small, true)];
      const section = new Section(this.byFunction ? (first?.function ?? "") : file, [...large, ...rest], large.length === 0);
      section.description = [labels.get(key) ?? "", this.byFunction ? file : ""].filter((part) => part !== "").join("  ");
      return section;
    });
  }
}

function hotLine(line: protocol.HotLine): vscode.TreeItem {
  const item = new Section(`${line.label}  ${place(line)}`, line.inside.map(inside), true);
  if (line.inside.length === 0) item.collapsibleState = vscode.TreeItemCollapsibleState.None;
  item.description = line.stale ? `line changed since · ${line.text}` : line.text;
  item.tooltip = `${line.text}\n${place(line)} in ${line.function}`;
  item.iconPath = new vscode.ThemeIcon("flame", line.stale ? new vscode.ThemeColor("disabledForeground") : undefined);
  item.command = open(line);
  return item;
}

/** What is within a line. A module with others in it is unfolded: the line's modules are seen at once. */
function inside({ label, name, about, place, uri, line, inside: entries }: protocol.Inside): vscode.TreeItem {
  const item = new Section(`${label}  ${name}`, entries.map(inside), !entries.some((entry) => entry.inside.length > 0));
  if (entries.length === 0) item.collapsibleState = vscode.TreeItemCollapsibleState.None;
  item.description = entries.length === 0 ? about : place;
  item.tooltip = [about, place].filter((words) => words !== "").join("\n");
  item.iconPath = new vscode.ThemeIcon(entries.length === 0 ? "dash" : "library");
  if (uri !== null) item.command = open({ uri, line });
  return item;
}

export function place({ uri, line }: protocol.Place): string {
  const cell = cellOf(uri);
  if (cell !== undefined) {
    // Counted as the server does: Python cells only, without text.
    const before = cell.notebook.getCells().filter(({ document, index }) => document.languageId === "python" && index < cell.index);
    return `${path.basename(cell.notebook.uri.fsPath)} Cell ${before.length + 1}:${line + 1}`;
  }
  return `${path.basename(vscode.Uri.parse(uri).fsPath)}:${line + 1}`;
}

/** The cell of an open notebook that has this URI. */
function cellOf(uri: string): vscode.NotebookCell | undefined {
  const cells = vscode.workspace.notebookDocuments.flatMap((notebook) => notebook.getCells());
  return cells.find(({ document }) => document.uri.toString() === uri);
}

/** Show a line with the cursor on its code, where the light bulb of its fixes is. */
export async function goTo({ uri, line }: protocol.Place, viewColumn?: vscode.ViewColumn): Promise<void> {
  const cell = cellOf(uri);
  if (cell !== undefined) {
    const selection = new vscode.Range(line, 0, line, 0);
    await vscode.commands.executeCommand("vscode.open", cell.document.uri, { selection, ...(viewColumn === undefined ? {} : { viewColumn }) });
    return;
  }
  const editor = await vscode.window.showTextDocument(vscode.Uri.parse(uri), viewColumn === undefined ? {} : { viewColumn });
  const at = Math.min(line, editor.document.lineCount - 1);
  const start = new vscode.Position(at, editor.document.lineAt(at).firstNonWhitespaceCharacterIndex);
  editor.selection = new vscode.Selection(start, start);
  editor.revealRange(new vscode.Range(start, start), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

function open({ uri, line }: protocol.Place): vscode.Command {
  return { title: "Open", command: "warpline.goTo", arguments: [{ uri, line }] };
}
